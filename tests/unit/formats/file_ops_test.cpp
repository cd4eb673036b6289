// SPDX-License-Identifier: Apache-2.0
#include <millrace/io/file_ops.hpp>

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "support/paths.hpp"

namespace millrace::io {
namespace {

unique_fd create(const std::filesystem::path& path) {
  return unique_fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
}

TEST(FileOps, WritesAndReadsAtAnyOffset) {
  const test::temp_folder folder;
  const unique_fd fd = create(folder / "a");
  pwrite_all(fd, std::as_bytes(std::span("def", 3)), 3, folder / "a");
  pwrite_all(fd, std::as_bytes(std::span("abc", 3)), 0, folder / "a");
  EXPECT_EQ(test::read_text(folder / "a"), "abcdef");
  EXPECT_EQ(regular_file_size(fd, folder / "a"), 6);

  std::array<char, 4> out{};
  EXPECT_EQ(pread_some(fd, std::as_writable_bytes(std::span(out)), 1, folder / "a"), 4);
  EXPECT_EQ(std::string(out.data(), 4), "bcde");
  EXPECT_EQ(pread_some(fd, std::as_writable_bytes(std::span(out)), 4, folder / "a"), 2)
      << "short only at the end";
  EXPECT_EQ(pread_some(fd, std::as_writable_bytes(std::span(out)), 600, folder / "a"), 0);
}

// The kernel treats an offset of 2^63 or more as negative and refuses it. Our code must not change
// such an offset to a valid one.
TEST(FileOps, RefusesOffsetsBeyondTheKernels) {
  const test::temp_folder folder;
  const unique_fd fd = create(folder / "a");
  std::array<std::byte, 1> one{};
  EXPECT_THROW(pwrite_all(fd, one, ~std::uint64_t{0}, folder / "a"), io_error);
  EXPECT_THROW((void)pread_some(fd, one, ~std::uint64_t{0}, folder / "a"), io_error);
}

TEST(FileOps, CopiesARangeUpToTheEnd) {
  const test::temp_folder folder;
  std::string text;
  for (int i = 0; text.size() < 3'000'000; ++i) text += std::to_string(i);
  test::write_text(folder / "from", text);
  const unique_fd from = open_read_only(folder / "from");
  const unique_fd to = create(folder / "to");
  const auto copy = [&](auto how) {
    EXPECT_EQ(how(from, 7, folder / "from", to, 3, folder / "to", 2'500'000), 2'500'000);
    EXPECT_TRUE(test::read_text(folder / "to").substr(3) == text.substr(7, 2'500'000));
    EXPECT_EQ(how(from, text.size() - 5, folder / "from", to, 0, folder / "to", 9), 5)
        << "less only at the end";
    EXPECT_EQ(test::read_text(folder / "to").substr(0, 5), text.substr(text.size() - 5));
    EXPECT_EQ(how(from, text.size(), folder / "from", to, 0, folder / "to", 9), 0);
    EXPECT_EQ(how(from, 0, folder / "from", to, 0, folder / "to", 0), 0);
  };
  copy(copy_range);
  copy(detail::copy_by_hand);
}

// If the kernel generates the bytes of a file on each read (as in /proc), copy_file_range cannot
// copy the file. Then our code copies it with reads and writes.
TEST(FileOps, CopiesByHandWhatTheKernelCannot) {
  const test::temp_folder folder;
  const std::string wanted = test::read_text("/proc/self/cmdline");
  const unique_fd from = open_read_only("/proc/self/cmdline");
  const unique_fd to = create(folder / "to");
  EXPECT_EQ(copy_range(from, 0, "/proc/self/cmdline", to, 0, folder / "to", 1'000'000),
            wanted.size());
  EXPECT_EQ(test::read_text(folder / "to"), wanted);
}

TEST(FileOps, CopyRangeNamesTheFileThatRefuses) {
  const test::temp_folder folder;
  test::write_text(folder / "from", "abc");
  const unique_fd from = open_read_only(folder / "from");
  try {
    (void)copy_range(from, 0, folder / "from", from, 0, folder / "to", 3);
    ADD_FAILURE() << "wrote through a descriptor that may only read";
  } catch (const io_error& e) {
    EXPECT_NE(std::string(e.what()).find((folder / "to").string()), std::string::npos);
  }
}

TEST(FileOps, UninterruptedRepeatsOnlyOnEintr) {
  int calls = 0;
  const auto third_time = [&] {
    errno = EINTR;
    return ++calls < 3 ? -1 : 5;
  };
  EXPECT_EQ(uninterrupted(third_time), 5);
  EXPECT_EQ(calls, 3);
  const auto fails = [&] {
    ++calls;
    errno = ENOSPC;
    return -1;
  };
  EXPECT_EQ(uninterrupted(fails), -1);
  EXPECT_EQ(calls, 4);
}

TEST(FileOps, ParentOfABareNameIsHere) {
  EXPECT_EQ(parent_folder("a"), ".");
  EXPECT_EQ(parent_folder("x/a"), "x");
  EXPECT_EQ(parent_folder("/a"), "/");
}

TEST(FileOps, RemoveIfExistsTellsWhetherItDid) {
  const test::temp_folder folder;
  test::write_text(folder / "a", "");
  EXPECT_TRUE(remove_if_exists(folder / "a"));
  EXPECT_FALSE(remove_if_exists(folder / "a"));
  EXPECT_THROW(remove_if_exists(folder.path()), io_error) << "a folder is no file";
}

TEST(FileOps, TellsWhatIsThere) {
  const test::temp_folder folder;
  test::write_text(folder / "file", "abc");
  std::filesystem::create_symlink("file", folder / "link");
  std::filesystem::create_symlink("none", folder / "dangling");
  EXPECT_TRUE(is_file(folder / "file"));
  EXPECT_TRUE(is_file(folder / "link"));
  EXPECT_FALSE(is_file(folder.path()));
  EXPECT_TRUE(is_folder(folder.path()));
  EXPECT_FALSE(is_folder(folder / "file"));
  EXPECT_TRUE(is_there(folder.path()));
  EXPECT_FALSE(is_there(folder / "none"));
  EXPECT_FALSE(is_there(folder / "file" / "below"));
  EXPECT_FALSE(is_there(folder / "dangling"));
  EXPECT_TRUE(is_there(folder / "dangling", links::are_not_followed));
  EXPECT_EQ(status_if_there(folder / "link").value().st_size, 3);
}

TEST(FileOps, TakesNoPathForAbsentThatCannotBeLookedAt) {
  const test::temp_folder folder;
  std::filesystem::create_symlink("loop", folder / "loop");
  for (const auto& path : {folder / "loop", folder / std::string(300, 'x')}) {
    EXPECT_THROW((void)is_file(path), io_error) << path;
    EXPECT_THROW((void)is_folder(path), io_error) << path;
    EXPECT_THROW((void)is_there(path), io_error) << path;
  }
}

TEST(FileOps, SyncFolderWantsAFolder) {
  const test::temp_folder folder;
  EXPECT_NO_THROW(sync_folder(folder.path()));
  test::write_text(folder / "a", "");
  EXPECT_THROW(sync_folder(folder / "a"), io_error);
  EXPECT_THROW(sync_folder(folder / "none"), io_error);
}

}  // namespace
}  // namespace millrace::io
