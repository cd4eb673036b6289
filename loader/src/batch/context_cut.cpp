// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/batch/context_cut.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <millrace/dataset/detail/run/sample_text.hpp>
#include <millrace/formats/detail/mask.hpp>
#include <millrace/loader/detail/batch/batch_slot.hpp>
#include <millrace/loader/detail/batch/slice_table.hpp>
#include <millrace/loader/detail/batch/slot_layout.hpp>
#include <millrace/loader/detail/plan/context_plan.hpp>

namespace millrace::loader::detail {

/// Appends the slices of a row. These are the row's chunks, divided at boundaries or, if the last
/// tokens of documents are only labels, where padding begins.
MILLRACE_INLINE void context_cut::find_slices(const dataset::sample_text& row) {
  for_each_chunk(rules_, row, [&](row_chunk chunk) {
    if (chunk.length == 0) return;
    const auto joins = [&](const row_chunk& last) {
      return last.begin == chunk.begin && last.first + last.length == chunk.first;
    };
    if (slices_.size() > first_slice_.back() && joins(slices_.back())) {
      chunk.length += slices_.back().length;
      chunk.first = slices_.back().first;
      slices_.pop_back();
    }
    slices_.push_back(chunk);
  });
  if (rules_.last_token_as_label) return divide_at_padding();
  if (rules_.packed || row.boundaries.empty()) return;
  for (std::size_t i = first_slice_.back(); i < slices_.size(); ++i) {
    row_chunk& each = slices_[i];
    const auto next = std::ranges::upper_bound(row.boundaries, each.first);
    each.document = next - row.boundaries.begin();
    if (next == row.boundaries.end() || *next >= each.first + each.length) continue;
    row_chunk rest = each;
    each.length = *next - each.first;
    rest.first = *next;
    rest.length -= each.length;
    slices_.insert(slices_.begin() + static_cast<std::ptrdiff_t>(i) + 1, rest);
  }
}

/// Divides the slices of the last row that contain both tokens and padding. The last token's label
/// is then that of a slice.
MILLRACE_INLINE void context_cut::divide_at_padding() {
  for (std::size_t i = first_slice_.back(); i < slices_.size(); ++i) {
    row_chunk& each = slices_[i];
    if (each.real <= each.first || each.real >= each.first + each.length) continue;
    row_chunk padding = each;
    each.length = each.real - each.first;
    padding.first = each.real;
    padding.length -= each.length;
    slices_.insert(slices_.begin() + static_cast<std::ptrdiff_t>(i) + 1, padding);
  }
}

MILLRACE_INLINE void context_cut::fill(std::span<const dataset::sample_text> rows,
                                       const batch_slot& whole, batch_slot& slot) {
  slices_.clear();
  first_slice_.assign(1, 0);
  for (const dataset::sample_text& row : rows) {
    find_slices(row);
    first_slice_.push_back(slices_.size());
  }
  slot.boundaries = whole.boundaries;
  // the entries of each row begin with a 0
  slot.slices = static_cast<std::int64_t>(slices_.size() + rows.size());
  std::ranges::copy(whole.boundary_begin(), slot.boundary_begin().begin());
  std::ranges::copy(whole.all_boundaries(), slot.all_boundaries().begin());
  std::ranges::copy(whole.document_ends(), slot.document_ends().begin());
  std::ranges::copy(whole.unpadded_ends(), slot.unpadded_ends().begin());
  for (std::size_t r = 0; r <= rows.size(); ++r) {
    slot.slice_begin()[r] = static_cast<std::int32_t>(first_slice_[r] + r);
  }
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (slot.layout.width() == token_width::u16) {
      put_row<std::uint16_t>(whole, static_cast<std::int64_t>(r), rows[r], slot);
    } else {
      put_row<std::int32_t>(whole, static_cast<std::int64_t>(r), rows[r], slot);
    }
  }
  put_counted(whole, slot);
}

