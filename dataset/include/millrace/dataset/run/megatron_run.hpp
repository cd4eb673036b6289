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

#include <millrace/dataset/instant/document_search.hpp>
#include <millrace/dataset/instant/index_columns.hpp>
#include <millrace/dataset/megatron/blend_cache.hpp>
#include <millrace/dataset/megatron/blend_plan.hpp>
#include <millrace/dataset/megatron/blend_recipe.hpp>
#include <millrace/dataset/megatron/blend_rounding.hpp>
#include <millrace/dataset/megatron/gpt_cache.hpp>
#include <millrace/dataset/megatron/gpt_description.hpp>
#include <millrace/dataset/megatron/gpt_index.hpp>
#include <millrace/dataset/megatron/gpt_order.hpp>
#include <millrace/dataset/megatron/large_array.hpp>
#include <millrace/dataset/megatron/length_column.hpp>
#include <millrace/dataset/megatron/python_json.hpp>
#include <millrace/dataset/open_pool.hpp>
#include <millrace/dataset/run/run_order.hpp>
#include <millrace/dataset/run/state.hpp>
#include <millrace/error.hpp>
#include <millrace/io/file_ops.hpp>

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
/// all. Any thread.
///
/// Of each dataset its indices stay, where they are built; a bounded number of `.idx` files, and of
/// caches where indices are taken from there, are open at once, mapped where that is possible.
class megatron_run {
 public:
  struct source_info;

  /// A source, opened.
  struct open_source {
    /// @throws as `open`
    explicit open_source(const source_info& of);
    open_source(const open_source&) = delete;
    open_source& operator=(const open_source&) = delete;

    document_search search;
    gpt_order order;  // into search's columns
  };
  using source_pointer = std::shared_ptr<const open_source>;

  /// What is known of a source without opening it again.
  struct source_info {
    std::filesystem::path prefix;
    std::string whose;  ///< "the train part of PREFIX", for messages
    formats::dtype type = formats::dtype::uint16;
    std::int64_t tokens = 0;
    std::int64_t sequences = 0;
    gpt_plan plan;
    gpt_index_view index;                 ///< where it was built
    std::optional<gpt_cache> cache = {};  ///< else
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
  /// @param most_open  datasets, and caches, that are kept open at once; it decides nothing else
  /// @throws io_error, format_error  a dataset cannot be read
  static megatron_run build(const part_plan& plan, gpt_request request,
                            const std::optional<std::string>& split, int threads = 1,
                            const std::optional<megatron_caches>& caches = std::nullopt,
                            blend_rounding rounding = blend_rounding::twice,
                            std::size_t most_open = 512);

  const source_info& info(std::int64_t s) const noexcept {
    return shared_->sources[static_cast<std::size_t>(s)];
  }
  const gpt_plan& plan(std::int64_t s) const noexcept { return info(s).plan; }

  /// A source, opened if it is not. It lives as long as the pointer.
  /// @throws io_error, format_error, config_error  it cannot be opened, is not the one that the run
  ///                                               was built with, or its cache is gone or damaged
  source_pointer open(std::int64_t s) const { return shared_->pool.get(s); }

  /// How many sources are open now.
  std::size_t open_count() const { return shared_->pool.open_count(); }

  /// What a state says of the order; of its data prefixes and weights.
  const run_state& description() const noexcept { return shared_->description; }

  std::int64_t end() const noexcept {
    return is_blend() ? static_cast<std::int64_t>(blend().dataset.size()) : plan(0).samples;
  }
  std::int64_t seq_len() const noexcept { return plan(0).sequence_length; }
  std::int64_t source_count() const noexcept { return std::ssize(shared_->sources); }
  const std::filesystem::path& prefix(std::int64_t source) const noexcept {
    return info(source).prefix;
  }

  /// @pre 0 <= position < end()
  source_sample at(std::int64_t position) const noexcept {
    if (!is_blend()) return {0, position};
    const auto i = static_cast<std::size_t>(position);
    return {blend().dataset[i], blend().sample[i]};
  }

  /// @throws as `open`; format_error  the index contradicts the dataset.
  std::int64_t pieces(const source_sample& sample, std::vector<piece>& out) const {
    return open(sample.source)->order.sample(sample.k, out);
  }

  /// Reads the document index and the shuffle index of the source, and a blend's columns.
  /// @throws as `open`; format_error  the index contradicts the dataset.
  std::vector<std::int64_t> positions_with(std::int64_t source, sequence_range sequences,
                                           std::int64_t before) const;

  /// Looks at no more than `counted_positions` of a blend.
  std::int64_t taken(std::int64_t source, std::int64_t positions) const noexcept;

