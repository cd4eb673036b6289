// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>

#include <millrace/detail/export.hpp>
#include <millrace/loader/detail/io/range_reader.hpp>

namespace millrace::loader {

/// Identity, size and modification time of a file when it was opened.
struct file_stamp {
  ::dev_t device;
  ::ino_t inode;
  ::off_t size;
  ::time_t seconds;  ///< time of the last modification
  long nanoseconds;

  explicit file_stamp(const struct ::stat& s) noexcept
      : device(s.st_dev),
        inode(s.st_ino),
        size(s.st_size),
        seconds(s.st_mtim.tv_sec),
        nanoseconds(s.st_mtim.tv_nsec) {}
  bool operator==(const file_stamp&) const = default;
};

/// Checks that an opened file is the expected one.
///
/// @param what   the expected file
/// @param size   size of the opened file, in bytes
/// @param first  stamp of the file when it was first opened; empty: this is the first time
/// @param found  stamp of the opened file
/// @throws io_error  (ENODATA) the file is shorter than its index says
/// @throws io_error  (ESTALE) the file is not the one that was opened first, or was replaced since
///                   the index was read
MILLRACE_EXPORT void check_same(const data_file& what, std::uint64_t size,
                                const std::optional<file_stamp>& first, const file_stamp& found);

}  // namespace millrace::loader
