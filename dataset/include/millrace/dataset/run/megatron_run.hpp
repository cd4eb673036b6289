// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/dataset/megatron/blend_cache.hpp>
#include <millrace/dataset/megatron/blend_plan.hpp>
#include <millrace/dataset/megatron/blend_recipe.hpp>
#include <millrace/dataset/megatron/blend_rounding.hpp>
#include <millrace/dataset/megatron/gpt_cache.hpp>
#include <millrace/dataset/megatron/gpt_description.hpp>
#include <millrace/dataset/megatron/gpt_index.hpp>
#include <millrace/dataset/megatron/gpt_order.hpp>
#include <millrace/dataset/megatron/python_json.hpp>
#include <millrace/dataset/run/run_order.hpp>
#include <millrace/dataset/run/state.hpp>
#include <millrace/error.hpp>

namespace millrace::dataset {

/// Which dataset each sample of a blend is of, and which of its samples it is.
struct blend_columns {
  std::vector<std::int16_t> dataset;
  std::vector<std::int64_t> sample;
};

/// Where Megatron has kept the indices of a run's datasets.
struct megatron_caches {
  std::filesystem::path folder;  ///< --data-cache-path
  python_json tokenizer;         ///< the tokenizer's `unique_identifiers`
};

/// Megatron's order of one part of a run, over one dataset or a blend, as a run_order. Copies share
/// the indices. Any thread.
class megatron_run {
 public:
  struct indexed_source {
    std::shared_ptr<const indexed_dataset> data;
    gpt_order order;  ///< of `data`
  };

  /// Builds the indices of a part in memory, as Megatron would: 4 bytes a sequence and 12 a sample
  /// of each dataset, 10 a sample of the blend.
  ///
  /// @param caches   the indices of the datasets are taken from there, and not built; that of the
  ///                 blend is built all the same, and held against the one that is kept there
  /// @param rounding  of a blend: `fused` is what Megatron has made on a machine with FMA
  /// @param plan     one dataset, or a blend
  /// @param request  of all datasets; its number of samples is not looked at
  /// @param split    as typed; nothing where the part has data of its own
  /// @throws config_error  the split gives the part nothing, the plan is of several datasets that
  ///                       are not blended, a cache is not there or damaged, a kept blend is
  ///                       another one; or as plan_gpt_index, blend_recipe
  /// @throws io_error, format_error  a dataset cannot be read
  static megatron_run build(const part_plan& plan, gpt_request request,
                            const std::optional<std::string>& split, int threads = 1,
                            const std::optional<megatron_caches>& caches = std::nullopt,
                            blend_rounding rounding = blend_rounding::twice);

  /// @param blend  empty for one source
  /// @pre there is a source; samples of the blend are ones of its sources
  explicit megatron_run(std::vector<indexed_source> sources, blend_columns blend = {})
      : sources_(std::move(sources)),
        blend_(std::make_shared<const blend_columns>(std::move(blend))) {
    assert(!sources_.empty());
    const gpt_plan& plan = order(0).plan();
    run_state state;
    state.order = "megatron";
    state.seed = plan.random_seed;
    state.seq_len = plan.sequence_length;
    state.extra_token = plan.extra_token != 0;
    for (const indexed_source& each : sources_) {
      state.data.push_back({.prefix = each.data->prefix().string()});
    }
    description_ = std::make_shared<const run_state>(std::move(state));
  }

  const gpt_order& order(std::int64_t source) const noexcept { return at_source(source).order; }
  const indexed_dataset& data(std::int64_t source) const noexcept {
    return *at_source(source).data;
  }

  /// What a state says of the order; of its data prefixes and weights. Of a run that was not built
  /// here, what its indices say.
  const run_state& description() const noexcept { return *description_; }

  std::int64_t end() const noexcept {
    return is_blend() ? static_cast<std::int64_t>(blend_->dataset.size()) : order(0).size();
  }
  std::int64_t seq_len() const noexcept { return order(0).plan().sequence_length; }
  std::int64_t source_count() const noexcept { return static_cast<std::int64_t>(sources_.size()); }
  const std::filesystem::path& prefix(std::int64_t source) const noexcept {
    return at_source(source).data->prefix();
  }

  /// @pre 0 <= position < end()
  source_sample at(std::int64_t position) const noexcept {
    if (!is_blend()) return {0, position};
    const auto i = static_cast<std::size_t>(position);
    return {blend_->dataset[i], blend_->sample[i]};
  }

  /// @throws format_error  the index contradicts the dataset.
  std::int64_t pieces(const source_sample& sample, std::vector<piece>& out) const {
    return order(sample.source).sample(sample.k, out);
  }

