// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <millrace/formats/dtype.hpp>
#include <millrace/formats/mmidx.hpp>

namespace millrace::preprocess {

/// The size of a dataset. In a merge, the sum of the extents of all earlier parts says where a part
/// begins in the whole.
struct dataset_extent {
  std::uint64_t sequences = 0;
  std::uint64_t documents = 0;
  std::uint64_t bin_bytes = 0;

  dataset_extent& operator+=(const dataset_extent& more) noexcept {
    sequences += more.sequences;
    documents += more.documents;
    bin_bytes += more.bin_bytes;
    return *this;
  }
  bool operator==(const dataset_extent&) const = default;
};

inline dataset_extent extent_of(const formats::mmidx_view& idx) {
  return {.sequences = idx.lengths.size(),
          .documents = idx.document_index.size() - 1,
          .bin_bytes = idx.bin_size_bytes};
}

/// Offsets in an `.idx` file whose counts are known in advance: see formats/spec/mmidx.md.
struct merged_layout {
  formats::dtype type{};
  bool multimodal = false;
  dataset_extent total;

  std::uint64_t length_at(std::uint64_t sequence) const noexcept {
    return formats::mmidx_header_bytes + 4 * sequence;
  }
  std::uint64_t pointer_at(std::uint64_t sequence) const noexcept {
    return length_at(total.sequences) + 8 * sequence;
  }
  /// Offset of entry `index` in the array of document ends. Entry 0 has the value 0; entry n + 1 is
  /// the end of document n.
  std::uint64_t document_end_at(std::uint64_t index) const noexcept {
    return pointer_at(total.sequences) + 8 * index;
  }
  std::uint64_t mode_at(std::uint64_t sequence) const noexcept {
    return document_end_at(total.documents + 1) + sequence;
  }
  std::uint64_t idx_bytes() const noexcept { return mode_at(multimodal ? total.sequences : 0); }
};

}  // namespace millrace::preprocess