  /// All epochs of a dataset are one round: samples reach from one epoch into the next.
  sample_round round_of(std::int64_t source, std::int64_t) const {
    const gpt_plan& of = plan(source);
    return {0, of.samples, of.epochs,
            of.epochs == 1 ? "one epoch" : "all " + std::to_string(of.epochs) + " epochs"};
  }
  /// @throws as `open`; format_error  the index contradicts the dataset.
  std::vector<left_out> left_out_of(std::int64_t source, const sample_round& round) const;

 private:
  static constexpr std::int64_t counted_positions = std::int64_t{1} << 16;

  struct contents {
    contents(std::vector<source_info> all, std::size_t most_open)
        : sources(std::move(all)),
          pool(
              std::ssize(sources),
              [this](std::int64_t source) {
                return std::make_shared<const open_source>(
                    sources[static_cast<std::size_t>(source)]);
              },
              most_open) {}
    contents(const contents&) = delete;
    contents& operator=(const contents&) = delete;

    std::vector<source_info> sources;
    blend_columns blend;               // empty for one source
    std::vector<std::int64_t> counts;  // [source] of the blend before each `counted_positions`
    run_state description;
    open_pool<open_source> pool;
  };

  explicit megatron_run(std::shared_ptr<contents> all) : shared_(std::move(all)) {}

  const blend_columns& blend() const noexcept { return shared_->blend; }
  bool is_blend() const noexcept { return !blend().dataset.empty(); }

  static source_info build_source(const planned_dataset& planned, gpt_request request,
                                  const std::optional<std::string>& split, int threads,
                                  const std::optional<megatron_caches>& caches);
  static std::vector<std::int64_t> counts_of(const blend_columns& blend, std::size_t sources);
  static run_state describe(const std::vector<source_info>& sources, const part_plan& plan,
                            const gpt_request& request, const std::optional<std::string>& split,
                            blend_rounding rounding);

