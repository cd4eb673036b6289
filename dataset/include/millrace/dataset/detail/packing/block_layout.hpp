// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <millrace/dataset/detail/packing/best_fit.hpp>
#include <millrace/detail/export.hpp>

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
class MILLRACE_EXPORT block_layout {
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

}  // namespace millrace::dataset
