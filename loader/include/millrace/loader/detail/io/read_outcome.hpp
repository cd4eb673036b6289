// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <millrace/detail/export.hpp>

namespace millrace::loader {

/// Progress of a direct read of one extent (whole blocks of a file).
struct read_progress {
  std::uint64_t bytes = 0;      ///< size of the extent
  std::uint64_t need = 0;       ///< number of bytes that are required, from the extent's beginning
  std::uint64_t done = 0;       ///< bytes read; a multiple of both alignments unless complete
  std::uint32_t alignment = 1;  ///< alignment of offsets in bytes, a power of two
  std::uint32_t memory_alignment = 1;  ///< alignment of addresses in bytes, a power of two
  int repeated = 0;                    ///< retries that made no progress
};

/// What to do after a read has ended.
enum class read_outcome : std::uint8_t {
  complete,   ///< nothing: all required bytes were read
  resume,     ///< continue reading at `done`
  repeat,     ///< repeat the read, which was interrupted or too short, or found the kernel busy
  hand_over,  ///< read this extent with pread, which retries transient errors and reports others
  demote,     ///< read this file with pread from now on: direct reads do not work
};

/// Records the result of a read in `progress`, and returns what to do next.
///
/// A short read is not an error. Reading continues at a place where both the file offset and the
/// memory address are aligned, so some bytes may be read twice. At the end of a file, a read
/// returns no bytes or ends inside a block. If this happens, the outcome is `hand_over`: pread then
/// finds out whether the file is too short or only this read was short.
///
/// @param result  number of bytes read, or a negative errno
MILLRACE_EXPORT read_outcome take_result(read_progress& progress, std::int64_t result) noexcept;

}  // namespace millrace::loader
