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

/// Offsets, lengths and addresses of direct reads (O_DIRECT) must be multiples of these numbers of
/// bytes.
struct direct_alignment {
  std::uint32_t memory = 4096;
  std::uint32_t offset = 4096;
};

/// A file opened for direct reads, or the reason why it cannot be.
struct direct_file {
  io::unique_fd fd;
  direct_alignment alignment;
  std::string why;        ///< source of the alignment; if `fd` is empty, why it is empty
  bool may_pass = false;  ///< true if only a lack of resources prevented the open
};

/// The alignment that statx(2) reports (STATX_DIOALIGN, from Linux 6.1 on, for ext4, XFS, f2fs and
/// block devices). If statx reports none, the alignment is 4,096 bytes, which suits every disk. The
/// alignment is never probed with test reads: a read that succeeds today may be refused by another
/// disk.
///
/// The alignment is {0, 0} if the file system reports that it does not support direct reads.
MILLRACE_EXPORT std::pair<direct_alignment, std::string> direct_alignment_of(int fd);

/// Reopens the file of `fd` for direct reads. The result is the same file, even if its path now
/// refers to another file.
MILLRACE_EXPORT direct_file open_direct(const io::unique_fd& fd);

}  // namespace millrace::loader
