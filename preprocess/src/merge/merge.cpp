// SPDX-License-Identifier: Apache-2.0
#include "merge/merge.hpp"

#include <cstddef>
#include <vector>

#include "merge/merge_folder.hpp"
#include "merge/merge_input.hpp"
#include "merge/merge_sidecars.hpp"
#include "merge/merge_target.hpp"
#include "merge/merged_dataset.hpp"
#include "merge/place_part.hpp"
#include "output/output_check.hpp"

namespace millrace::preprocess {

stop_flag stop_flag_of(const merge_options& options) {
  return {options.stop,
          "the new files were removed, and the files that existed before are unchanged"};
}

merge_summary merge(const merge_options& options) {
  const stop_flag stop = stop_flag_of(options);
  merge_summary summary;
  summary.prefixes = datasets_in(options.input);
  expect_folder(options.output_prefix);
  expect_another_folder(options.output_prefix, options.input);
  const merge_input first(summary.prefixes.front());
  summary.type = first.view().type;
  const merged_sidecars sidecars = plan_sidecars(summary.prefixes);
  summary.dropped = sidecars.dropped;
  // Compare all headers before the first byte is copied, because copying may take hours.
  merged_layout layout{.type = summary.type, .multimodal = options.multimodal, .total = {}};
  std::vector<dataset_extent> extents;
  for (std::size_t i = 0; i < summary.prefixes.size(); ++i) {
    stop.check();
    const merge_input input(summary.prefixes[i]);
    expect_fits(input, first, options.multimodal);
    if (sidecars.meta) expect_meta_of(input, sidecars.parts[i]);
    extents.push_back(extent_of(input.view()));
    layout.total += extents.back();
  }

  merged_dataset whole(options.output_prefix, layout, summary.prefixes, sidecars, merge_room_advice,
                       stop);
  if (!options.overwrite) refuse_existing(options.output_prefix);
  merge_target target(whole.paths(), layout, sidecars.sum);
  dataset_extent before;
  for (std::size_t i = 0; i < summary.prefixes.size(); ++i) {
    const merge_input input = reopen(summary.prefixes[i], extents[i]);
    expect_fits(input, first, options.multimodal);  // the input may have been replaced
    place_part(input, before, target, stop);
    before += extents[i];
  }
  target.write_frame();
  if (sidecars.sum) target.put_joined(target.bin().pieces, target.idx().pieces);
  target.sync(stop);
  whole.append_sidecars(summary.prefixes, stop);
  whole.finish(stop);
  stop.check();
  publish_dataset(whole.paths(), whole.sidecars());
  if (sidecars.meta) summary.tasks = sidecars.meta->tasks;
  summary.sequences = static_cast<std::int64_t>(layout.total.sequences);
  summary.documents = static_cast<std::int64_t>(layout.total.documents);
  summary.tokens =
      static_cast<std::int64_t>(layout.total.bin_bytes / formats::size_bytes(layout.type));
  return summary;
}

}  // namespace millrace::preprocess
