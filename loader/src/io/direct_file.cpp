// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/io/direct_file.hpp>

#include <fcntl.h>
#include <linux/stat.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <string>
#include <system_error>
#include <utility>

#include <millrace/io/detail/unique_fd.hpp>
#include <millrace/loader/detail/io/file_system.hpp>

namespace millrace::loader {

MILLRACE_INLINE std::pair<direct_alignment, std::string> direct_alignment_of(int fd) {
#if defined(STATX_DIOALIGN)
  struct ::statx status {};
  // Makes the system call directly, because `struct statx` of older C libraries has no field for
  // the alignment.
  if (::syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &status) == 0 &&
      (status.stx_mask & STATX_DIOALIGN) != 0) {
    const direct_alignment said{status.stx_dio_mem_align, status.stx_dio_offset_align};
    return {said, "statx requires multiples of " + std::to_string(said.offset) + " bytes"};
  }
#endif
  return {{}, "statx reports no alignment, so multiples of 4096 bytes are used"};
}

MILLRACE_INLINE direct_file open_direct(const io::unique_fd& fd) {
  direct_file file;
  auto [alignment, why] = direct_alignment_of(fd.get());
  // The alignment of our buffers. No known disk or file system requires more.
  constexpr std::uint32_t most = 4096;
  if (alignment.offset == 0) {
    file.why = "the file system does not support direct reads";
    return file;
  }
  if (std::max(alignment.offset, alignment.memory) > most ||
      !std::has_single_bit(alignment.offset) || !std::has_single_bit(alignment.memory)) {
    file.why = "direct reads of this file require multiples of " +
               std::to_string(alignment.offset) + " bytes, expected at most 4096";
    return file;
  }
  // If a FUSE program returns too few bytes for a direct read by io_uring, the kernel restarts the
  // read from its beginning instead of resuming it. The kernel then reports that all bytes were
  // read, but the last bytes are wrong (Linux 6.18).
  if (magic_of(fd) == fuse_magic) {
    file.why = "on a FUSE file system, a short direct read can return wrong bytes";
    return file;
  }
  const std::string again = "/proc/self/fd/" + std::to_string(fd.get());
  file.fd = io::unique_fd(
      io::uninterrupted([&] { return ::open(again.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT); }));
  const int code = file.fd ? 0 : errno;
  file.alignment = alignment;
  file.why = file.fd ? why : "open with O_DIRECT: " + std::generic_category().message(code);
  file.may_pass = code == EMFILE || code == ENFILE || code == ENOMEM;
  return file;
}

}  // namespace millrace::loader
