// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <millrace/dataset/detail/run/sample_text.hpp>
#include <millrace/detail/export.hpp>
#include <millrace/loader/detail/batch/batch_slot.hpp>
#include <millrace/loader/detail/batch/slot_layout.hpp>
#include <millrace/loader/detail/plan/context_plan.hpp>

namespace millrace::loader::detail {

/// Copies a rank's part of whole rows into a slot, and fills the slot's table of slices
/// (`slot_layout`). The part is that of a context-parallel rank, or all tokens but those that are
/// only labels, or both. For each slice, the table has the label of the last token, which is the
/// token after the slice, and the position id of the first token. So the fields of a slice do not
/// depend on the rest of the row.
///
/// Used by one thread. Once the largest batch has been cut, no call allocates memory.
class MILLRACE_EXPORT context_cut {
 public:
  context_cut() = default;  ///< keeps whole rows

  /// @param whole  the layout of slots for whole rows
  context_cut(const context_rules& rules, const slot_layout& whole)
      : rules_(rules), whole_(whole) {}

  bool cuts() const noexcept { return rules_.cuts(); }
  const slot_layout& whole() const noexcept { return whole_; }

  /// Fills the slot with the rank's part of the rows.
  ///
  /// @param rows   the planned rows; each of the two slots has as many rows
  /// @param whole  a slot for whole rows that holds the text that this rank reads
  void fill(std::span<const dataset::sample_text> rows, const batch_slot& whole, batch_slot& slot);

 private:
  static bool is_padding(const row_chunk& slice) noexcept { return slice.first >= slice.real; }
  void find_slices(const dataset::sample_text& row);
  void divide_at_padding();
  template <class Token>
  void put_row(const batch_slot& whole, std::int64_t r, const dataset::sample_text& row,
               batch_slot& slot) const;
  void put_counted(const batch_slot& whole, batch_slot& slot) const;
  template <class Token>
  std::int64_t start_of_positions(std::span<const Token> text, const dataset::sample_text& row,
                                  const row_chunk& slice) const;

  context_rules rules_;
  slot_layout whole_ = {1, 1, false, token_width::u16};
  std::vector<row_chunk> slices_;         // the slices of all rows
  std::vector<std::size_t> first_slice_;  // [rows + 1]: index in slices_ of each row's first slice
};

}  // namespace millrace::loader::detail
