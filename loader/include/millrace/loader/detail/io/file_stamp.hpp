// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>

#include <millrace/detail/export.hpp>
#include <millrace/loader/detail/io/range_reader.hpp>

namespace millrace::loader {

/// Which file a path meant when it was opened, and in which state.
struct file_stamp {
  ::dev_t device;
  ::ino_t inode;
  ::off_t size;
  ::time_t seconds;  ///< of the last modification
  long nanoseconds;

  explicit file_stamp(const struct ::stat& s) noexcept
      : device(s.st_dev),
        inode(s.st_ino),
        size(s.st_size),
        seconds(s.st_mtim.tv_sec),
        nanoseconds(s.st_mtim.tv_nsec) {}
  bool operator==(const file_stamp&) const = default;
};

/// Holds a file that was opened against what it should be.
///
/// @param size   that it has
/// @param first  what it was when it was first opened; nothing: this is the first time
/// @throws io_error  it is shorter than by its index (ENODATA), or another file than at first, or
///                   than the one whose index was read (ESTALE)
MILLRACE_EXPORT void check_same(const data_file& what, std::uint64_t size,
                                const std::optional<file_stamp>& first, const file_stamp& found);

}  // namespace millrace::loader
