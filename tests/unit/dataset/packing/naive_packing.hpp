// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <millrace/dataset/detail/packing/block_layout.hpp>

namespace millrace::test {

/// Returns the rows of one block. Tries every row for every document.
inline std::vector<std::vector<dataset::packed_part>> naive_block(
    const std::vector<std::int64_t>& lengths, std::int64_t first_document, std::int64_t seq_len,
    std::int64_t multiple) {
  using dataset::packed_part;
  std::vector<std::vector<packed_part>> rows;
  std::vector<packed_part> rests;
  for (std::size_t d = 0; d < lengths.size(); ++d) {
    const std::int64_t document = first_document + static_cast<std::int64_t>(d);
    std::int64_t first = 0;
    for (; lengths[d] - first >= seq_len; first += seq_len) {
      rows.push_back({{document, first, seq_len}});
    }
    if (first < lengths[d]) rests.push_back({document, first, lengths[d] - first});
  }
  const auto share = [&](const packed_part& part) {
    return (part.tokens + multiple - 1) / multiple * multiple;
  };
  std::stable_sort(rests.begin(), rests.end(),
                   [&](const auto& a, const auto& b) { return share(a) > share(b); });
  struct open_row {
    std::int64_t room;
    std::size_t touched;  // when the row was last filled
    std::vector<packed_part> parts;
  };
  std::vector<open_row> shared;
  for (std::size_t i = 0; i < rests.size(); ++i) {
    open_row* best = nullptr;
    for (open_row& row : shared) {
      if (row.room < share(rests[i])) continue;
      const bool fuller = best != nullptr && row.room < best->room;
      const bool later = best != nullptr && row.room == best->room && row.touched > best->touched;
      if (best == nullptr || fuller || later) best = &row;
    }
    if (best == nullptr) best = &shared.emplace_back(open_row{seq_len, 0, {}});
    best->room -= share(rests[i]);
    best->touched = i;
    best->parts.push_back(rests[i]);
  }
  for (open_row& row : shared) {
    std::ranges::sort(row.parts, {}, &packed_part::document);
    rows.push_back(row.parts);
  }
  return rows;
}

/// Returns all rows of a dataset.
inline std::vector<std::vector<dataset::packed_part>> naive_rows(
    const std::vector<std::int64_t>& lengths, std::int64_t seq_len, std::int64_t multiple,
    std::size_t first = 0, std::size_t last = SIZE_MAX) {
  std::vector<std::vector<dataset::packed_part>> rows;
  last = std::min(last, lengths.size());
  for (std::size_t b = first; b < last; b += 4096) {
    const auto begin = lengths.begin() + static_cast<std::ptrdiff_t>(b);
    const auto end = lengths.begin() + static_cast<std::ptrdiff_t>(std::min(last, b + 4096));
    for (auto& row : naive_block({begin, end}, static_cast<std::int64_t>(b), seq_len, multiple)) {
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace millrace::test
