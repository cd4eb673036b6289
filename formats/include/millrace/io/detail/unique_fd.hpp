// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>

#include <millrace/error.hpp>
#include <millrace/io/detail/unique_handle.hpp>

namespace millrace::io {

using unique_fd = unique_handle<int, -1, ::close>;

static_assert(sizeof(::off_t) == 8, "on 32-bit systems build with -D_FILE_OFFSET_BITS=64");

/// Makes a system call, `call()`, and repeats it if a signal interrupts it. Returns the last
/// result.
template <class Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result == -1 && errno == EINTR) result = call();
  return result;
}

/// Opens `path` for reading. If `path` is a FIFO, waits for a writer, unless `extra_flags` has
/// O_NONBLOCK.
///
/// @throws io_error  `path` cannot be opened.
inline unique_fd open_read_only(const std::filesystem::path& path, int extra_flags = 0) {
  unique_fd fd(
      uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | extra_flags); }));
  if (!fd) throw io_error(path, "open", errno);
  return fd;
}

/// Size in bytes of the regular file that `fd` has open.
///
/// @throws io_error  fstat fails; the file is a directory (EISDIR) or another special file, whose
///                   size means nothing (EINVAL).
inline std::uint64_t regular_file_size(const unique_fd& fd, const std::filesystem::path& path) {
  struct ::stat status {};
  if (::fstat(fd.get(), &status) != 0) throw io_error(path, "fstat", errno);
  if (S_ISDIR(status.st_mode)) throw io_error(path, "open", EISDIR);
  if (!S_ISREG(status.st_mode)) throw io_error(path, "open (not a regular file)", EINVAL);
  return static_cast<std::uint64_t>(status.st_size);
}

}  // namespace millrace::io
