// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <millrace/detail/export.hpp>

namespace millrace::loader {

/// How far a direct read of one extent has come.
struct read_progress {
  std::uint64_t bytes = 0;      ///< of the extent
  std::uint64_t need = 0;       ///< of these, those that must be there
  std::uint64_t done = 0;       ///< read so far, a multiple of the alignment unless all is
  std::uint32_t alignment = 1;  ///< of offsets
  int repeated = 0;             ///< times that the kernel was busy
};

/// What to do when a read ends.
enum class read_outcome : std::uint8_t {
  complete,   ///< all that is needed is there
  resume,     ///< read on from `done`
  repeat,     ///< the same again: it was interrupted, or the kernel busy
  hand_over,  ///< to pread, which knows what may pass, and how to say what does not
  demote,     ///< the file cannot be read this way: by pread from now on
};

/// Takes the result of a read, bytes or a negative errno, into `progress`.
///
/// Less than was asked for is no error: it is read on. That ends where nothing more comes, or where
/// a read ends inside a block, which it does at the end of a file: then pread is to say whether the
/// file is shorter than it should be, or only this read was.
MILLRACE_EXPORT read_outcome take_result(read_progress& progress, std::int64_t result) noexcept;

}  // namespace millrace::loader