  std::shared_ptr<contents> shared_;
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

/// The index of a source, and that it is the one that the run was built with.
inline index_columns open_columns(const megatron_run::source_info& of) {
  index_columns columns(of.prefix);
  if (columns.sequence_count() == of.sequences && columns.token_count() == of.tokens &&
      columns.type() == of.type) {
    return columns;
  }
  throw format_error(columns.idx_path(), 0,
                     "the dataset has " + std::to_string(columns.sequence_count()) +
                         " sequences of " + std::to_string(columns.token_count()) +
                         " tokens, but had " + std::to_string(of.sequences) + " of " +
                         std::to_string(of.tokens) +
                         " when the run was built: it is another one, or was replaced");
}

inline gpt_order order_of(const megatron_run::source_info& of, length_column lengths) {
  if (!of.cache) return {of.plan, lengths, of.index};
  std::string why;
  if (auto order = of.cache->load(of.plan, lengths, &why)) return *std::move(order);
  throw config_error("the cache of " + of.whose + " cannot be used: " + why +
                     "; build it with inspect_dataset prepare-cache");
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
  if (!io::is_there(cache.dataset_path())) return;
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

inline megatron_run::open_source::open_source(const source_info& of)
    : search(detail::open_columns(of)),
      order(detail::order_of(of, length_column(search.columns()))) {}

/// Of the `.idx` all lengths are read, once, and no map is made.
inline megatron_run::source_info megatron_run::build_source(
    const planned_dataset& planned, gpt_request request, const std::optional<std::string>& split,
    int threads, const std::optional<megatron_caches>& caches) {
  const index_columns columns(planned.prefix, index_access::pread);
  source_info info{.prefix = planned.prefix,
                   .whose = "the " + std::string(name(request.part)) + " part of " + planned.prefix,
                   .type = columns.type(),
                   .tokens = columns.token_count(),
                   .sequences = columns.sequence_count(),
                   .plan = {},
                   .index = {}};
  sequence_range range{0, columns.sequence_count()};
  if (split) {
    const split_matrix matrix(*split);
    if (!matrix.has(request.part)) {
      throw config_error(info.whose + " has no weight in --split '" + *split + "'");
    }
    range = matrix.of(request.part, columns.sequence_count());
  }
  large_array<std::int32_t> copy(static_cast<std::size_t>(columns.sequence_count()));
  columns.read_lengths(copy.numbers());
  const formats::unaligned_span<std::int32_t> lengths(copy.bytes());
  std::int64_t tokens = 0;
  try {
    tokens = count_tokens(lengths, range, columns.length_offset(0));
  } catch (const format_error& e) {
    throw e.in(columns.idx_path());
  }
  request.num_samples = planned.num_samples;
  info.plan = plan_gpt_index(request, range, tokens, info.whose);
  if (caches) {
    info.cache.emplace(caches->folder, detail::description_of(planned, request, split, *caches));
  } else {
    info.index = view_of(build_gpt_index(info.plan, lengths, info.whose, threads));
  }
  return info;
}

inline megatron_run megatron_run::build(const part_plan& plan, gpt_request request,
                                        const std::optional<std::string>& split, int threads,
                                        const std::optional<megatron_caches>& caches,
                                        blend_rounding rounding, std::size_t most_open) {
  if (plan.datasets.empty()) {
    throw config_error("the " + std::string(name(request.part)) +
                       " part has no data: give it a weight in --split, and samples");
  }
  if (!plan.blended && plan.datasets.size() != 1) {
    throw config_error("the " + std::string(name(request.part)) + " part has " +
                       std::to_string(plan.datasets.size()) +
                       " datasets, each for itself; expected one, or a blend");
  }
  std::vector<source_info> sources;
  std::vector<std::int64_t> lengths;
  for (const planned_dataset& each : plan.datasets) {
    sources.push_back(build_source(each, request, split, threads, caches));
    lengths.push_back(sources.back().plan.samples);
  }
  auto all = std::make_shared<contents>(std::move(sources), most_open);
  // A cache that cannot be used is no news for later.
  if (caches) {
    for (std::int64_t s = 0; s < all->pool.size(); ++s) (void)all->pool.get(s);
  }
  all->description = describe(all->sources, plan, request, split, rounding);
  if (!plan.blended) return megatron_run(std::move(all));
  const blend_recipe recipe(plan, lengths, request.part);
  const auto size = static_cast<std::size_t>(recipe.size());
  all->blend = {std::vector<std::int16_t>(size), std::vector<std::int64_t>(size)};
  recipe.fill({all->blend.dataset, all->blend.sample}, rounding);
  if (caches) {
    detail::require_kept_blend(*caches, recipe, plan, request, split, rounding, all->blend);
  }
  all->counts = counts_of(all->blend, all->sources.size());
  return megatron_run(std::move(all));
}

inline run_state megatron_run::describe(const std::vector<source_info>& sources,
                                        const part_plan& plan, const gpt_request& request,
                                        const std::optional<std::string>& split,
                                        blend_rounding rounding) {
  const gpt_plan& first = sources.front().plan;
  run_state state;
  state.order = "megatron";
  state.seed = first.random_seed;
  state.seq_len = first.sequence_length;
  state.extra_token = first.extra_token != 0;
  for (const source_info& each : sources) state.data.push_back({.prefix = each.prefix.string()});
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
  return state;
}

inline std::vector<std::int64_t> megatron_run::counts_of(const blend_columns& blend,
                                                         std::size_t sources) {
  std::vector<std::int64_t> counts;
  std::vector<std::int64_t> now(sources);
  for (std::size_t i = 0; i < blend.dataset.size(); ++i) {
    if (i % counted_positions == 0) counts.insert(counts.end(), now.begin(), now.end());
    ++now[static_cast<std::size_t>(blend.dataset[i])];
  }
  return counts;
}

inline std::int64_t megatron_run::taken(std::int64_t source,
                                        std::int64_t positions) const noexcept {
  const std::int64_t all = std::min(positions, end());
  if (!is_blend() || all == 0) return all;
  const std::int64_t block = (all - 1) / counted_positions;
  const auto begin = blend().dataset.begin();
  return shared_->counts[static_cast<std::size_t>(block * source_count() + source)] +
         std::count(begin + block * counted_positions, begin + all, source);
}

inline std::vector<std::int64_t> megatron_run::positions_with(std::int64_t source,
                                                              sequence_range sequences,
                                                              std::int64_t before) const {
  const std::vector<std::int64_t> samples = open(source)->order.samples_with(sequences);
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
  const source_pointer opened = open(source);
  const auto first_token = [&](std::int64_t sequence) {
    return sequence < info(source).sequences ? opened->search.first_token_of(sequence)
                                             : info(source).tokens;
  };
  const sequence_range part = plan(source).sequences;
  const std::string other = "of other parts of --split";
  std::vector<left_out> all = {{0, first_token(part.first), round.times, other},
                               {first_token(part.last), info(source).tokens, round.times, other}};
  for (const piece& p : opened->order.behind_last_sample()) {
    const std::int64_t first = first_token(p.sequence) + p.first;
    all.push_back({first, first + p.tokens, 1, "behind the last sample"});
  }
  return all;
}

}  // namespace millrace::dataset
