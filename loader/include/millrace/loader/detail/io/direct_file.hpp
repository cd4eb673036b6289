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

/// Alignment of direct reads (O_DIRECT), in bytes.
struct direct_alignment {
  std::uint32_t memory = 4096;  ///< memory addresses must be multiples of this
  std::uint32_t offset = 4096;  ///< file offsets and lengths must be multiples of this
};

/// A file opened for direct reads, or the reason why direct reads are impossible.
struct direct_file {
  io::unique_fd fd;
  direct_alignment alignment;
  std::string why;        ///< source of the alignment; if `fd` is empty, the reason
  bool may_pass = false;  ///< true if only a lack of resources prevented the open
};

/// The alignment that direct reads of a file need, and its source. statx(2) reports it
/// (STATX_DIOALIGN) for ext4, XFS, f2fs and block devices since Linux 6.1. Without a report, the
/// alignment is 4,096 bytes, which suits every disk. Test reads would not help: another disk may
/// refuse a read that succeeds here.
///
/// If the file system reports that it does not support direct reads, the alignment is {0, 0}.
MILLRACE_EXPORT std::pair<direct_alignment, std::string> direct_alignment_of(int fd);

/// Reopens the file of `fd` for direct reads. Opens the same file even if the path of `fd` now
/// refers to another file.
MILLRACE_EXPORT direct_file open_direct(const io::unique_fd& fd);

}  // namespace millrace::loader
