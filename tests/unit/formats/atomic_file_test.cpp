// SPDX-License-Identifier: Apache-2.0
#include <millrace/io/atomic_file.hpp>

#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/faulty_calls.hpp"
#include "support/paths.hpp"

namespace millrace::io {
namespace {

namespace fs = std::filesystem;

void append(atomic_file& file, std::string_view text) {
  file.append(std::as_bytes(std::span(text)));
}

class AtomicFile : public testing::Test {
 protected:
  fs::path path() const { return folder_ / "a.bin"; }
  fs::path partial() const { return folder_ / "a.bin.partial"; }

  int code_of(const fs::path& target) const {
    try {
      const atomic_file file(target);
      return 0;
    } catch (const io_error& e) {
      return e.code();
    }
  }

  static bool throws_file_busy(const fs::path& target) {
    try {
      const atomic_file file(target);
    } catch (const file_busy&) {
      return true;
    } catch (const io_error&) {
    }
    return false;
  }

  test::temp_folder folder_;
};

TEST_F(AtomicFile, AppearsAtCommitOnly) {
  atomic_file file(path());
  append(file, "abc");
  append(file, "def");
  EXPECT_EQ(file.size_bytes(), 6);
  EXPECT_FALSE(fs::exists(path()));
  file.commit();
  EXPECT_EQ(test::read_text(path()), "abcdef");
  EXPECT_FALSE(fs::exists(partial()));
}

TEST_F(AtomicFile, LeavesNothingWithoutCommit) {
  {
    atomic_file file(path());
    append(file, "abc");
    EXPECT_TRUE(fs::exists(partial()));
  }
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

TEST_F(AtomicFile, ReplacesTheOldFileOnlyAtCommit) {
  test::write_text(path(), "the old one");
  {
    atomic_file given_up(path());
    append(given_up, "half");
  }
  EXPECT_EQ(test::read_text(path()), "the old one");
  atomic_file file(path());
  append(file, "new");
  EXPECT_EQ(test::read_text(path()), "the old one");
  file.commit();
  EXPECT_EQ(test::read_text(path()), "new");
}

TEST_F(AtomicFile, StartsALeftPartialFileAfresh) {
  test::write_text(partial(), "what a killed run left, and it was longer");
  atomic_file file(path());
  append(file, "short");
  file.commit();
  EXPECT_EQ(test::read_text(path()), "short");
}

TEST_F(AtomicFile, KeepsASecondWriterOut) {
  {
    atomic_file first(path());
    EXPECT_EQ(code_of(path()), EWOULDBLOCK);
    append(first, "first");
    first.commit();
    EXPECT_EQ(code_of(path()), 0) << "a committed file holds no lock";
  }
  EXPECT_EQ(test::read_text(path()), "first") << "the second, not committed, changed nothing";
}

TEST_F(AtomicFile, TellsALockFromOtherErrors) {
  const atomic_file first(path());
  EXPECT_THROW(atomic_file{path()}, file_busy);
  EXPECT_FALSE(throws_file_busy(folder_ / "none" / "a.bin")) << "there is no such folder";
}

TEST_F(AtomicFile, TriesALockAgainAfterASignal) {
  {
    const atomic_file first(path());
    const test::fault_scope interrupted(test::flock_fault, EINTR, 2);
    EXPECT_TRUE(throws_file_busy(path()));
    EXPECT_EQ(test::flock_fault.failed, 2);
  }
  test::write_text(partial(), "of a process that was killed");
  const test::fault_scope interrupted(test::flock_fault, EINTR, 2);
  remove_stale_partials(std::vector<fs::path>{path()});
  EXPECT_FALSE(fs::exists(partial()));
}

TEST_F(AtomicFile, RemovesStalePartialFiles) {
  const std::vector<fs::path> paths = {path(), folder_ / "b.bin", folder_ / "c.bin"};
  EXPECT_NO_THROW(remove_stale_partials(paths)) << "none is there";
  test::write_text(partial(), "");
  test::write_text(folder_ / "c.bin.partial", "of a process that was killed");
  test::write_text(folder_ / "d.bin.partial", "of something else");
  test::write_text(path(), "whole");
  remove_stale_partials(paths);
  EXPECT_FALSE(fs::exists(partial()));
  EXPECT_FALSE(fs::exists(folder_ / "c.bin.partial"));
  EXPECT_TRUE(fs::exists(folder_ / "d.bin.partial"));
  EXPECT_EQ(test::read_text(path()), "whole");
}

TEST_F(AtomicFile, RemovesNoPartialFilesOfALivingWriter) {
  const std::vector<fs::path> paths = {path(), folder_ / "b.bin"};
  atomic_file first(path());
  atomic_file second(paths[1]);
  remove_stale_partials(paths);
  EXPECT_TRUE(fs::exists(partial()));
  second.commit();
  first.commit();
}

TEST_F(AtomicFile, MovedFromOwnsNothing) {
  atomic_file first(path());
  append(first, "abc");
  {
    atomic_file second = std::move(first);
    append(second, "def");
    second.commit();
  }
  EXPECT_EQ(test::read_text(path()), "abcdef");
}

// A file object removes only its own partial file. When the object is destroyed, the partial file
// of that name may already belong to the next writer.
TEST_F(AtomicFile, RemovesNoPartialFileButItsOwn) {
  {
    atomic_file first(path());
    append(first, "abc");
    first.commit();
    atomic_file next(path());
    { const atomic_file gone = std::move(first); }
    EXPECT_TRUE(fs::exists(partial()));
  }
  {
    const atomic_file first(path());
    fs::remove(partial());
    test::write_text(partial(), "somebody else's");
  }
  EXPECT_EQ(test::read_text(partial()), "somebody else's");
}

TEST_F(AtomicFile, PublishesNoPartialFileButItsOwn) {
  atomic_file file(path());
  append(file, "abc");
  fs::remove(partial());
  test::write_text(partial(), "somebody else's");
  EXPECT_THROW(file.commit(), io_error);
  EXPECT_FALSE(fs::exists(path()));
}

TEST_F(AtomicFile, RefusesAtOnceWhatItCouldNotCommit) {
  fs::create_directory(folder_ / "folder");
  EXPECT_EQ(code_of(folder_ / "folder"), EISDIR);
  EXPECT_EQ(code_of(folder_ / "folder/"), EISDIR);
  EXPECT_EQ(code_of(folder_ / "none/a.bin"), ENOENT);
  test::write_text(folder_ / "file", "");
  EXPECT_EQ(code_of(folder_ / "file/a.bin"), ENOTDIR);
  EXPECT_EQ(code_of("/dev/null"), EINVAL);
  EXPECT_EQ(code_of(folder_ / std::string(255, 'n')), ENAMETOOLONG);
}

// A link at the partial name is not followed. Otherwise, anyone with write access to the folder
// could point that name at one of our files.
TEST_F(AtomicFile, FollowsNoLinkFromThePartialName) {
  test::write_text(folder_ / "precious", "keep");
  fs::create_symlink(folder_ / "precious", partial());
  EXPECT_EQ(code_of(path()), ELOOP);
  EXPECT_EQ(test::read_text(folder_ / "precious"), "keep");
}

// An interrupted run resumes after the bytes that are known to be safe.
TEST_F(AtomicFile, GoesOnWithWhatWasKept) {
  {
    atomic_file file(path());
    append(file, "abcdef");
    file.keep();
  }
  EXPECT_EQ(test::read_text(partial()), "abcdef");
  {
    atomic_file file(path(), atomic_file::start::go_on);
    EXPECT_EQ(file.size_bytes(), 6U);
    file.resize(3);
    append(file, "XY");
    file.commit();
  }
  EXPECT_EQ(test::read_text(path()), "abcXY");
  EXPECT_FALSE(fs::exists(partial()));
}

TEST_F(AtomicFile, RemovesWhatItKeptOnceItIsForgotten) {
  atomic_file::start how = atomic_file::start::afresh;
  for (const bool forgotten : {false, true}) {
    {
      atomic_file file(path(), how);
      append(file, "abc");
      file.keep();
      if (forgotten) file.forget();
    }
    EXPECT_EQ(fs::exists(partial()), !forgotten);
    how = atomic_file::start::go_on;
  }
}

// The contents of the file do not depend on reserved space, or on the use of the page cache.
TEST_F(AtomicFile, HoldsWhatWasAppendedHoweverItWas) {
  {
    atomic_file file(path());
    file.reserve(std::uint64_t{1} << 20);
    file.append(std::as_bytes(std::span(std::string_view("abc"))), page_cache::pass_through);
    append(file, "def");
    EXPECT_EQ(file.size_bytes(), 6U);
    file.resize(file.size_bytes());
    file.commit();
  }
  EXPECT_EQ(test::read_text(path()), "abcdef");
  const unique_fd fd = open_read_only(path());
  std::string back(10, '?');
  const auto out = std::as_writable_bytes(std::span(back));
  EXPECT_EQ(pread_some(fd, out, 0, path(), page_cache::pass_through), 6U);
  EXPECT_EQ(back.substr(0, 6), "abcdef");
}

// A process may be unable to resume a partial file, for example because it has no free descriptor.
// It must then leave the file, so that another process can resume it.
TEST_F(AtomicFile, LeavesWhatItGoesOnWith) {
  test::write_text(partial(), "abc");
  {
    atomic_file file(path(), atomic_file::start::go_on);
    EXPECT_EQ(file.size_bytes(), 3U);
    append(file, "d");
  }
  EXPECT_EQ(test::read_text(partial()), "abcd");
  {
    atomic_file file(path(), atomic_file::start::go_on);
    file.forget();
  }
  EXPECT_FALSE(fs::exists(partial()));
}

TEST_F(AtomicFile, WritesABareNameHere) {
  const fs::path before = fs::current_path();
  fs::current_path(folder_.path());
  {
    atomic_file file("a.bin");
    append(file, "abc");
    file.commit();
  }
  fs::current_path(before);
  EXPECT_EQ(test::read_text(path()), "abc");
}

}  // namespace
}  // namespace millrace::io
