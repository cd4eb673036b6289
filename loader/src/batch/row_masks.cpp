// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/batch/row_masks.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <utility>

#include <millrace/dataset/detail/sidecar_paths.hpp>
#include <millrace/io/file_mapping.hpp>

namespace millrace::loader::detail {

MILLRACE_INLINE std::filesystem::path prefix_of(const dataset::run_source& source) {
  return std::filesystem::path(source.bin).replace_extension();
}

MILLRACE_INLINE bool row_masks::any(std::span<const dataset::run_source> sources) {
  return std::ranges::any_of(sources, [](const dataset::run_source& each) {
    return io::identity_of(dataset::sidecar_paths(prefix_of(each)).mask).has_value();
  });
}

MILLRACE_INLINE std::optional<row_masks> row_masks::open(
    std::span<const dataset::run_source> sources, mask_alignment alignment) {
  if (alignment == mask_alignment::ignored) return std::nullopt;
  row_masks all;
  all.alignment_ = alignment;
  bool found = false;
  for (const dataset::run_source& each : sources) {
    const std::size_t size = formats::size_bytes(each.type);
    all.token_bytes_.push_back(size);
    auto mask = dataset::token_mask::find(prefix_of(each), each.bin_bytes / size);
    found = found || mask;
    all.masks_.emplace_back();
    if (!mask) continue;
    dataset::lost_page_watch watch(mask->bytes());
    all.masks_.back().emplace(source_mask{*std::move(mask), std::move(watch)});
  }
  if (!found) return std::nullopt;
  return all;
}

MILLRACE_INLINE void row_masks::fill(std::span<const dataset::sample_text> rows, batch_slot& slot) {
  seq_len_ = slot.layout.seq_len();
  trained_.resize(static_cast<std::size_t>(slot.layout.text_len()) + 1);
  const auto words = static_cast<std::size_t>(slot.layout.counted_words());
  for (std::size_t r = 0; r < rows.size(); ++r) {
    fill_row(rows[r], slot.counted().subspan(r * words, words));
  }
  for (const auto& each : masks_) {
    if (each) each->watch.check_there(each->mask.path());
  }
}

MILLRACE_INLINE void row_masks::fill_row(const dataset::sample_text& row,
                                         std::span<std::uint32_t> counted) {
  const auto source = static_cast<std::size_t>(row.source);
  const bool has_mask = masks_[source].has_value();
  std::ranges::fill(trained_, has_mask ? std::uint8_t{0} : std::uint8_t{1});
  for (const dataset::row_part& part : row.parts) {
    if (!has_mask) break;
    const formats::bit_span& bits = masks_[source]->mask.bits();
    const std::uint64_t first = part.from.offset / token_bytes_[source];
    const std::uint64_t count = part.from.bytes / token_bytes_[source];
    const auto out = std::span(trained_).subspan(static_cast<std::size_t>(part.at),
                                                 static_cast<std::size_t>(count));
    for (std::uint64_t at = 0; at < count; at += 64) {
      const auto size = static_cast<unsigned>(std::min<std::uint64_t>(64, count - at));
      std::uint64_t word = bits.word(first + at, size);
      for (unsigned i = 0; i < size; ++i, word >>= 1) out[at + i] = word & 1U;
    }
  }
  const std::size_t shift = alignment_ == mask_alignment::label ? 1 : 0;
  std::ranges::fill(counted, 0U);
  for (std::size_t i = 0; i < static_cast<std::size_t>(seq_len_); ++i) {
    counted[i / 32] |= std::uint32_t{trained_[i + shift]} << (i % 32);
  }
  if (!has_mask) return;
  const auto drop = [&](std::int64_t at) {
    counted[static_cast<std::size_t>(at) / 32] &= ~(1U << (at % 32));
  };
  for (const std::int32_t boundary : row.boundaries) {
    if (0 < boundary && boundary < seq_len_) drop(boundary - 1);
  }
  if (row.extra_begins) drop(seq_len_ - 1);
}

}  // namespace millrace::loader::detail