/// Writes a row's text and slices.
template <class Token>
void context_cut::put_row(const batch_slot& whole, std::int64_t r, const dataset::sample_text& row,
                          batch_slot& slot) const {
  const std::span text(reinterpret_cast<const Token*>(whole.row(r)),
                       static_cast<std::size_t>(whole.layout.text_len()));
  const auto number = static_cast<std::size_t>(r);
  const slice_table table = slot.slice_arrays();
  auto entry = static_cast<std::size_t>(slot.slice_begin()[number]);
  table.ends[entry] = table.real_ends[entry] = table.next[entry] = 0;
  table.origins[entry] = table.documents[entry] = 0;
  std::int64_t at = 0;
  std::int64_t real = 0;
  for (std::size_t s = first_slice_[number]; s < first_slice_[number + 1]; ++s) {
    const row_chunk& each = slices_[s];
    const std::span to(reinterpret_cast<Token*>(slot.row(r)) + at,
                       static_cast<std::size_t>(each.length));
    if (is_padding(each)) {
      std::ranges::fill(to, Token{0});
    } else {
      std::memcpy(to.data(), text.data() + each.first, to.size_bytes());
    }
    // Counts the slice's tokens that are not padding. The token after the slice also counts,
    // because it is the last label, unless that token is padding.
    const std::int64_t last =
        std::min(each.real + (rules_.last_token_as_label ? 1 : 0), whole.layout.text_len());
    const std::int64_t known =
        is_padding(each) ? 0 : std::clamp<std::int64_t>(last - each.first, 0, each.length + 1);
    ++entry;
    table.ends[entry] = static_cast<std::int32_t>(at + each.length);
    table.real_ends[entry] = static_cast<std::int32_t>(at + known);
    table.next[entry] =
        known > each.length ? text[static_cast<std::size_t>(each.first + each.length)] : 0;
    const std::int64_t before = each.first - start_of_positions<Token>(text, row, each);
    table.origins[entry] = static_cast<std::int32_t>(at - before);
    table.documents[entry] = static_cast<std::int32_t>(each.document);
    at += each.length;
    real += std::min(known, each.length);
  }
  slot.real()[number] = static_cast<std::int32_t>(real);
}

/// Copies where the loss counts.
MILLRACE_INLINE void context_cut::put_counted(const batch_slot& whole, batch_slot& slot) const {
  if (!slot.layout.masked()) return;
  const auto words_of = [](const slot_layout& layout) {
    return static_cast<std::size_t>(layout.counted_words());
  };
  std::ranges::fill(slot.counted(), 0U);
  for (std::size_t r = 0; r + 1 < first_slice_.size(); ++r) {
    const formats::bit_span from(
        std::as_bytes(whole.counted().subspan(r * words_of(whole.layout), words_of(whole.layout))),
        static_cast<std::uint64_t>(whole.layout.seq_len()));
    const auto to = slot.counted().subspan(r * words_of(slot.layout), words_of(slot.layout));
    std::uint64_t at = 0;
    for (std::size_t s = first_slice_[r]; s < first_slice_[r + 1]; ++s) {
      const auto count = static_cast<std::uint64_t>(slices_[s].length);
      if (!is_padding(slices_[s])) {
        formats::copy_bits(from, static_cast<std::uint64_t>(slices_[s].first), count, to, at);
      }
      at += count;
    }
  }
}

/// Returns an index in the whole row. The position id of the slice's first token is the token's own
/// index minus this index.
template <class Token>
std::int64_t context_cut::start_of_positions(std::span<const Token> text,
                                             const dataset::sample_text& row,
                                             const row_chunk& slice) const {
  if (rules_.positions_at_boundaries && !rules_.packed) {
    return *(std::ranges::upper_bound(row.boundaries, slice.first) - 1);
  }
  const bool after_eods = rules_.eod != dataset::no_token && !rules_.positions_at_boundaries;
  if (!after_eods) return slice.begin;
  for (std::int64_t i = slice.first; i > slice.begin; --i) {
    const std::int64_t before = i - 1;
    const std::int64_t token =
        before < slice.real ? static_cast<std::int64_t>(text[static_cast<std::size_t>(before)])
                            : rules_.pad;
    if (token == rules_.eod) return i;
  }
  return slice.begin;
}

}  // namespace millrace::loader::detail
