// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <millrace/detail/export.hpp>

namespace millrace::loader {

/// Progress of a direct read of one extent.
struct read_progress {
  std::uint64_t bytes = 0;      ///< size of the extent
  std::uint64_t need = 0;       ///< leading bytes that are required
  std::uint64_t done = 0;       ///< bytes read; a multiple of both alignments unless complete
  std::uint32_t alignment = 1;  ///< alignment of offsets in bytes, a power of two
  std::uint32_t memory_alignment = 1;  ///< alignment of addresses in bytes, a power of two
  int repeated = 0;                    ///< retries that made no progress
};

/// What to do after a read has ended.
enum class read_outcome : std::uint8_t {
  complete,   ///< all required bytes are present
  resume,     ///< continue reading at `done`
  repeat,     ///< repeat the same read: it was interrupted, too short, or the kernel was busy
  hand_over,  ///< leave it to pread, which retries transient errors and reports others
  demote,     ///< the file cannot be read this way: use pread from now on
};

/// Records the result of a read, a byte count or a negative errno, in `progress`.
///
/// A short read is not an error: reading continues, at a place where both the offset and the
/// address are aligned, so that some bytes may be read twice. Reading ends if a read returns
/// nothing, or ends inside a block, as happens at the end of a file. pread then determines whether
/// the file is shorter than it should be, or only this read was short.
MILLRACE_EXPORT read_outcome take_result(read_progress& progress, std::int64_t result) noexcept;

}  // namespace millrace::loader