  /// Reads the document index and the shuffle index of the source, and a blend's columns.
  /// @throws format_error  the index contradicts the dataset.
  std::vector<std::int64_t> positions_with(std::int64_t source, sequence_range sequences,
                                           std::int64_t before) const;

  std::int64_t taken(std::int64_t source, std::int64_t positions) const noexcept {
    if (!is_blend()) return std::min(positions, end());
    const auto begin = blend_->dataset.begin();
    return std::count(begin, begin + std::min(positions, end()), source);
  }

  /// All epochs of a dataset are one round: samples reach from one epoch into the next.
  sample_round round_of(std::int64_t source, std::int64_t) const {
    const gpt_plan& plan = order(source).plan();
    return {0, plan.samples, plan.epochs,
            plan.epochs == 1 ? "one epoch" : "all " + std::to_string(plan.epochs) + " epochs"};
  }
  /// @throws format_error  the index contradicts the dataset.
  std::vector<left_out> left_out_of(std::int64_t source, const sample_round& round) const;

 private:
  const indexed_source& at_source(std::int64_t s) const noexcept {
    return sources_[static_cast<std::size_t>(s)];
  }
  bool is_blend() const noexcept { return !blend_->dataset.empty(); }
  megatron_run&& described_by(const part_plan& plan, const gpt_request& request,
                              const std::optional<std::string>& split, blend_rounding rounding) &&;

