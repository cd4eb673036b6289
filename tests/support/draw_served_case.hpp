// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <vector>

#include <millrace/error.hpp>

#include "support/paths.hpp"
#include "support/served_case.hpp"

namespace millrace::test {

/// A case with its dataset files and its run.
struct drawn_case {
  temp_folder folder{quick_folder()};
  served_case config;
  std::vector<std::filesystem::path> prefixes;
  case_run run;

  explicit drawn_case(served_case c)
      : config(std::move(c)),
        prefixes(write_case_data(config, folder.path())),
        run(run_of_case(config, prefixes)) {}
};

namespace detail {

inline void draw_blend(split_mix& random, served_case& c) {
  const auto weights = [&] {
    std::vector<std::int64_t> drawn;
    for (std::size_t s = 0; s < c.data.size(); ++s) drawn.push_back(random.from_to(1, 7));
    return drawn;
  };
  if (c.data.size() == 1) return;
  if (c.order == case_order::megatron) {
    if (c.samples >= 0 && !random.one_in(4)) c.blend.push_back({0, weights()});
    c.fused = random.one_in(3);
    return;
  }
  c.blend.push_back({0, weights()});
  std::int64_t step = 0;
  while (random.one_in(2) && c.blend.size() < 3) {
    step += random.from_to(1, 5);
    if (c.samples >= 0 && steps_of(c).first_position(step) >= c.samples) break;
    c.blend.push_back({step, weights()});
    c.blend.back().weights[static_cast<std::size_t>(
        random.from_to(0, static_cast<std::int64_t>(c.data.size()) - 1))] = 0;
  }
}

inline void draw_sampler(split_mix& random, served_case& c) {
  const std::int64_t kind = random.from_to(0, 9);
  c.sampler = kind < 6   ? loader::sampler_type::single
              : kind < 9 ? loader::sampler_type::cyclic
                         : loader::sampler_type::full_validation;
  c.batch_size = random.from_to(1, 4);
  c.world_size = random.from_to(1, 4);
  if (c.sampler == loader::sampler_type::full_validation) c.batch_size = 1;
  c.data_sharding = c.sampler != loader::sampler_type::cyclic || random.one_in(2);
  if (!random.one_in(3)) c.global_batch_size = c.width() * random.from_to(1, 5);
  if (c.sampler != loader::sampler_type::single) return;
  c.drop_last = random.one_in(2);
  const std::int64_t micro_batches = c.step_samples() / c.width();
  if (micro_batches == 1 || !random.one_in(2)) return;
  const std::int64_t start = random.from_to(1, micro_batches - 1);
  const std::int64_t left = micro_batches - start;
  c.rampup = {start * c.width(), (random.one_in(2) ? 1 : left) * c.width(), random.from_to(1, 120)};
}

inline case_edit draw_edit(split_mix& random, const served_case& c, std::int64_t end) {
  case_edit e;
  dataset::edit& x = e.change;
  if (c.samples >= 0 && random.one_in(4)) {
    x.kind = dataset::edit_kind::block;
    x.unit = dataset::edit_unit::documents;
    e.source = random.from_to(0, static_cast<std::int64_t>(c.data.size()) - 1);
    case_dataset of = c.data[static_cast<std::size_t>(e.source)];
    if (of.same_as >= 0) of = c.data[static_cast<std::size_t>(of.same_as)];
    x.first = random.from_to(0, of.documents);
    x.last = std::min(of.documents + 1, x.first + (random.one_in(8) ? 0 : random.from_to(1, 3)));
  } else {
    x.kind = random.one_in(2) ? dataset::edit_kind::skip : dataset::edit_kind::replay;
    x.unit = random.one_in(3) ? dataset::edit_unit::steps : dataset::edit_unit::samples;
    const bool steps = x.unit == dataset::edit_unit::steps;
    const std::int64_t most = steps ? steps_of(c).step_of(end) : end;
    x.first = random.from_to(0, most);
    x.last = x.first + (random.one_in(8) ? 0 : random.from_to(1, steps ? 2 : 12));
    if (x.kind == dataset::edit_kind::replay) x.at = x.last + random.from_to(0, most / 2);
  }
  if (random.one_in(4)) x.since = random.from_to(0, end);
  return e;
}

/// Draws the edits, and the number of consumed samples at which the case starts. Both depend on the
/// number of samples of the run.
inline void draw_place(split_mix& random, drawn_case& drawn) {
  served_case& c = drawn.config;
  constexpr std::int64_t no_end = std::numeric_limits<std::int64_t>::max();
  const std::int64_t whole = drawn.run->end();
  const std::int64_t end = std::min<std::int64_t>(whole, 160);  // a run can be endless
  if (whole == no_end) c.most_batches = end / c.width() + 1;
  if (c.sampler == loader::sampler_type::cyclic) {
    const std::int64_t per_pass = std::max<std::int64_t>(1, whole / c.width());
    c.most_batches = 2 * per_pass + random.from_to(1, 3);
    if (random.one_in(2)) c.consumed_samples = random.from_to(0, 3 * per_pass) * c.width();
    return;
  }
  if (c.sampler == loader::sampler_type::full_validation) {
    if (random.one_in(2)) {
      c.consumed_samples = random.from_to(0, (end - 1) / c.world_size) * c.world_size;
    }
    return;
  }
  if (random.one_in(2)) {
    for (std::int64_t n = random.from_to(1, 4); n > 0; --n) {
      c.edits.push_back(draw_edit(random, c, end));
    }
  }
  const auto samples = [&] {
    const loader::loader_options options = options_of(c, drawn.prefixes, 0);
    const auto loader = loader_of(drawn.run, options);
    return loader->micro_batches() > end ? end : loader->micro_batches() * c.width();
  };
  std::int64_t left = 0;
  try {
    left = samples();
  } catch (const config_error&) {  // `since` of an edit is after the end of its replay
    for (case_edit& each : c.edits) each.change.since = 0;
    left = samples();
  }
  if (!random.one_in(2)) return;
  const bool aligned = c.global_batch_size != 0 || !random.one_in(4);
  const std::int64_t unit = aligned ? c.width() : 1;
  const std::int64_t most = c.drop_last ? left : std::max<std::int64_t>(0, left - c.width());
  c.consumed_samples = random.from_to(0, most / unit) * unit;
}

}  // namespace detail

/// Draws cases with the given order until a run can be built for a case and a loader accepts it.
/// Returns this case.
inline std::unique_ptr<drawn_case> draw_case(split_mix& random, case_order order) {
  for (;;) {
    served_case c;
    c.order = order;
    detail::draw_sampler(random, c);
    const std::int64_t datasets = order == case_order::stored ? 1 : random.from_to(1, 3);
    for (std::int64_t d = 0; d < datasets; ++d) {
      if (d > 0 && random.one_in(6)) {
        c.data.push_back({.same_as = 0});
      } else {
        c.data.push_back({static_cast<std::uint64_t>(random.from_to(1, 1000000)),
                          random.from_to(8, 90), random.one_in(3)});
      }
    }
    c.seed = random.from_to(0, 5000);
    c.seq_len = random.from_to(2, 36);
    if (order != case_order::stored) c.samples = random.from_to(6, 160);
    const bool may_be_endless = (order == case_order::instant || order == case_order::packed) &&
                                c.sampler == loader::sampler_type::single;
    if ((order == case_order::megatron || may_be_endless) && random.one_in(4)) c.samples = -1;
    if (order == case_order::megatron) {
      c.split = random.one_in(3) ? "none" : random.one_in(2) ? "60,30,10" : "100,0,0";
      if (c.split != "100,0,0") c.part = random.from_to(0, 2);
      c.extra_token = !random.one_in(3);
      c.keep_partial = random.one_in(2);
    }
    if (order == case_order::packed) {
      c.pad_documents_to = random.from_to(1, 4);
      c.packing = static_cast<dataset::packing_algorithm>(random.from_to(0, 4));
      c.seq_len += c.pad_documents_to - 1 - (c.seq_len - 1) % c.pad_documents_to;
    }
    detail::draw_blend(random, c);
    try {
      auto drawn = std::make_unique<drawn_case>(c);
      const std::int64_t end = drawn->run->end();
      if (end < c.width() || (end > 2000 && c.samples >= 0)) continue;
      detail::draw_place(random, *drawn);
      return drawn;
    } catch (const config_error&) {  // e.g. this part of the split has no samples
      continue;
    }
  }
}

}  // namespace millrace::test
