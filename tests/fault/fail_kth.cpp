// SPDX-License-Identifier: Apache-2.0
//
// A library for LD_PRELOAD that makes the k-th system call of one kind fail. It replaces functions
// of libc in the program under test. `fail_kth.py` controls it through environment variables:
//
//   MILLRACE_FAIL_FOLDER  Only calls on files under this absolute path count. Required.
//   MILLRACE_FAIL_BOARD   A file of `sizeof(board)` zero bytes. It receives the number of calls
//                         of each kind and the first call that failed. The library maps the file
//                         as shared memory, so the report survives SIGKILL.
//   MILLRACE_FAIL_KTH     KIND:K:FAULT:once|on. K counts from 1. `on` repeats the fault in all
//                         later calls of the kind. Without this variable, the library only
//                         counts calls.
//   MILLRACE_FAIL_NAME    Only calls on files whose path ends with this text count.
//   MILLRACE_FAIL_RANK    Only calls of the MPI process with this rank count.
//
// FAULT is one of these:
//
//   the name of an errno          the call fails with this error
//   short                         a read or write transfers half of the requested bytes
//   no-size                       statfs and statvfs report 0 blocks, like a FUSE file system
//                                 without statfs
//   kill-before, kill-after       SIGKILL ends the process before or after the call
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdio>

#include "fault/kth_call.hpp"

// In this source, each replacement function has its own name (`fail_open`). Its symbol in the
// library has the name of the libc function (`open`). Therefore, a replacement need not match the
// declaration in the headers of libc. File offsets have 64 bits, so `open64` can be an alias of
// `open`. The same applies to other pairs of functions.
#define MILLRACE_STAND_IN(result, name, parameters)        \
  extern "C" result fail_##name parameters __asm__(#name); \
  __attribute__((visibility("default"))) result fail_##name parameters
