// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <millrace/dataset/detail/instant/index_columns.hpp>
#include <millrace/dataset/detail/run/batch_steps.hpp>
#include <millrace/dataset/detail/run/edited_stream.hpp>
#include <millrace/dataset/run.hpp>
#include <millrace/dataset/sampler.hpp>
#include <millrace/dataset/state.hpp>
#include <millrace/error.hpp>

namespace millrace::dataset {

namespace detail {

/// The positions whose samples contain any token of the documents that an edit blocks.
MILLRACE_INLINE std::vector<position_range> blocked_positions(const run& order, const edit& e) {
  if (order.end() == sampler::unbounded) {
    throw config_error(
        "documents of " + e.source +
        " are blocked, but the run has no end, so they would recur forever; set train_samples");
  }
  std::vector<std::int64_t> sources;  // a blend may contain a dataset several times
  for (std::int64_t s = 0; s < order.source_count(); ++s) {
    if (order.prefix(s) == e.source) sources.push_back(s);
  }
  if (sources.empty()) {
    throw config_error("documents of " + e.source +
                       " are blocked, expected a prefix of one of the " +
                       std::to_string(order.source_count()) + " datasets of the run");
  }
  const index_columns columns(e.source, index_access::pread);
  if (e.last > columns.document_count()) {
    throw config_error("documents " + std::to_string(e.first) + " to " + std::to_string(e.last) +
                       " of " + e.source + " are blocked, expected numbers up to " +
                       std::to_string(columns.document_count()) + ", as many as it has");
  }
  const sequence_range sequences{columns.document_start(e.first), columns.document_start(e.last)};
  std::vector<std::int64_t> positions;
  for (const std::int64_t source : sources) {
    const auto with = order.positions_with(source, sequences, order.end());
    positions.insert(positions.end(), with.begin(), with.end());
  }
  std::ranges::sort(positions);
  std::vector<position_range> ranges;
  for (const std::int64_t at : positions) {
    if (!ranges.empty() && ranges.back().last == at) {
      ++ranges.back().last;
    } else {
      ranges.push_back({at, at + 1});
    }
  }
  return ranges;
}

}  // namespace detail

MILLRACE_INLINE edited_stream edited_positions(const run& order, std::span<const edit> edits,
                                               const batch_steps& steps) {
  return edited_stream(
      edits, [&](std::int64_t step) { return steps.first_position(step); },
      [&](const edit& e) { return detail::blocked_positions(order, e); });
}

}  // namespace millrace::dataset
