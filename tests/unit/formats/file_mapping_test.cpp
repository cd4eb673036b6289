// SPDX-License-Identifier: Apache-2.0
#include <millrace/io/file_mapping.hpp>

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

#include "support/paths.hpp"

namespace millrace::io {
namespace {

std::string text_of(const file_mapping& mapping) {
  return {reinterpret_cast<const char*>(mapping.bytes().data()), mapping.bytes().size()};
}

TEST(FileMapping, ShowsTheWholeFile) {
  const test::temp_folder folder;
  const std::string text = std::string(10000, 'a') + "the end";  // more than two pages
  test::write_text(folder / "a", text);
  EXPECT_EQ(text_of(file_mapping(folder / "a")), text);
}

TEST(FileMapping, OfAnEmptyFileIsAnEmptySpan) {
  const test::temp_folder folder;
  test::write_text(folder / "a", "");
  EXPECT_TRUE(file_mapping(folder / "a").bytes().empty());
  EXPECT_TRUE(file_mapping().bytes().empty());
}

TEST(FileMapping, MovesWithoutMovingTheBytes) {
  const test::temp_folder folder;
  test::write_text(folder / "a", "abc");
  file_mapping first(folder / "a");
  const std::byte* address = first.bytes().data();
  const file_mapping second = std::move(first);
  EXPECT_EQ(second.bytes().data(), address);
  // NOLINTNEXTLINE(bugprone-use-after-move,clang-analyzer-cplusplus.Move): that is what is tested
  EXPECT_TRUE(first.bytes().empty());
}

// If a file is replaced by a rename, a mapping keeps the old contents. This happens to datasets
// while trainers read them.
TEST(FileMapping, KeepsTheFileThatWasReplaced) {
  const test::temp_folder folder;
  test::write_text(folder / "a", "old");
  test::write_text(folder / "b", "new!");
  const file_mapping mapping(folder / "a");
  std::filesystem::rename(folder / "b", folder / "a");
  EXPECT_EQ(text_of(mapping), "old");
}

TEST(FileMapping, ShowsTheSameBytesAfterItLetGoOfThem) {
  const test::temp_folder folder;
  const std::string text(100'000, 'x');
  test::write_text(folder / "a", text);
  const file_mapping mapping(folder / "a");
  const auto shown = [&] {
    return std::string(reinterpret_cast<const char*>(mapping.bytes().data()),
                       mapping.bytes().size());
  };
  EXPECT_TRUE(shown() == text);
  mapping.let_go();
  EXPECT_TRUE(shown() == text);
  file_mapping().let_go();
}

TEST(FileMapping, TellsWhichFileItMapped) {
  const test::temp_folder folder;
  test::write_text(folder / "a", "old");
  test::write_text(folder / "b", "new");
  std::filesystem::create_symlink("a", folder / "link");
  const file_mapping mapping(folder / "a");
  EXPECT_EQ(identity_of(folder / "a"), mapping.identity());
  EXPECT_EQ(identity_of(folder / "link"), mapping.identity());
  EXPECT_EQ(file_mapping(folder / "link").identity(), mapping.identity());
  EXPECT_NE(identity_of(folder / "b"), mapping.identity());

  const file_mapping next(folder / "b");
  std::filesystem::rename(folder / "b", folder / "a");
  EXPECT_NE(identity_of(folder / "a"), mapping.identity());
  EXPECT_EQ(identity_of(folder / "a"), next.identity());
  EXPECT_EQ(identity_of(folder / "b"), std::nullopt);
}

// While the old file is mapped, no later file gets its identity. Without the mapping, most file
// systems give the old file's inode number to the next file.
TEST(FileMapping, SharesItsIdentityWithNoLaterFile) {
  const test::temp_folder folder;
  test::write_text(folder / "a", "old");
  const file_mapping mapping(folder / "a");
  for (int i = 0; i < 100; ++i) {
    std::filesystem::remove(folder / "a");
    test::write_text(folder / "a", "new");
    ASSERT_NE(identity_of(folder / "a"), mapping.identity());
  }
}

TEST(IdentityOf, ThrowsIfItCannotBeAsked) {
  const test::temp_folder folder;
  test::write_text(folder / "a", "");
  EXPECT_THROW((void)identity_of(folder / "a" / "b"), io_error);  // ENOTDIR
}

TEST(FileMapping, NamesTheFileThatIsMissing) {
  const test::temp_folder folder;
  try {
    const file_mapping mapping(folder / "none");
    FAIL() << "mapped";
  } catch (const io_error& e) {
    EXPECT_EQ(e.code(), ENOENT);
    EXPECT_EQ(e.path(), folder / "none");
  }
}

}  // namespace
}  // namespace millrace::io
