// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include <millrace/io/atomic_file.hpp>
#include <millrace/io/file_mapping.hpp>

#include "support/child_process.hpp"
#include "support/paths.hpp"

// These tests use the real kernel. They simulate only faults that the kernel cannot produce on
// demand. To simulate these faults, this program has its own `fsync` and `pwrite`, which replace
// those of libc. Both pass every call to the kernel, unless a test has requested a fault.
namespace {
std::atomic<int> failing_fsyncs = 0;
std::atomic<int> interrupted_calls = 0;
std::atomic<std::size_t> longest_write = ~std::size_t{0};

bool take_one(std::atomic<int>& count) {
  return count.load() > 0 && count.fetch_sub(1) > 0;
}
}  // namespace

extern "C" int fsync(int fd) {
  if (take_one(interrupted_calls)) return errno = EINTR, -1;
  if (take_one(failing_fsyncs)) return errno = EIO, -1;
  return static_cast<int>(::syscall(SYS_fsync, fd));
}

extern "C" ssize_t pwrite(int fd, const void* data, std::size_t size, off_t offset) {
  if (take_one(interrupted_calls)) return errno = EINTR, -1;
  return ::syscall(SYS_pwrite64, fd, data, std::min(size, longest_write.load()), offset);
}

namespace millrace::io {
namespace {

namespace fs = std::filesystem;

using test::become_ordinary_user;
using test::cannot_try;
using test::end_of;
using test::in_child;
using test::start_child;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

/// Returns the errno of the io_error that `f` throws, or 0 if `f` throws nothing.
int code_of(const std::function<void()>& f) {
  try {
    f();
    return 0;
  } catch (const io_error& e) {
    return e.code();
  }
}

bool limit(int resource, rlim_t most) {
  const rlimit both{most, most};
  return ::setrlimit(static_cast<__rlimit_resource>(resource), &both) == 0;
}

TEST(IoFault, FullDeviceIsEnospc) {
  const unique_fd fd(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(fd);
  EXPECT_EQ(code_of([&] { pwrite_all(fd, bytes_of("abc"), 0, "/dev/full"); }), ENOSPC);
}

// Uses a file system that really fills up. The test is skipped if this process has no permission to
// mount one.
TEST(IoFault, FullFileSystemLeavesTheOldFile) {
  const test::temp_folder folder;
  const int result = in_child([&] {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
      return cannot_try;
    if (::mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=64k") != 0) return cannot_try;
    test::write_text(folder / "a", "the old one");
    const std::string much(1 << 20, 'x');
    const int code = code_of([&] {
      atomic_file file(folder / "a");
      file.append(bytes_of(much));
      file.commit();
    });
    if (code != ENOSPC) return 1;
    return test::read_text(folder / "a") == "the old one" && !fs::exists(folder / "a.partial") ? 0
                                                                                               : 2;
  });
  if (result == cannot_try) GTEST_SKIP() << "may not mount a tmpfs here";
  EXPECT_EQ(result, 0);
}

TEST(IoFault, FileSizeLimitIsAnErrorAndLeavesNothing) {
  const test::temp_folder folder;
  EXPECT_EQ(in_child([&] {
              ::signal(SIGXFSZ, SIG_IGN);
              if (!limit(RLIMIT_FSIZE, 10000)) return cannot_try;
              return code_of([&] {
                atomic_file file(folder / "a");
                const std::string text(4096, 'x');
                for (int i = 0; i < 3; ++i) file.append(bytes_of(text));
                file.commit();
              });
            }),
            EFBIG);
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

// The commit at the end of a long run must succeed even if all descriptors are in use.
TEST(IoFault, CommitNeedsNoNewDescriptor) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer itself needs descriptors, and takes their lack for a fault";
#endif
  const test::temp_folder folder;
  EXPECT_EQ(in_child([&] {
              atomic_file file(folder / "a");
              file.append(bytes_of("abc"));
              if (!limit(RLIMIT_NOFILE, 0)) return cannot_try;
              if (code_of([&] { const file_mapping m(folder / "a.partial"); }) != EMFILE) return 1;
              if (code_of([&] { const atomic_file f(folder / "b"); }) != EMFILE) return 2;
              file.commit();
              return 0;
            }),
            0);
  EXPECT_EQ(test::read_text(folder / "a"), "abc");
}

TEST(IoFault, MapsNoFolderAndNoDevice) {
  const test::temp_folder folder;
  EXPECT_EQ(code_of([&] { const file_mapping m(folder.path()); }), EISDIR);
  EXPECT_EQ(code_of([&] { const file_mapping m("/dev/null"); }), EINVAL);
}

// Opening a FIFO waits for a writer, possibly forever.
TEST(IoFault, RefusesAFifoWithoutWaiting) {
  const test::temp_folder folder;
  ASSERT_EQ(::mkfifo((folder / "fifo").c_str(), 0600), 0);
  ASSERT_EQ(::mkfifo((folder / "a.partial").c_str(), 0600), 0);
  EXPECT_EQ(in_child([&] {
              ::alarm(30);
              if (code_of([&] { const file_mapping m(folder / "fifo"); }) != EINVAL) return 1;
              if (code_of([&] { const atomic_file f(folder / "fifo"); }) != EINVAL) return 2;
              if (code_of([&] { const atomic_file f(folder / "a"); }) != EINVAL) return 3;
              return 0;
            }),
            0);
}

TEST(IoFault, UnusableFoldersAreRefusedAtOnce) {
  const test::temp_folder folder;
  const int result = in_child([&] {
    if (!become_ordinary_user()) return cannot_try;
    const auto refused_with_mode = [&](::mode_t mode) {
      ::chmod(folder.path().c_str(), mode);
      const int code = code_of([&] { const atomic_file f(folder / "a"); });
      ::chmod(folder.path().c_str(), 0700);
      return code == EACCES && fs::is_empty(folder.path());
    };
    if (!refused_with_mode(0500)) return 1;  // the folder does not allow new files
    if (!refused_with_mode(0300)) return 2;  // the folder cannot be opened to sync it
    if (!refused_with_mode(0000)) return 3;
    return 0;
  });
  if (result == cannot_try) GTEST_SKIP() << "cannot become an ordinary user";
  EXPECT_EQ(result, 0);
}

// The lock of a writer must end when the writer's process dies. The `.partial` file that this
// process leaves must not block the next writer.
TEST(IoFault, OneWriterAtATimeUntilItDies) {
  const test::temp_folder folder;
  std::array<int, 2> ready{};
  ASSERT_EQ(::pipe(ready.data()), 0);
  const pid_t child = start_child([&] {
    atomic_file file(folder / "a");
    file.append(bytes_of("of the dead"));
    if (::write(ready[1], "x", 1) != 1) return 1;
    for (;;) ::pause();
  });
  char x = 0;
  ASSERT_EQ(::read(ready[0], &x, 1), 1);
  EXPECT_EQ(code_of([&] { const atomic_file f(folder / "a"); }), EWOULDBLOCK);
  EXPECT_EQ(test::read_text(folder / "a.partial"), "of the dead") << "the loser emptied it";

  ::kill(child, SIGKILL);
  EXPECT_EQ(end_of(child), 1000 + SIGKILL);
  EXPECT_FALSE(fs::exists(folder / "a"));
  EXPECT_TRUE(fs::exists(folder / "a.partial"));
  atomic_file file(folder / "a");
  file.append(bytes_of("mine"));
  file.commit();
  EXPECT_EQ(test::read_text(folder / "a"), "mine");
  EXPECT_FALSE(fs::exists(folder / "a.partial"));
  ::close(ready[0]);
  ::close(ready[1]);
}

// preprocess_data commits the .bin before the .idx, so an .idx exists only next to a finished .bin.
TEST(IoFault, KillBetweenTwoCommitsLeavesTheFirstOnly) {
  const test::temp_folder folder;
  EXPECT_EQ(in_child([&] {
              atomic_file bin(folder / "a.bin");
              atomic_file idx(folder / "a.idx");
              bin.append(bytes_of("tokens"));
              idx.append(bytes_of("index"));
              bin.sync();
              idx.sync();
              bin.commit();
              ::raise(SIGKILL);
              idx.commit();
              return 0;
            }),
            1000 + SIGKILL);
  EXPECT_EQ(test::read_text(folder / "a.bin"), "tokens");
  EXPECT_FALSE(fs::exists(folder / "a.idx"));
}

// Several processes write the same file at the same time. Each committed file must hold the bytes
// of only one process.
TEST(IoFault, RacingWritersNeverMix) {
  const test::temp_folder folder;
  std::array<pid_t, 4> children{};
  for (std::size_t c = 0; c < children.size(); ++c) {
    children[c] = start_child([&, c] {
      const std::string mine(10000, "abcd"[c]);
      for (int i = 0; i < 100; ++i) {
        const int code = code_of([&] {
          atomic_file file(folder / "a");
          file.append(bytes_of(mine));
          if (i % 3 != 0) file.commit();
        });
        if (code != 0 && code != EWOULDBLOCK) return 1;
        if (!fs::exists(folder / "a")) continue;
        const std::string seen = test::read_text(folder / "a");
        if (seen.size() != mine.size() || seen.find_first_not_of(seen[0]) != seen.npos) return 2;
      }
      return 0;
    });
  }
  for (const pid_t child : children) EXPECT_EQ(end_of(child), 0);
  EXPECT_FALSE(fs::exists(folder / "a.partial"));
}

TEST(IoFault, FailedRenameLeavesNothing) {
  const test::temp_folder folder;
  {
    atomic_file file(folder / "a");
    file.append(bytes_of("abc"));
    fs::create_directory(folder / "a");
    EXPECT_EQ(code_of([&] { file.commit(); }), EISDIR);
  }
  EXPECT_FALSE(fs::exists(folder / "a.partial"));
}

// After a failed fsync, the kernel marks the pages as clean. So the next fsync succeeds, although
// the data are lost.
TEST(IoFault, FailedFsyncCannotBeRetriedIntoACommit) {
  const test::temp_folder folder;
  {
    atomic_file file(folder / "a");
    file.append(bytes_of("abc"));
    failing_fsyncs = 1;
    EXPECT_EQ(code_of([&] { file.sync(); }), EIO);
    EXPECT_FALSE(file.fd());
    EXPECT_TRUE(fs::is_empty(folder.path()));
  }
  test::write_text(folder / "a", "the old one");
  atomic_file file(folder / "a");
  failing_fsyncs = 1;
  EXPECT_EQ(code_of([&] { file.commit(); }), EIO);
  EXPECT_EQ(test::read_text(folder / "a"), "the old one");
}

TEST(IoFault, InterruptedAndShortCallsAreFinished) {
  const test::temp_folder folder;
  const std::string text(1000, 'x');
  atomic_file file(folder / "a");
  longest_write = 7;
  interrupted_calls = 5;
  file.append(bytes_of(text));
  longest_write = ~std::size_t{0};
  interrupted_calls = 5;
  file.commit();
  EXPECT_EQ(test::read_text(folder / "a"), text);
}

// pwrite may return 0 without an error. A loop that retried the call would never end.
TEST(IoFault, WriteThatTakesNothingIsAnError) {
  const test::temp_folder folder;
  atomic_file file(folder / "a");
  longest_write = 0;
  EXPECT_EQ(code_of([&] { file.append(bytes_of("abc")); }), EIO);
  longest_write = ~std::size_t{0};
  file.append(bytes_of("def"));
  file.commit();
  EXPECT_EQ(test::read_text(folder / "a"), "def") << "a failed append left no bytes before it";
}

}  // namespace
}  // namespace millrace::io
