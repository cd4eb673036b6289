// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/plan/context_plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include <millrace/dataset/detail/run/sample_text.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/dtype.hpp>
#include <millrace/loader/detail/ranks/context_slices.hpp>

namespace millrace::loader::detail {

/// Checks the boundaries of a packed row. The plan may come from a user's class, and wrong
/// boundaries would cause reads outside the row.
MILLRACE_INLINE void context_plan::check_documents(const dataset::sample_text& row) const {
  const auto& begins = row.boundaries;
  const bool whole = begins.size() > 1 && begins.size() == row.document_ends.size() &&
                     begins.front() == 0 && begins.back() == rules_.seq_len &&
                     std::ranges::is_sorted(begins) && std::ssize(begins) <= rules_.seq_len + 1;
  if (whole) return;
  throw config_error("sample " + std::to_string(row.position) + " has " +
                     std::to_string(begins.size()) + " boundaries and " +
                     std::to_string(row.document_ends.size()) +
                     " document ends, expected as many of each, in order, from 0 to " +
                     std::to_string(rules_.seq_len) + ", the tokens of a packed row");
}

MILLRACE_INLINE void context_plan::reduce(dataset::sample_text& row) {
  if (!rules_.cuts()) return;
  if (rules_.packed) check_documents(row);
  const bool from_start = rules_.eod != dataset::no_token && !rules_.positions_at_boundaries;
  ranges_.clear();
  for_each_chunk(rules_, row, [&](const row_chunk& chunk) {
    if (chunk.length == 0) return;
    const std::int64_t first = from_start ? chunk.begin : chunk.first;
    const std::int64_t known = chunk.real + (rules_.last_token_as_label ? 1 : 0);
    const std::int64_t end = std::min(chunk.first + chunk.length + 1, known);
    if (first >= end || chunk.begin == chunk.real) return;
    row_slice* const last = ranges_.empty() ? nullptr : &ranges_.back();
    if (last != nullptr && first <= last->first + last->length) {
      last->length = end - last->first;
    } else {
      ranges_.push_back({first, end - first});
    }
  });
  keep_ranges(row);
}

/// Reduces the parts of a row to the tokens in `ranges_`. Parts and ranges are both in order.
MILLRACE_INLINE void context_plan::keep_ranges(dataset::sample_text& row) {
  parts_.swap(row.parts);
  row.parts.clear();
  auto range = ranges_.begin();
  for (const dataset::row_part& part : parts_) {
    const auto item = formats::size_bytes(types_[static_cast<std::size_t>(part.from.file)]);
    const std::int64_t end = part.at + static_cast<std::int64_t>(part.from.bytes / item);
    while (range != ranges_.end() && range->first + range->length <= part.at) ++range;
    for (auto each = range; each != ranges_.end() && each->first < end; ++each) {
      const std::int64_t first = std::max(part.at, each->first);
      const std::int64_t last = std::min(end, each->first + each->length);
      const auto skipped = static_cast<std::uint64_t>(first - part.at) * item;
      row.parts.push_back({{part.from.file, part.from.offset + skipped,
                            static_cast<std::uint64_t>(last - first) * item},
                           first});
    }
  }
}

}  // namespace millrace::loader::detail