#define MILLRACE_SAME(other, name)                 \
  extern "C" __attribute__((visibility("default"), \
                            alias(#name))) decltype(fail_##name) fail_##other __asm__(#other)
#define MILLRACE_REAL(name) \
  static auto* const real = millrace::test::libc<decltype(fail_##name)>(#name)
static_assert(sizeof(::off_t) == 8);

namespace {

using namespace millrace::test;

template <class Call>
int opened(int folder, const char* path, const char* function, Call&& call) {
  const bool ours = is_ours(folder, path);
  const int fd = attempt(ours, kind::open, {function, -1, path}, -1, call);
  if (fd >= 0) track(fd, ours);
  return fd;
}

bool needs_mode(int flags) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
}

// Reads the variadic argument `mode` that follows `last`, if `flags` require one.
#define MILLRACE_MODE(flags, last) \
  ::mode_t mode = 0;               \
  if (needs_mode(flags)) {         \
    std::va_list more;             \
    va_start(more, last);          \
    mode = va_arg(more, ::mode_t); \
    va_end(more);                  \
  }

template <class Call>
int on_path(kind which, const char* function, int folder, const char* path, Call&& call) {
  return attempt(is_ours(folder, path), which, {function, folder, path}, -1, call);
}

template <class Call>
int on_file(kind which, const char* function, int fd, Call&& call) {
  return attempt(is_tracked(fd), which, {function, fd}, -1, call);
}

// Like on_file(), but for functions that return their error code instead of setting errno.
template <class Call>
int advised(kind which, const char* function, int fd, Call&& call) {
  return attempt(is_tracked(fd), which, {function, fd}, given().code, call);
}

}  // namespace

MILLRACE_STAND_IN(int, open, (const char* path, int flags, ...)) {
  MILLRACE_REAL(open);
  MILLRACE_MODE(flags, flags)
  return opened(AT_FDCWD, path, "open", [&] { return real(path, flags, mode); });
}
MILLRACE_SAME(open64, open);
MILLRACE_STAND_IN(int, openat, (int folder, const char* path, int flags, ...)) {
  MILLRACE_REAL(openat);
  MILLRACE_MODE(flags, flags)
  return opened(folder, path, "openat", [&] { return real(folder, path, flags, mode); });
}
MILLRACE_SAME(openat64, openat);
MILLRACE_STAND_IN(int, creat, (const char* path, ::mode_t mode)) {
  MILLRACE_REAL(creat);
  return opened(AT_FDCWD, path, "creat", [&] { return real(path, mode); });
}
MILLRACE_SAME(creat64, creat);
MILLRACE_STAND_IN(int, mkostemp, (char* path, int flags)) {
  MILLRACE_REAL(mkostemp);
  return opened(AT_FDCWD, path, "mkostemp", [&] { return real(path, flags); });
}
MILLRACE_SAME(mkostemp64, mkostemp);
MILLRACE_STAND_IN(std::FILE*, fopen, (const char* path, const char* how)) {
  MILLRACE_REAL(fopen);
  const bool ours = is_ours(AT_FDCWD, path);
  std::FILE* const none = nullptr;
  std::FILE* const file =
      attempt(ours, kind::open, {"fopen", -1, path}, none, [&] { return real(path, how); });
  if (file != nullptr) track(::fileno(file), ours);
  return file;
}
MILLRACE_SAME(fopen64, fopen);
MILLRACE_STAND_IN(int, close, (int fd)) {
  MILLRACE_REAL(close);
  const bool ours = is_tracked(fd);
  track(fd, false);
  // On Linux, a failed close still closes the descriptor. A simulated failure must do the same.
  const int result = attempt(ours, kind::close, {"close", fd}, -1, [&] { return real(fd); });
  if (ours && result != 0) {
    const int code = errno;
    (void)real(fd);
    errno = code;
  }
  return result;
}

MILLRACE_STAND_IN(::ssize_t, read, (int fd, void* to, std::size_t size)) {
  MILLRACE_REAL(read);
  return transfer(is_tracked(fd), kind::read, {"read", fd}, size,
                  [&](std::size_t n) { return real(fd, to, n); });
}
MILLRACE_STAND_IN(::ssize_t, pread, (int fd, void* to, std::size_t size, ::off_t at)) {
  MILLRACE_REAL(pread);
  return transfer(is_tracked(fd), kind::read, {"pread", fd}, size,
                  [&](std::size_t n) { return real(fd, to, n, at); });
}
MILLRACE_SAME(pread64, pread);
MILLRACE_STAND_IN(::ssize_t, readv, (int fd, const ::iovec* parts, int count)) {
  MILLRACE_REAL(readv);
  return transfer_parts(is_tracked(fd), kind::read, {"readv", fd}, parts, count,
                        [&](const ::iovec* p, int n) { return real(fd, p, n); });
}
MILLRACE_STAND_IN(::ssize_t, preadv, (int fd, const ::iovec* parts, int count, ::off_t at)) {
  MILLRACE_REAL(preadv);
  return transfer_parts(is_tracked(fd), kind::read, {"preadv", fd}, parts, count,
                        [&](const ::iovec* p, int n) { return real(fd, p, n, at); });
}
MILLRACE_SAME(preadv64, preadv);
MILLRACE_STAND_IN(::ssize_t, preadv2,
                  (int fd, const ::iovec* parts, int count, ::off_t at, int flags)) {
  MILLRACE_REAL(preadv2);
  return transfer_parts(is_tracked(fd), kind::read, {"preadv2", fd}, parts, count,
                        [&](const ::iovec* p, int n) { return real(fd, p, n, at, flags); });
}
MILLRACE_SAME(preadv64v2, preadv2);

MILLRACE_STAND_IN(::ssize_t, write, (int fd, const void* from, std::size_t size)) {
  MILLRACE_REAL(write);
  return transfer(is_tracked(fd), kind::write, {"write", fd}, size,
                  [&](std::size_t n) { return real(fd, from, n); });
}
MILLRACE_STAND_IN(::ssize_t, pwrite, (int fd, const void* from, std::size_t size, ::off_t at)) {
  MILLRACE_REAL(pwrite);
  return transfer(is_tracked(fd), kind::write, {"pwrite", fd}, size,
                  [&](std::size_t n) { return real(fd, from, n, at); });
}
MILLRACE_SAME(pwrite64, pwrite);
MILLRACE_STAND_IN(::ssize_t, writev, (int fd, const ::iovec* parts, int count)) {
  MILLRACE_REAL(writev);
  return transfer_parts(is_tracked(fd), kind::write, {"writev", fd}, parts, count,
                        [&](const ::iovec* p, int n) { return real(fd, p, n); });
}
MILLRACE_STAND_IN(::ssize_t, pwritev, (int fd, const ::iovec* parts, int count, ::off_t at)) {
  MILLRACE_REAL(pwritev);
  return transfer_parts(is_tracked(fd), kind::write, {"pwritev", fd}, parts, count,
                        [&](const ::iovec* p, int n) { return real(fd, p, n, at); });
}
MILLRACE_SAME(pwritev64, pwritev);
MILLRACE_STAND_IN(::ssize_t, pwritev2,
                  (int fd, const ::iovec* parts, int count, ::off_t at, int flags)) {
  MILLRACE_REAL(pwritev2);
  return transfer_parts(is_tracked(fd), kind::write, {"pwritev2", fd}, parts, count,
                        [&](const ::iovec* p, int n) { return real(fd, p, n, at, flags); });
}
MILLRACE_SAME(pwritev64v2, pwritev2);
MILLRACE_STAND_IN(::ssize_t, copy_file_range,
                  (int in, ::off_t* in_at, int out, ::off_t* out_at, std::size_t size,
                   unsigned flags)) {
  MILLRACE_REAL(copy_file_range);
  return transfer(is_tracked(in) || is_tracked(out), kind::copy, {"copy_file_range", out}, size,
                  [&](std::size_t n) { return real(in, in_at, out, out_at, n, flags); });
}

MILLRACE_STAND_IN(int, fsync, (int fd)) {
  MILLRACE_REAL(fsync);
  return on_file(kind::sync, "fsync", fd, [&] { return real(fd); });
}
MILLRACE_STAND_IN(int, fdatasync, (int fd)) {
  MILLRACE_REAL(fdatasync);
  return on_file(kind::sync, "fdatasync", fd, [&] { return real(fd); });
}
MILLRACE_STAND_IN(int, sync_file_range, (int fd, ::off_t at, ::off_t size, unsigned flags)) {
  MILLRACE_REAL(sync_file_range);
  return on_file(kind::advise, "sync_file_range", fd, [&] { return real(fd, at, size, flags); });
}
MILLRACE_STAND_IN(int, posix_fadvise, (int fd, ::off_t at, ::off_t size, int advice)) {
  MILLRACE_REAL(posix_fadvise);
  return advised(kind::advise, "posix_fadvise", fd, [&] { return real(fd, at, size, advice); });
}
MILLRACE_SAME(posix_fadvise64, posix_fadvise);
MILLRACE_STAND_IN(int, ftruncate, (int fd, ::off_t size)) {
  MILLRACE_REAL(ftruncate);
  return on_file(kind::truncate, "ftruncate", fd, [&] { return real(fd, size); });
}
MILLRACE_SAME(ftruncate64, ftruncate);
MILLRACE_STAND_IN(int, truncate, (const char* path, ::off_t size)) {
  MILLRACE_REAL(truncate);
  return on_path(kind::truncate, "truncate", AT_FDCWD, path, [&] { return real(path, size); });
}
MILLRACE_SAME(truncate64, truncate);
MILLRACE_STAND_IN(int, fallocate, (int fd, int mode, ::off_t at, ::off_t size)) {
  MILLRACE_REAL(fallocate);
  return on_file(kind::allocate, "fallocate", fd, [&] { return real(fd, mode, at, size); });
}
MILLRACE_SAME(fallocate64, fallocate);
MILLRACE_STAND_IN(int, posix_fallocate, (int fd, ::off_t at, ::off_t size)) {
  MILLRACE_REAL(posix_fallocate);
  return advised(kind::allocate, "posix_fallocate", fd, [&] { return real(fd, at, size); });
}
MILLRACE_SAME(posix_fallocate64, posix_fallocate);
MILLRACE_STAND_IN(int, flock, (int fd, int operation)) {
  MILLRACE_REAL(flock);
  return on_file(kind::lock, "flock", fd, [&] { return real(fd, operation); });
}
MILLRACE_STAND_IN(int, fcntl, (int fd, int command, ...)) {
  MILLRACE_REAL(fcntl);
  std::va_list more;
  va_start(more, command);
  void* const argument = va_arg(more, void*);
  va_end(more);
  const auto call = [&] { return real(fd, command, argument); };
  switch (command) {
    case F_SETLK:
    case F_SETLKW:
    case F_OFD_SETLK:
    case F_OFD_SETLKW:
      return on_file(kind::lock, "fcntl", fd, call);
    case F_DUPFD:
    case F_DUPFD_CLOEXEC: {
      const int copy = call();
      if (copy >= 0) track(copy, is_tracked(fd));
      return copy;
    }
    default:
      return call();
  }
}
MILLRACE_SAME(fcntl64, fcntl);

MILLRACE_STAND_IN(int, rename, (const char* from, const char* to)) {
  MILLRACE_REAL(rename);
  return on_path(kind::rename, "rename", AT_FDCWD, to, [&] { return real(from, to); });
}
MILLRACE_STAND_IN(int, renameat, (int from, const char* path, int to, const char* to_path)) {
  MILLRACE_REAL(renameat);
  return on_path(kind::rename, "renameat", to, to_path,
                 [&] { return real(from, path, to, to_path); });
}
MILLRACE_STAND_IN(int, unlink, (const char* path)) {
  MILLRACE_REAL(unlink);
  return on_path(kind::unlink, "unlink", AT_FDCWD, path, [&] { return real(path); });
}
MILLRACE_STAND_IN(int, unlinkat, (int folder, const char* path, int flags)) {
  MILLRACE_REAL(unlinkat);
  return on_path(kind::unlink, "unlinkat", folder, path, [&] { return real(folder, path, flags); });
}
MILLRACE_STAND_IN(int, rmdir, (const char* path)) {
  MILLRACE_REAL(rmdir);
  return on_path(kind::unlink, "rmdir", AT_FDCWD, path, [&] { return real(path); });
}
MILLRACE_STAND_IN(int, remove, (const char* path)) {
  MILLRACE_REAL(remove);
  return on_path(kind::unlink, "remove", AT_FDCWD, path, [&] { return real(path); });
}
MILLRACE_STAND_IN(int, mkdir, (const char* path, ::mode_t mode)) {
  MILLRACE_REAL(mkdir);
  return on_path(kind::mkdir, "mkdir", AT_FDCWD, path, [&] { return real(path, mode); });
}
MILLRACE_STAND_IN(int, link, (const char* from, const char* to)) {
  MILLRACE_REAL(link);
  return on_path(kind::link, "link", AT_FDCWD, to, [&] { return real(from, to); });
}
MILLRACE_STAND_IN(int, linkat,
                  (int from, const char* path, int to, const char* to_path, int flags)) {
  MILLRACE_REAL(linkat);
  return on_path(kind::link, "linkat", to, to_path,
                 [&] { return real(from, path, to, to_path, flags); });
}

MILLRACE_STAND_IN(int, stat, (const char* path, struct ::stat* to)) {
  MILLRACE_REAL(stat);
  return on_path(kind::stat, "stat", AT_FDCWD, path, [&] { return real(path, to); });
}
MILLRACE_SAME(stat64, stat);
MILLRACE_STAND_IN(int, lstat, (const char* path, struct ::stat* to)) {
  MILLRACE_REAL(lstat);
  return on_path(kind::stat, "lstat", AT_FDCWD, path, [&] { return real(path, to); });
}
MILLRACE_SAME(lstat64, lstat);
MILLRACE_STAND_IN(int, fstat, (int fd, struct ::stat* to)) {
  MILLRACE_REAL(fstat);
  return on_file(kind::stat, "fstat", fd, [&] { return real(fd, to); });
}
MILLRACE_SAME(fstat64, fstat);
MILLRACE_STAND_IN(int, fstatat, (int folder, const char* path, struct ::stat* to, int flags)) {
  MILLRACE_REAL(fstatat);
  return on_path(kind::stat, "fstatat", folder, path,
                 [&] { return real(folder, path, to, flags); });
}
MILLRACE_SAME(fstatat64, fstatat);
MILLRACE_STAND_IN(int, statx,
                  (int folder, const char* path, int flags, unsigned mask, struct ::statx* to)) {
  MILLRACE_REAL(statx);
  return on_path(kind::stat, "statx", folder, path,
                 [&] { return real(folder, path, flags, mask, to); });
}
MILLRACE_STAND_IN(int, access, (const char* path, int mode)) {
  MILLRACE_REAL(access);
  return on_path(kind::stat, "access", AT_FDCWD, path, [&] { return real(path, mode); });
}
MILLRACE_STAND_IN(char*, realpath, (const char* path, char* to)) {
  MILLRACE_REAL(realpath);
  char* const none = nullptr;
  return attempt(is_ours(AT_FDCWD, path), kind::stat, {"realpath", -1, path}, none,
                 [&] { return real(path, to); });
}
MILLRACE_STAND_IN(int, statvfs, (const char* path, struct ::statvfs* to)) {
  MILLRACE_REAL(statvfs);
  return report_size(is_ours(AT_FDCWD, path), {"statvfs", AT_FDCWD, path}, to,
                     [&] { return real(path, to); });
}
MILLRACE_SAME(statvfs64, statvfs);
MILLRACE_STAND_IN(int, fstatvfs, (int fd, struct ::statvfs* to)) {
  MILLRACE_REAL(fstatvfs);
  return report_size(is_tracked(fd), {"fstatvfs", fd}, to, [&] { return real(fd, to); });
}
MILLRACE_SAME(fstatvfs64, fstatvfs);
MILLRACE_STAND_IN(int, statfs, (const char* path, struct ::statfs* to)) {
  MILLRACE_REAL(statfs);
  return report_size(is_ours(AT_FDCWD, path), {"statfs", AT_FDCWD, path}, to,
                     [&] { return real(path, to); });
}
MILLRACE_SAME(statfs64, statfs);
MILLRACE_STAND_IN(int, fstatfs, (int fd, struct ::statfs* to)) {
  MILLRACE_REAL(fstatfs);
  return report_size(is_tracked(fd), {"fstatfs", fd}, to, [&] { return real(fd, to); });
}
MILLRACE_SAME(fstatfs64, fstatfs);

MILLRACE_STAND_IN(void*, mmap,
                  (void* at, std::size_t size, int protection, int flags, int fd, ::off_t from)) {
  MILLRACE_REAL(mmap);
  const bool ours = (flags & MAP_ANONYMOUS) == 0 && is_tracked(fd);
  return attempt(ours, kind::map, {"mmap", fd}, MAP_FAILED,
                 [&] { return real(at, size, protection, flags, fd, from); });
}
MILLRACE_SAME(mmap64, mmap);

MILLRACE_STAND_IN(::DIR*, opendir, (const char* path)) {
  MILLRACE_REAL(opendir);
  const bool ours = is_ours(AT_FDCWD, path);
  ::DIR* const none = nullptr;
  ::DIR* const folder =
      attempt(ours, kind::list, {"opendir", -1, path}, none, [&] { return real(path); });
  if (folder != nullptr) track(::dirfd(folder), ours);
  return folder;
}
MILLRACE_STAND_IN(::DIR*, fdopendir, (int fd)) {
  MILLRACE_REAL(fdopendir);
  ::DIR* const none = nullptr;
  return attempt(is_tracked(fd), kind::list, {"fdopendir", fd}, none, [&] { return real(fd); });
}
MILLRACE_STAND_IN(::dirent*, readdir, (::DIR * folder)) {
  MILLRACE_REAL(readdir);
  const int fd = ::dirfd(folder);
  ::dirent* const none = nullptr;
  return attempt(is_tracked(fd), kind::list, {"readdir", fd}, none, [&] { return real(folder); });
}
MILLRACE_SAME(readdir64, readdir);
MILLRACE_STAND_IN(int, closedir, (::DIR * folder)) {
  MILLRACE_REAL(closedir);
  track(::dirfd(folder), false);
  return real(folder);
}
