// SPDX-License-Identifier: Apache-2.0
#include "cache/cache_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/io/atomic_file.hpp>

#include "support/child_process.hpp"
#include "support/paths.hpp"

namespace millrace::tokenizer::detail {
namespace {

class CacheFile : public testing::Test {
 protected:
  static std::vector<std::byte> bytes_of(std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
  }
  std::string read(const cache_key& key) const {
    const cache_contents found = read_cache_file(path_, key);
    if (!found.memory) return "nothing";
    return {reinterpret_cast<const char*>(found.bytes.data()), found.bytes.size()};
  }
  std::string read() const { return read(key_); }
  void write() const { write_cache_file(path_, key_, bytes_of(text_)); }

  const test::temp_folder folder_{test::quick_folder()};
  const std::filesystem::path path_ = folder_ / "a.tables";
  const cache_key key_ = {1, 2, 3};
  const std::string text_ = "what took long to compute";
};

TEST_F(CacheFile, GivesBackWhatWasWritten) {
  EXPECT_EQ(read(), "nothing");
  write();
  EXPECT_EQ(read(), text_);
  EXPECT_FALSE(std::filesystem::exists(path_.string() + ".partial"));
  write_cache_file(path_, key_, {});
  EXPECT_EQ(read(), "");
}

TEST_F(CacheFile, IsOfOneKey) {
  write();
  for (std::size_t i = 0; i < key_.size(); ++i) {
    cache_key other = key_;
    other[i] ^= 1;
    EXPECT_EQ(read(other), "nothing") << "byte " << i;
  }
}

TEST_F(CacheFile, NoticesEachAlteredBit) {
  write();
  const std::string whole = test::read_text(path_);
  for (std::size_t i = 0; i < 8 * whole.size(); ++i) {
    std::string altered = whole;
    altered[i / 8] = static_cast<char>(altered[i / 8] ^ 1 << i % 8);
    test::write_text(path_, altered);
    EXPECT_EQ(read(), "nothing") << "bit " << i;
  }
}

TEST_F(CacheFile, NoticesThatItWasCutOrExtended) {
  write();
  const std::string whole = test::read_text(path_);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    test::write_text(path_, whole.substr(0, size));
    EXPECT_EQ(read(), "nothing") << size << " bytes";
  }
  test::write_text(path_, whole + '\0');
  EXPECT_EQ(read(), "nothing");
}

TEST_F(CacheFile, IsNotUsedIfOthersMayWriteIt) {
  write();
  for (const ::mode_t mode : {0600U, 0644U, 0400U}) {
    ASSERT_EQ(::chmod(path_.c_str(), mode), 0);
    EXPECT_EQ(read(), text_) << mode;
  }
  for (const ::mode_t mode : {0620U, 0602U, 0666U}) {
    ASSERT_EQ(::chmod(path_.c_str(), mode), 0);
    EXPECT_EQ(read(), "nothing") << mode;
  }
}

TEST_F(CacheFile, CannotBeWrittenByOthersWhateverTheUmask) {
  const ::mode_t before = ::umask(0);
  write();
  ::umask(before);
  EXPECT_EQ(read(), text_);
}

TEST_F(CacheFile, OfAnotherUserIsNotUsed) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file to another user";
  write();
  ASSERT_EQ(::chown(path_.c_str(), 12345, ::getegid()), 0);
  EXPECT_EQ(read(), "nothing");
  write();  // replaces it
  EXPECT_EQ(read(), text_);
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0755), 0);
  const auto as_another_user = [&] {
    if (::setuid(12345) != 0) return test::cannot_try;
    return read() == text_ ? 0 : 1;
  };
  EXPECT_EQ(test::in_child(as_another_user), 0) << "a file of root is used by everybody";
}

TEST_F(CacheFile, IsNotALink) {
  write();
  std::filesystem::rename(path_, folder_ / "elsewhere");
  std::filesystem::create_symlink(folder_ / "elsewhere", path_);
  EXPECT_EQ(read(), "nothing");
  write();  // replaces the link
  EXPECT_EQ(read(), text_);
}

TEST_F(CacheFile, IsNotAFolderOrAPipe) {
  std::filesystem::create_directory(path_);
  EXPECT_EQ(read(), "nothing");
  EXPECT_THROW(write(), io_error);
  std::filesystem::remove(path_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(read(), "nothing");
}

// A file that is being written is left to its writer. What a killed writer has left behind does not
// disturb the next one.
TEST_F(CacheFile, HasOneWriterAtATime) {
  {
    const io::atomic_file other(path_);
    EXPECT_NO_THROW(write());
    EXPECT_EQ(read(), "nothing");
  }
  test::write_text(path_.string() + ".partial", "half a fi");
  write();
  EXPECT_EQ(read(), text_);
}

TEST(CacheFolder, IsCreatedForThisUserAlone) {
  const test::temp_folder parent;
  EXPECT_EQ(fault_of_cache_folder(parent / "cache"), "");
  struct ::stat status {};
  ASSERT_EQ(::stat((parent / "cache").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700U);
  EXPECT_EQ(fault_of_cache_folder(parent / "cache"), "");
  EXPECT_THROW((void)fault_of_cache_folder(parent / "no/such/cache"), io_error);
  test::write_text(parent / "file", "");
  EXPECT_THROW((void)fault_of_cache_folder(parent / "file"), io_error);
}

TEST(CacheFolder, IsNotOneInWhichEverybodyMayReplaceFiles) {
  const test::temp_folder folder;
  ASSERT_EQ(::chmod(folder.path().c_str(), 0777), 0);
  EXPECT_NE(fault_of_cache_folder(folder.path()), "");
  ASSERT_EQ(::chmod(folder.path().c_str(), 01777), 0);
  EXPECT_EQ(fault_of_cache_folder(folder.path()), "");
  ASSERT_EQ(::chmod(folder.path().c_str(), 0775), 0);
  EXPECT_EQ(fault_of_cache_folder(folder.path()), "");
}

}  // namespace
}  // namespace millrace::tokenizer::detail
