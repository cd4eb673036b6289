// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/sample/cu_seqlens.hpp>

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

#include <millrace/dataset/detail/sample/piece.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/error.hpp>

namespace millrace::dataset {

namespace detail {

/// Returns the document of a sequence: the last non-empty document that begins at or before the
/// sequence.
MILLRACE_INLINE std::int64_t document_of(const indexed_dataset& data, std::int64_t sequence) {
  const auto& ends = data.index().document_index;
  std::size_t low = 0;  // document_index[low] <= sequence < document_index[high]
  std::size_t high = ends.size() - 1;
  while (high - low > 1) {
    const std::size_t middle = low + (high - low) / 2;
    (ends[middle] <= sequence ? low : high) = middle;
  }
  return static_cast<std::int64_t>(low);
}

}  // namespace detail

MILLRACE_INLINE bool same_document::operator()(const piece& before, const piece& after) const {
  if (after.sequence < before.sequence) return false;
  if (after.sequence == before.sequence) return after.first == before.first + before.tokens;
  return detail::document_of(*data_, before.sequence) ==
         detail::document_of(*data_, after.sequence);
}

MILLRACE_INLINE std::int64_t join_cu_seqlens(std::span<const std::int32_t> rows,
                                             std::int64_t seq_len, std::span<std::int32_t> out) {
  const auto row_size = static_cast<std::size_t>(seq_len) + 1;
  const std::size_t row_count = rows.size() / row_size;
  assert(rows.size() == row_count * row_size);
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (static_cast<std::int64_t>(row_count) > most / seq_len) {
    throw config_error("a micro-batch of " + std::to_string(row_count) + " rows of " +
                       std::to_string(seq_len) + " tokens is longer than the " +
                       std::to_string(most) + " tokens that cu_seqlens can count");
  }
  std::size_t entries = 0;
  out[entries++] = 0;
  for (std::size_t row = 0; row < row_count; ++row) {
    const auto offset = static_cast<std::int32_t>(static_cast<std::int64_t>(row) * seq_len);
    for (const std::int32_t at : rows.subspan(row * row_size + 1, row_size - 1)) {
      out[entries++] = offset + at;
      if (at == seq_len) break;
    }
  }
  return static_cast<std::int64_t>(entries);
}

}  // namespace millrace::dataset
