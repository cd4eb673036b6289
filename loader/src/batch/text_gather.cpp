// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/batch/text_gather.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include <millrace/dataset/detail/run/sample_text.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/dtype.hpp>
#include <millrace/loader/detail/batch/batch_slot.hpp>
#include <millrace/loader/detail/io/range_reader.hpp>

namespace millrace::loader::detail {

MILLRACE_INLINE std::int64_t text_gather::fill(std::span<const dataset::sample_text> rows,
                                               range_reader& reader, batch_slot& slot) {
  plan(rows, slot);
  reader.gather(requests_);
  for (const detour& d : detours_) convert(d);
  pad(rows, types_, slot);
  put_boundaries(rows, slot);
  std::uint64_t bytes = 0;
  for (const read_request& request : requests_) bytes += request.from.bytes;
  return static_cast<std::int64_t>(bytes);
}

MILLRACE_INLINE void text_gather::plan(std::span<const dataset::sample_text> rows,
                                       batch_slot& slot) {
  requests_.clear();
  detours_.clear();
  std::size_t scratch = 0;
  const auto width = static_cast<std::size_t>(slot.layout.width());
  const auto stored =
      slot.layout.width() == token_width::u16 ? formats::dtype::uint16 : formats::dtype::int32;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    check_room(rows[r], slot.layout);
    std::byte* const row = slot.row(static_cast<std::int64_t>(r));
    for (const dataset::row_part& part : rows[r].parts) {
      std::byte* const to = row + static_cast<std::size_t>(part.at) * width;
      const formats::dtype type = types_[static_cast<std::size_t>(part.from.file)];
      if (type == stored) {
        requests_.push_back({part.from, to});
        continue;
      }
      const std::size_t bytes = part.from.bytes;
      detours_.push_back(
          {scratch, reinterpret_cast<std::int32_t*>(to), bytes / formats::size_bytes(type), &part});
      requests_.push_back({part.from, nullptr});
      scratch += (bytes + 63) / 64 * 64;
    }
  }
  if (detours_.empty()) return;
  if (scratch_.size() < scratch) scratch_.resize(scratch);
  std::size_t d = 0;
  for (read_request& request : requests_) {
    if (request.to == nullptr) request.to = scratch_.data() + detours_[d++].from;
  }
}

// Checks the size of a planned row. The plan may come from a user's class, and a wrong size would
// cause writes outside the slot.
MILLRACE_INLINE void text_gather::check_room(const dataset::sample_text& row,
                                             const slot_layout& layout) const {
  const auto of = [&] { return "sample " + std::to_string(row.position) + " is planned "; };
  for (const dataset::row_part& part : row.parts) {
    const auto file = static_cast<std::size_t>(part.from.file);
    const auto tokens =
        static_cast<std::int64_t>(part.from.bytes / formats::size_bytes(types_[file]));
    if (0 <= part.at && part.at <= layout.text_len() && tokens <= layout.text_len() - part.at) {
      continue;
    }
    throw format_error(files_[file].path, part.from.offset,
                       of() + "as tokens " + std::to_string(part.at) + " to " +
                           std::to_string(part.at + tokens) + " of a row, expected at most " +
                           std::to_string(layout.text_len()));
  }
  const auto most = static_cast<std::size_t>(layout.seq_len()) + 1;
  if (row.boundaries.size() <= most && row.document_ends.size() <= most) return;
  const auto source = static_cast<std::size_t>(row.source);
  throw format_error(files_[source].path, 0,
                     of() + "with " +
                         std::to_string(std::max(row.boundaries.size(), row.document_ends.size())) +
                         " boundaries, expected at most " + std::to_string(most));
}

MILLRACE_INLINE void text_gather::convert(const detour& d) const {
  const formats::dtype type = types_[static_cast<std::size_t>(d.part->from.file)];
  const dataset::token_view view(
      type, std::span(scratch_).subspan(d.from, static_cast<std::size_t>(d.part->from.bytes)));
  const std::span out(d.to, d.tokens);
  if (type != formats::dtype::int64) return view.copy_to(out);
  for (std::size_t i = 0; i < d.tokens; ++i) {
    const std::int64_t id = view[static_cast<std::int64_t>(i)];
    out[i] = static_cast<std::int32_t>(id);
    if (out[i] == id) continue;
    throw format_error(files_[static_cast<std::size_t>(d.part->from.file)].path,
                       d.part->from.offset + 8 * i,
                       "a token is " + std::to_string(id) +
                           ", expected an id that fits in 32 bits, the width of batches");
  }
}

/// Writes a zero to each place in the rows that no token fills.
MILLRACE_INLINE void text_gather::pad(std::span<const dataset::sample_text> rows,
                                      std::span<const formats::dtype> types, batch_slot& slot) {
  const auto width = static_cast<std::size_t>(slot.layout.width());
  for (std::size_t r = 0; r < rows.size(); ++r) {
    slot.real()[r] = static_cast<std::int32_t>(rows[r].real);
    if (rows[r].real == slot.layout.text_len()) continue;
    std::byte* const row = slot.row(static_cast<std::int64_t>(r));
    const auto zero = [&](std::int64_t first, std::int64_t last) {
      if (first < last) {
        std::memset(row + static_cast<std::size_t>(first) * width, 0,
                    static_cast<std::size_t>(last - first) * width);
      }
    };
    std::int64_t at = 0;
    for (const dataset::row_part& part : rows[r].parts) {
      zero(at, part.at);
      const auto item = formats::size_bytes(types[static_cast<std::size_t>(part.from.file)]);
      at = part.at + static_cast<std::int64_t>(part.from.bytes / item);
    }
    zero(at, slot.layout.text_len());
  }
}

MILLRACE_INLINE void text_gather::put_boundaries(std::span<const dataset::sample_text> rows,
                                                 batch_slot& slot) {
  std::int32_t entries = 0;
  slot.boundaries = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    slot.boundary_begin()[r] = entries;
    entries += static_cast<std::int32_t>(rows[r].boundaries.size());
  }
  slot.boundary_begin()[rows.size()] = entries;
  slot.boundaries = entries;
  std::int32_t tokens = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const auto at = static_cast<std::ptrdiff_t>(slot.boundary_begin()[r]);
    std::ranges::copy(rows[r].boundaries, slot.all_boundaries().begin() + at);
    if (slot.layout.packed()) {
      std::ranges::copy(rows[r].document_ends, slot.document_ends().begin() + at);
      const std::span unpadded = slot.unpadded_ends().subspan(static_cast<std::size_t>(at));
      const std::size_t ends = rows[r].document_ends.size();
      for (std::size_t i = 0; i < rows[r].boundaries.size(); ++i) {
        if (i > 0 && i < ends) {
          tokens += std::max(0, rows[r].document_ends[i] - rows[r].boundaries[i - 1]);
        }
        unpadded[i] = tokens;
      }
    }
  }
}

}  // namespace millrace::loader::detail
