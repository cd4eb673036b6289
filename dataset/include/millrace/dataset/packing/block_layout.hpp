// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include <millrace/dataset/packing/best_fit.hpp>

namespace millrace::dataset {

/// Part of a document in a row: all of it, unless it is longer than a row.
struct packed_part {
  std::int64_t document;  ///< its number in the dataset
  std::int64_t first;     ///< the first token, counted from the start of the document
  std::int64_t tokens;    ///< how many; more than 0

  friend bool operator==(const packed_part&, const packed_part&) = default;
};

/// Which parts of a block's documents are in which of its rows. Immutable: any thread.
///
/// Rows that a document fills alone come first, in stored order; then those that are shared, in the
/// order in which best fit opened them. The parts of a row are in stored order.
class block_layout {
 public:
  /// @param packer          with the options wanted; what it packed before is lost
  /// @param lengths         of the block's documents, in tokens
  /// @param first_document  the number of the first
  block_layout(best_fit& packer, std::span<const std::int64_t> lengths,
               std::int64_t first_document);

  std::int64_t row_count() const noexcept { return full_before_.back() + shared_rows(); }

  /// Appends the parts of row `r` of this block.
  ///
  /// @pre 0 <= r < row_count()
  void append_row(std::int64_t r, std::vector<packed_part>& parts) const;

  /// Appends the rows of this block that have part of a document, in the order of its tokens.
  ///
  /// @param document  its number in the dataset
  /// @pre it is one of the block
  void append_rows_of(std::int64_t document, std::vector<std::int64_t>& rows) const;

 private:
  std::int64_t shared_rows() const noexcept {
    return static_cast<std::int64_t>(shared_begin_.size()) - 1;
  }

  std::int64_t seq_len_;
  std::int64_t first_document_;
  std::vector<std::int64_t> full_before_;     // [documents + 1]: full rows of the documents before
  std::vector<std::int32_t> rest_;            // [documents]: tokens behind the full rows
  std::vector<std::uint16_t> shared_row_of_;  // [documents]
  std::vector<std::uint16_t> shared_begin_;   // [shared rows + 1], into:
  std::vector<std::uint16_t> shared_;         // documents, counted from the first, row by row
};

// ---------------------------------------------------------------------------------------------

inline block_layout::block_layout(best_fit& packer, std::span<const std::int64_t> lengths,
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

inline void block_layout::append_row(std::int64_t r, std::vector<packed_part>& parts) const {
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

inline void block_layout::append_rows_of(std::int64_t document,
                                         std::vector<std::int64_t>& rows) const {
  const auto d = static_cast<std::size_t>(document - first_document_);
  assert(d < rest_.size());
  for (std::int64_t r = full_before_[d]; r < full_before_[d + 1]; ++r) rows.push_back(r);
  if (rest_[d] != 0) rows.push_back(full_before_.back() + shared_row_of_[d]);
}

}  // namespace millrace::dataset
