// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <millrace/dataset/detail/packing/best_fit.hpp>
#include <millrace/detail/export.hpp>

namespace millrace::dataset {

/// Part of a document in a row: the whole document, unless it is longer than a row.
struct packed_part {
  std::int64_t document;  ///< index of the document in the dataset
  std::int64_t first;     ///< offset of the first token in the document
  std::int64_t tokens;    ///< number of tokens; more than 0

  friend bool operator==(const packed_part&, const packed_part&) = default;
};

/// Maps the rows of a block (documents that are packed together) to parts of documents, and back.
/// Immutable, thread-safe.
///
/// The rows that a single document fills come first, in stored order. The shared rows follow, in
/// the order in which best fit opened them. The parts of a row are in stored order.
class MILLRACE_EXPORT block_layout {
 public:
  /// @param packer          has the options to use; its previous result is overwritten
  /// @param lengths         lengths of the block's documents, in tokens
  /// @param first_document  index of the block's first document
  block_layout(best_fit& packer, std::span<const std::int64_t> lengths,
               std::int64_t first_document);

  std::int64_t row_count() const noexcept { return full_before_.back() + shared_rows(); }

  /// Appends the parts of row `r` of this block.
  ///
  /// @pre 0 <= r < row_count()
  void append_row(std::int64_t r, std::vector<packed_part>& parts) const;

  /// Appends the rows of this block that contain a part of `document`, in the order of the
  /// document's tokens.
  ///
  /// @param document  index of the document in the dataset
  /// @pre the document is in this block
  void append_rows_of(std::int64_t document, std::vector<std::int64_t>& rows) const;

 private:
  std::int64_t shared_rows() const noexcept {
    return static_cast<std::int64_t>(shared_begin_.size()) - 1;
  }

  std::int64_t seq_len_;
  std::int64_t first_document_;
  std::vector<std::int64_t> full_before_;     // [documents + 1]: full rows of earlier documents
  std::vector<std::int32_t> rest_;            // [documents]: tokens after the full rows
  std::vector<std::uint16_t> shared_row_of_;  // [documents]
  std::vector<std::uint16_t> shared_begin_;   // [shared rows + 1]: offsets in shared_
  std::vector<std::uint16_t> shared_;         // documents of the shared rows, row by row
};

}  // namespace millrace::dataset
