// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <linux/stat.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <utility>

#include <millrace/detail/export.hpp>
#include <millrace/io/detail/unique_fd.hpp>

namespace millrace::loader {

/// What offsets, lengths and addresses of direct reads (O_DIRECT) must be multiples of.
struct direct_alignment {
  std::uint32_t memory = 4096;
  std::uint32_t offset = 4096;
};

/// A file opened for direct reads; or why it cannot be.
struct direct_file {
  io::unique_fd fd;
  direct_alignment alignment;
  std::string why;        ///< of the alignment, or, without `fd`, why there is none
  bool may_pass = false;  ///< whether it was refused for want of something
};

/// What statx(2) says by STATX_DIOALIGN (Linux 6.1; ext4, XFS, f2fs, block devices); nothing said
/// is 4,096, which suits every disk there is. Never found by trying: a read that is let through
/// today may be refused by another disk.
///
/// The alignment is {0, 0} where the file system says that there are no direct reads.
MILLRACE_EXPORT std::pair<direct_alignment, std::string> direct_alignment_of(int fd);

/// Opens the file that `fd` is once more, for direct reads: the very same one, whatever its name
/// means by now.
MILLRACE_EXPORT direct_file open_direct(const io::unique_fd& fd);

}  // namespace millrace::loader
