// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/packing/block_layout.hpp>

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include <millrace/dataset/detail/packing/best_fit.hpp>

namespace millrace::dataset {

MILLRACE_INLINE block_layout::block_layout(best_fit& packer, std::span<const std::int64_t> lengths,
                                           std::int64_t first_document)
    : seq_len_(packer.options().seq_len), first_document_(first_document) {
  (void)packer.pack(lengths);
  full_before_.resize(lengths.size() + 1);
  rest_.resize(lengths.size());
  for (std::size_t d = 0; d < lengths.size(); ++d) {
    full_before_[d + 1] = full_before_[d] + lengths[d] / seq_len_;
    rest_[d] = static_cast<std::int32_t>(lengths[d] % seq_len_);
  }
  const auto row_of = packer.shared_row_of();
  shared_row_of_.assign(row_of.begin(), row_of.end());
  shared_begin_.assign(static_cast<std::size_t>(packer.shared_rows()) + 1, 0);
  for (const std::uint16_t row : row_of) {
    if (row != best_fit::no_row) ++shared_begin_[row + std::size_t{1}];
  }
  std::partial_sum(shared_begin_.begin(), shared_begin_.end(), shared_begin_.begin());
  shared_.resize(shared_begin_.back());
  std::vector<std::uint16_t> at(shared_begin_.begin(), shared_begin_.end() - 1);
  for (std::size_t d = 0; d < row_of.size(); ++d) {
    if (row_of[d] != best_fit::no_row) shared_[at[row_of[d]]++] = static_cast<std::uint16_t>(d);
  }
}

MILLRACE_INLINE void block_layout::append_row(std::int64_t r,
                                              std::vector<packed_part>& parts) const {
  assert(0 <= r && r < row_count());
  if (r < full_before_.back()) {
    const auto after = std::ranges::upper_bound(full_before_, r) - full_before_.begin();
    const auto d = static_cast<std::size_t>(after - 1);
    parts.push_back({first_document_ + after - 1, (r - full_before_[d]) * seq_len_, seq_len_});
    return;
  }
  const auto row = static_cast<std::size_t>(r - full_before_.back());
  for (std::size_t i = shared_begin_[row]; i < shared_begin_[row + 1]; ++i) {
    const std::size_t d = shared_[i];
    parts.push_back({first_document_ + static_cast<std::int64_t>(d),
                     (full_before_[d + 1] - full_before_[d]) * seq_len_, rest_[d]});
  }
}

MILLRACE_INLINE void block_layout::append_rows_of(std::int64_t document,
                                                  std::vector<std::int64_t>& rows) const {
  const auto d = static_cast<std::size_t>(document - first_document_);
  assert(d < rest_.size());
  for (std::int64_t r = full_before_[d]; r < full_before_[d + 1]; ++r) rows.push_back(r);
  if (rest_[d] != 0) rows.push_back(full_before_.back() + shared_row_of_[d]);
}

}  // namespace millrace::dataset
