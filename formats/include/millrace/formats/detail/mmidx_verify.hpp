// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include <millrace/formats/mmidx.hpp>

namespace millrace::formats {

/// Checks every entry of an `.idx`. Makes the checks listed under "In full" in
/// formats/spec/mmidx.md.
///
/// Reads each array once: first the lengths together with the pointers, then the document index. At
/// the end, checks the size of the `.bin`.
///
/// @param bin_size  bytes of the `.bin` that belongs to this `.idx`
/// @throws format_error  an entry is wrong. The error names the first wrong entry and its byte
///                       offset in the `.idx`.
inline void verify_mmidx(const mmidx_view& idx, std::uint64_t bin_size) {
  const auto item = static_cast<std::int64_t>(size_bytes(idx.type));
  std::int64_t expected = 0;
  for (std::size_t i = 0; i < idx.lengths.size(); ++i) {
    const std::int32_t length = idx.lengths[i];
    if (length < 0) {
      throw format_error(idx.lengths_offset() + 4 * i, "length of sequence " + std::to_string(i) +
                                                           " is " + std::to_string(length) +
                                                           ", expected 0 or more");
    }
    if (idx.pointers[i] != expected) {
      throw format_error(idx.pointers_offset() + 8 * i,
                         "pointer of sequence " + std::to_string(i) + " is " +
                             std::to_string(idx.pointers[i]) + ", expected " +
                             std::to_string(expected) + ", where the sequence before it ends");
    }
    if (__builtin_add_overflow(expected, length * item, &expected)) {
      throw format_error(idx.lengths_offset() + 4 * i,
                         "the lengths add up to more than 2^63 - 1 bytes");
    }
  }
  for (std::size_t d = 1; d < idx.document_index.size(); ++d) {
    const std::int64_t begin = idx.document_index[d - 1];
    const std::int64_t end = idx.document_index[d];
    if (end < begin || end > idx.sequence_count()) {
      throw format_error(idx.document_index_offset() + 8 * d,
                         "document " + std::to_string(d - 1) + " ends before sequence " +
                             std::to_string(end) + ", expected " + std::to_string(begin) + " to " +
                             std::to_string(idx.sequence_count()));
    }
  }
  if (static_cast<std::uint64_t>(expected) != bin_size) {
    throw format_error(idx.pointers_offset(), "the sequences take " + std::to_string(expected) +
                                                  " bytes, the .bin has " +
                                                  std::to_string(bin_size));
  }
}

}  // namespace millrace::formats
