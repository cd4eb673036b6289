// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <millrace/dataset/detail/packing/room_index.hpp>
#include <millrace/detail/export.hpp>

namespace millrace::dataset {

/// Documents that are packed together: a row has documents of one block only.
inline constexpr std::int64_t packing_block = 4096;

struct best_fit_options {
  std::int64_t seq_len = 0;           ///< tokens of a row
  std::int64_t pad_documents_to = 1;  ///< each document's share of a row is a multiple of it
};

/// @throws config_error  seq_len is not in 1 to 2^24, or pad_documents_to does not divide it.
MILLRACE_EXPORT void check(const best_fit_options& options);

/// Best fit, the longest first (Ding et al., "Fewer Truncations Improve Language Modeling", 2024),
/// of up to `packing_block` documents. What it packs depends on the lengths alone.
///
/// - A document longer than a row is cut into rows of its own, until less than a row is left.
/// - What is left of each document goes, the longest first and of equal ones the first in stored
///   order, into the fullest row that has room for it; of equally full ones, that which became so
///   last; into a new row, where there is none.
///
/// "Long" is by shares: tokens, rounded up to a multiple of `pad_documents_to`. Keeps its memory
/// from block to block. For one thread.
class MILLRACE_EXPORT best_fit {
 public:
  static constexpr std::uint16_t no_row = 0xFFFF;

  /// @throws config_error  as `check`.
  explicit best_fit(best_fit_options options);

  const best_fit_options& options() const noexcept { return options_; }

  /// Packs documents of these lengths.
  ///
  /// @param lengths  in tokens, 0 or more; at most packing_block of them
  /// @return rows in all
  std::int64_t pack(std::span<const std::int64_t> lengths);

  /// Of the last pack: rows that a document fills alone.
  std::int64_t full_rows() const noexcept { return full_rows_; }
  /// Of the last pack: rows that hold what is left of documents.
  std::int64_t shared_rows() const noexcept { return shared_rows_; }
  /// Of the last pack: the shared row of what is left of each document, or `no_row` where nothing
  /// is.
  std::span<const std::uint16_t> shared_row_of() const noexcept { return row_of_; }

 private:
  void sort_longest_first();

  best_fit_options options_;
  std::size_t row_units_;  // a row, in units of pad_documents_to
  room_index rooms_;
  std::int64_t full_rows_ = 0;
  std::int64_t shared_rows_ = 0;
  std::vector<std::uint16_t> row_of_;
  // Units that a rest lacks to a whole row, and its document: ascending is the longest first.
  std::vector<std::pair<std::uint32_t, std::uint16_t>> rests_;
  std::vector<std::pair<std::uint32_t, std::uint16_t>> sorting_;
};

}  // namespace millrace::dataset
