// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/plan/edited_positions.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <millrace/dataset/instant/index_columns.hpp>
#include <millrace/dataset/run/batch_steps.hpp>
#include <millrace/dataset/run/edited_stream.hpp>
#include <millrace/dataset/run/edits.hpp>
#include <millrace/error.hpp>
#include <millrace/loader/plan/sample_plan.hpp>

namespace millrace::loader {

namespace detail {

MILLRACE_INLINE std::vector<dataset::position_range> blocked_positions(sample_plan& plan,
                                                                       const dataset::edit& e) {
  if (plan.end() == std::numeric_limits<std::int64_t>::max()) {
    throw config_error("documents of " + e.source +
                       " are blocked, but the run has no end, so that they come for ever; give it "
                       "train_samples");
  }
  const std::vector<data_file> files = plan.files();
  const std::filesystem::path bin = bin_of(e.source);
  if (std::ranges::count(files, bin, &data_file::path) == 0) {
    throw config_error("documents of " + e.source +
                       " are blocked, expected a prefix of one of the " +
                       std::to_string(files.size()) + " datasets of the run");
  }
  const dataset::index_columns columns(e.source, dataset::index_access::pread);
  if (e.last > columns.document_count()) {
    throw config_error("documents " + std::to_string(e.first) + " to " + std::to_string(e.last) +
                       " of " + e.source + " are blocked, expected numbers up to " +
                       std::to_string(columns.document_count()) + ", as many as it has");
  }
  const dataset::sequence_range sequences{columns.document_start(e.first),
                                          columns.document_start(e.last)};
  // A blend may have one dataset several times, under other names.
  std::vector<std::int64_t> positions;
  for (std::size_t source = 0; source < files.size(); ++source) {
    if (files[source].path != bin) continue;
    const auto with = plan.positions_with(static_cast<std::int64_t>(source), sequences);
    positions.insert(positions.end(), with.begin(), with.end());
  }
  std::ranges::sort(positions);
  std::vector<dataset::position_range> ranges;
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

MILLRACE_INLINE dataset::edited_stream edited_positions(sample_plan& plan,
                                                        std::span<const dataset::edit> edits,
                                                        const dataset::batch_steps& steps) {
  return dataset::edited_stream(
      edits, [&](std::int64_t step) { return steps.first_position(step); },
      [&](const dataset::edit& e) { return detail::blocked_positions(plan, e); });
}

}  // namespace millrace::loader
