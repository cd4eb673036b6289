// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/batch/row_masks.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <utility>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/formats/sum.hpp>

namespace millrace::loader::detail {

MILLRACE_INLINE std::filesystem::path prefix_of(const dataset::run_source& source) {
  return std::filesystem::path(source.bin).replace_extension();
}

MILLRACE_INLINE bool row_masks::any(std::span<const dataset::run_source> sources) {
  return std::ranges::any_of(sources, [](const dataset::run_source& each) {
    return dataset::token_mask::is_there(prefix_of(each));
  });
}

MILLRACE_INLINE std::optional<row_masks> row_masks::open(
    std::span<const dataset::run_source> sources, mask_alignment alignment, bool verify,
    bool last_token_as_label) {
  if (alignment == mask_alignment::ignored) return std::nullopt;
  row_masks all;
  all.alignment_ = alignment;
  all.last_token_as_label_ = last_token_as_label;
  bool found = false;
  for (const dataset::run_source& each : sources) {
    const std::size_t size = formats::size_bytes(each.type);
    all.token_bytes_.push_back(size);
    auto mask = dataset::token_mask::find(prefix_of(each), each.bin_bytes / size);
    found = found || mask;
    all.masks_.emplace_back();
    if (!mask) continue;
    dataset::lost_page_watch watch(mask->bytes());
    std::vector<bool> is_good(verify ? mask->block_count() : 0);
    all.masks_.back().emplace(source_mask{*std::move(mask), std::move(watch), std::move(is_good)});
  }
  if (!found) return std::nullopt;
  return all;
}

/// Checks the blocks with the bits [first, last), unless they were checked before.
/// @pre first < last
MILLRACE_INLINE void row_masks::source_mask::check(std::int64_t first, std::int64_t last) {
  if (is_good.empty()) return;
  constexpr auto bits = std::int64_t{8} * formats::sum_block_bytes;
  for (std::int64_t block = first / bits; block <= (last - 1) / bits; ++block) {
    const auto b = static_cast<std::size_t>(block);
    if (is_good[b]) continue;
    try {
      mask.verify_block(b);
    } catch (const format_error&) {
      watch.check_there(mask.path());  // a lost page is read as zeros
      throw;
    }
    is_good[b] = true;
  }
}

MILLRACE_INLINE void row_masks::fill(std::span<const dataset::sample_text> rows, batch_slot& slot) {
  const std::int64_t seq_len = slot.layout.seq_len();
  const auto words = static_cast<std::size_t>(slot.layout.counted_words());
  const std::span counted = slot.counted();
  std::ranges::fill(counted, 0U);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const std::span row = counted.subspan(r * words, words);
    fill_row(rows[r], seq_len, row);
    if (!last_token_as_label_) drop_last_labels(rows[r], seq_len, row);
  }
  for (const auto& each : masks_) {
    if (each) each->watch.check_there(each->mask.path());
  }
}

MILLRACE_INLINE void row_masks::fill_row(const dataset::sample_text& row, std::int64_t seq_len,
                                         std::span<std::uint32_t> counted) {
  const auto source = static_cast<std::size_t>(row.source);
  if (!masks_[source]) {
    for (std::int64_t i = 0; i < seq_len; ++i) {
      counted[static_cast<std::size_t>(i) / 32] |= 1U << (i % 32);
    }
    return;
  }
  for (const dataset::row_part& part : row.parts) {
    auto first = static_cast<std::int64_t>(part.from.offset / token_bytes_[source]);
    auto last = first + static_cast<std::int64_t>(part.from.bytes / token_bytes_[source]);
    std::int64_t at = part.at;
    if (alignment_ == mask_alignment::label) --at;  // the bit of a label is for its input
    if (at < 0) ++at, ++first;
    last = std::min(last, first + seq_len - at);
    if (first >= last) continue;
    masks_[source]->check(first, last);
    formats::copy_bits(masks_[source]->mask.bits(), static_cast<std::uint64_t>(first),
                       static_cast<std::uint64_t>(last - first), counted,
                       static_cast<std::uint64_t>(at));
  }
}

/// Sets the bits of the tokens whose labels are not in their document to 0.
MILLRACE_INLINE void row_masks::drop_last_labels(const dataset::sample_text& row,
                                                 std::int64_t seq_len,
                                                 std::span<std::uint32_t> counted) const {
  if (!masks_[static_cast<std::size_t>(row.source)]) return;
  const auto drop = [&](std::int64_t at) {
    counted[static_cast<std::size_t>(at) / 32] &= ~(1U << (at % 32));
  };
  for (const std::int32_t boundary : row.boundaries) {
    if (0 < boundary && boundary < seq_len) drop(boundary - 1);
  }
  if (row.extra_begins) drop(seq_len - 1);
}

}  // namespace millrace::loader::detail