  std::vector<indexed_source> sources_;
  std::shared_ptr<const blend_columns> blend_;
  std::shared_ptr<const run_state> description_;
};

// ---------------------------------------------------------------------------------------------

namespace detail {

inline gpt_description description_of(const planned_dataset& planned, const gpt_request& request,
                                      const std::optional<std::string>& split,
                                      const megatron_caches& caches) {
  return {planned.prefix,      planned.num_samples,     request.part,
          request.random_seed, request.sequence_length, split,
          caches.tokenizer};
}

inline megatron_run::indexed_source build_source(const planned_dataset& planned,
                                                 gpt_request request,
                                                 const std::optional<std::string>& split,
                                                 int threads,
                                                 const std::optional<megatron_caches>& caches) {
  auto data = std::make_shared<const indexed_dataset>(planned.prefix);
  const std::string whose = "the " + std::string(name(request.part)) + " part of " + planned.prefix;
  sequence_range range{0, data->sequence_count()};
  if (split) {
    const split_matrix matrix(*split);
    if (!matrix.has(request.part)) {
      throw config_error(whose + " has no weight in --split '" + *split + "'");
    }
    range = matrix.of(request.part, data->sequence_count());
  }
  const auto lengths = data->index().lengths;
  std::int64_t tokens = 0;
  try {
    tokens = count_tokens(lengths, range, data->index().lengths_offset());
  } catch (const format_error& e) {
    throw e.in(data->idx_path());
  }
  request.num_samples = planned.num_samples;
  const gpt_plan plan = plan_gpt_index(request, range, tokens, whose);
  if (caches) {
    std::string why;
    auto order = gpt_cache(caches->folder, description_of(planned, request, split, *caches))
                     .load(plan, lengths, &why);
    if (!order) {
      throw config_error("the cache of " + whose + " cannot be used: " + why +
                         "; build it with inspect_dataset prepare-cache");
    }
    return {std::move(data), *std::move(order)};
  }
  gpt_order order(plan, lengths, view_of(build_gpt_index(plan, lengths, whose, threads)));
  return {std::move(data), std::move(order)};
}

/// Nothing is said of how a kept blend was rounded, and another rounding is another order.
inline void require_kept_blend(const megatron_caches& caches, const blend_recipe& recipe,
                               const part_plan& plan, const gpt_request& request,
                               const std::optional<std::string>& split, blend_rounding rounding,
                               const blend_columns& built) {
  std::vector<python_json> datasets;
  for (const planned_dataset& each : plan.datasets) {
    datasets.push_back(description_of(each, request, split, caches).identifiers());
  }
  const blend_cache cache(caches.folder, recipe, std::move(datasets), request.part);
  if (!std::filesystem::exists(cache.dataset_path())) return;
  std::string why;
  const auto kept = cache.load(&why);
  const std::string what =
      "the blend that is kept as " + cache.dataset_path().string() + " cannot be used: ";
  if (!kept) {
    throw config_error(what + why + "; build it with inspect_dataset prepare-cache");
  }
  for (std::int64_t i = 0; i < kept->size(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    const blended_sample sample = (*kept)[i];
    if (sample == blended_sample{static_cast<std::size_t>(built.dataset[at]), built.sample[at]})
      continue;
    throw config_error(what + "sample " + std::to_string(i) + " is another one where blends are " +
                       "rounded " + name(rounding) + "; it may have been made on a machine that " +
                       "rounds the other way (--blend-rounding)");
  }
}

}  // namespace detail

inline megatron_run megatron_run::build(const part_plan& plan, gpt_request request,
                                        const std::optional<std::string>& split, int threads,
                                        const std::optional<megatron_caches>& caches,
                                        blend_rounding rounding) {
  if (plan.datasets.empty()) {
    throw config_error("the " + std::string(name(request.part)) +
                       " part has no data: give it a weight in --split, and samples");
  }
  if (!plan.blended && plan.datasets.size() != 1) {
    throw config_error("the " + std::string(name(request.part)) + " part has " +
                       std::to_string(plan.datasets.size()) +
                       " datasets, each for itself; expected one, or a blend");
  }
  std::vector<indexed_source> sources;
  std::vector<std::int64_t> lengths;
  for (const planned_dataset& each : plan.datasets) {
    sources.push_back(detail::build_source(each, request, split, threads, caches));
    lengths.push_back(sources.back().order.size());
  }
  if (!plan.blended) {
    return megatron_run(std::move(sources)).described_by(plan, request, split, rounding);
  }
  const blend_recipe recipe(plan, lengths, request.part);
  const auto size = static_cast<std::size_t>(recipe.size());
  blend_columns blend{std::vector<std::int16_t>(size), std::vector<std::int64_t>(size)};
  recipe.fill({blend.dataset, blend.sample}, rounding);
  if (caches) detail::require_kept_blend(*caches, recipe, plan, request, split, rounding, blend);
  return megatron_run(std::move(sources), std::move(blend))
      .described_by(plan, request, split, rounding);
}

inline megatron_run&& megatron_run::described_by(const part_plan& plan, const gpt_request& request,
                                                 const std::optional<std::string>& split,
                                                 blend_rounding rounding) && {
  run_state state = *description_;
  state.split = split.value_or("");
  state.split_part = name(request.part);
  state.samples.assign(3, 0);  // of the other parts nothing is known, and nothing depends on them
  state.samples[static_cast<std::size_t>(request.part)] =
      (plan.blended ? plan.size : plan.datasets[0].num_samples).value_or(-1);
  state.surplus = plan.surplus;
  state.weighted = !plan.weights.empty();
  if (plan.blended) state.blend_rounding = name(rounding);
  state.drop_last_partial_sequence = request.drop_last_partial_validation_sequence;
  for (std::size_t s = 0; s < plan.weights.size(); ++s) state.data[s].weight = plan.weights[s];
  description_ = std::make_shared<const run_state>(std::move(state));
  return std::move(*this);
}

inline std::vector<std::int64_t> megatron_run::positions_with(std::int64_t source,
                                                              sequence_range sequences,
                                                              std::int64_t before) const {
  const std::vector<std::int64_t> samples = order(source).samples_with(sequences);
  const std::int64_t end = std::min(before, this->end());
  std::vector<std::int64_t> positions;
  if (!is_blend()) {
    std::ranges::copy_if(samples, std::back_inserter(positions),
                         [&](std::int64_t k) { return k < end; });
    return positions;
  }
  for (std::int64_t position = 0; position < end; ++position) {
    const source_sample sample = at(position);
    if (sample.source != source || !std::ranges::binary_search(samples, sample.k)) continue;
    positions.push_back(position);
  }
  return positions;
}

inline std::vector<left_out> megatron_run::left_out_of(std::int64_t source,
                                                       const sample_round& round) const {
  const gpt_plan& plan = order(source).plan();
  const formats::mmidx_view& index = at_source(source).data->index();
  const auto item = static_cast<std::int64_t>(formats::size_bytes(index.type));
  const auto first_token = [&](std::int64_t sequence) {
    return sequence < index.sequence_count()
               ? index.pointers[static_cast<std::size_t>(sequence)] / item
               : at_source(source).data->token_count();
  };
  const std::string other = "of other parts of --split";
  std::vector<left_out> all = {{0, first_token(plan.sequences.first), round.times, other},
                               {first_token(plan.sequences.last),
                                at_source(source).data->token_count(), round.times, other}};
  for (const piece& p : order(source).behind_last_sample()) {
    const std::int64_t first = first_token(p.sequence) + p.first;
    all.push_back({first, first + p.tokens, 1, "behind the last sample"});
  }
  return all;
}

}  // namespace millrace::dataset
