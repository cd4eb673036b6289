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

/// Documents per block. Blocks are packed separately: a row has documents of one block only.
inline constexpr std::int64_t packing_block = 4096;

struct best_fit_options {
  std::int64_t seq_len = 0;           ///< tokens per row
  std::int64_t pad_documents_to = 1;  ///< documents in a row are padded to a multiple of this
};

/// @throws config_error  seq_len is not in 1 to 2^24, or pad_documents_to does not divide it.
MILLRACE_EXPORT void check(const best_fit_options& options);

/// Best-fit decreasing (Ding et al., "Fewer Truncations Improve Language Modeling", 2024) for up to
/// `packing_block` documents. The result depends only on the lengths.
///
/// - A document of at least seq_len tokens first fills whole rows by itself, until its remainder is
///   shorter than a row.
/// - The remainders of all documents are placed next, longest first. For a shorter document, the
///   remainder is the whole document. Remainders of equal length are placed in stored order. Each
///   remainder goes into the fullest row that has room for it. If several rows are equally full, it
///   goes into the one that reached that level last. If no row has room, it goes into a new row.
///
/// Lengths of remainders are rounded up to a multiple of `pad_documents_to`. An object reuses its
/// memory for the next block. Not thread-safe.
class MILLRACE_EXPORT best_fit {
 public:
  static constexpr std::uint16_t no_row = 0xFFFF;

  /// @throws config_error  as `check`.
  explicit best_fit(best_fit_options options);

  const best_fit_options& options() const noexcept { return options_; }

  /// Packs documents of these lengths.
  ///
  /// @param lengths  in tokens, 0 or more; at most packing_block of them
  /// @return total number of rows
  std::int64_t pack(std::span<const std::int64_t> lengths);

  /// Number of rows that a single document fills alone, as of the last call of `pack`.
  std::int64_t full_rows() const noexcept { return full_rows_; }
  /// Number of rows that hold remainders, as of the last call of `pack`.
  std::int64_t shared_rows() const noexcept { return shared_rows_; }
  /// The shared row of each document's remainder, as of the last call of `pack`; `no_row` if the
  /// document has no remainder.
  std::span<const std::uint16_t> shared_row_of() const noexcept { return row_of_; }

 private:
  void sort_longest_first();

  best_fit_options options_;
  std::size_t row_units_;  // length of a row, in units of pad_documents_to
  room_index rooms_;
  std::int64_t full_rows_ = 0;
  std::int64_t shared_rows_ = 0;
  std::vector<std::uint16_t> row_of_;
  // One pair per remainder: the number of units that the remainder would leave free in an empty
  // row, and the index of its document. If the pairs are sorted in ascending order, the longest
  // remainder is first.
  std::vector<std::pair<std::uint32_t, std::uint16_t>> rests_;
  std::vector<std::pair<std::uint32_t, std::uint16_t>> sorting_;
};

}  // namespace millrace::dataset
