// SPDX-License-Identifier: Apache-2.0
#include "support/faulty_calls.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cstdarg>
#include <vector>

namespace {

using namespace millrace::test;  // NOLINT: this file is theirs

// Reads at most `longest_read` bytes, even if more are requested. The kernel, too, may read fewer
// bytes than requested.
::ssize_t short_read(int fd, const ::iovec* parts, int count, off_t offset, int flags) {
  std::vector<::iovec> fewer;
  std::size_t left = longest_read;
  for (int i = 0; i < count && left > 0; ++i) {
    fewer.push_back({parts[i].iov_base, std::min(parts[i].iov_len, left)});
    left -= fewer.back().iov_len;
  }
  return ::syscall(SYS_preadv2, fd, fewer.data(), fewer.size(), offset, 0, flags);
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  ::va_list rest;
  va_start(rest, flags);
  const int mode = (flags & O_CREAT) != 0 ? va_arg(rest, int) : 0;  // NOLINT: va_start() was called
  va_end(rest);
  if ((flags & O_ACCMODE) == O_RDONLY && open_fault.strikes()) return errno = open_fault.code, -1;
  return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

ssize_t preadv2(int fd, const iovec* parts, int count, off_t offset, int flags) {
  if ((flags & RWF_NOWAIT) != 0) {
    if (nowait_code < 0) return 0;
    if (nowait_code != 0) return errno = nowait_code, -1;
  } else if (read_fault.strikes()) {
    return errno = read_fault.code, -1;
  }
  return short_read(fd, parts, count, offset, flags);
}

int flock(int fd, int operation) {
  if (flock_fault.strikes()) return errno = flock_fault.code, -1;
  return static_cast<int>(::syscall(SYS_flock, fd, operation));
}

void* mmap(void* address, std::size_t bytes, int rights, int flags, int fd, off_t offset) {
  if (fd >= 0 && map_fault.strikes()) return errno = map_fault.code, MAP_FAILED;
  const auto at = ::syscall(SYS_mmap, address, bytes, rights, flags, fd, offset);
  return reinterpret_cast<void*>(at);  // NOLINT: an address
}

int fstatfs(int fd, struct statfs* status) {
  const auto result = static_cast<int>(::syscall(SYS_fstatfs, fd, status));
  if (result == 0 && pretended_magic != 0) status->f_type = pretended_magic;
  return result;
}

int statfs(const char* path, struct statfs* status) {
  const auto result = static_cast<int>(::syscall(SYS_statfs, path, status));
  // Report the pretended type even if the path does not exist and the kernel reports an error.
  if (pretended_magic != 0) status->f_type = pretended_magic;
  return pretended_magic != 0 ? 0 : result;
}
}
