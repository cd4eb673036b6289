// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/megatron_run.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <millrace/dataset/detail/instant/index_columns.hpp>
#include <millrace/dataset/detail/megatron/blend_cache.hpp>
#include <millrace/dataset/detail/megatron/blend_plan.hpp>
#include <millrace/dataset/detail/megatron/blend_recipe.hpp>
#include <millrace/dataset/detail/megatron/blend_rounding.hpp>
#include <millrace/dataset/detail/megatron/gpt_cache.hpp>
#include <millrace/dataset/detail/megatron/gpt_index.hpp>
#include <millrace/dataset/detail/megatron/gpt_order.hpp>
#include <millrace/dataset/detail/megatron/large_array.hpp>
#include <millrace/dataset/detail/megatron/python_json.hpp>
#include <millrace/dataset/detail/open_pool.hpp>
#include <millrace/dataset/detail/run/megatron_sources.hpp>
#include <millrace/dataset/run.hpp>
#include <millrace/dataset/state.hpp>
#include <millrace/error.hpp>
#include <millrace/io/file_ops.hpp>

#include "text_of_pieces.hpp"

namespace millrace::dataset {

struct megatron_run::contents {
  static constexpr std::int64_t counted_positions = std::int64_t{1} << 16;

  contents(std::vector<source_info> all, std::size_t most_open)
      : sources(std::move(all)),
        pool(
            std::ssize(sources),
            [this](std::int64_t source) {
              return std::make_shared<const open_source>(sources[static_cast<std::size_t>(source)]);
            },
            most_open) {}
  contents(const contents&) = delete;
  contents& operator=(const contents&) = delete;

  std::vector<source_info> sources;
  blend_columns blend;  // empty for a single source
  std::vector<std::int64_t>
      counts;  // [block of `counted_positions`][source], samples of the source before the block
  run_state description;
  open_pool<open_source> pool;
};

namespace detail {

MILLRACE_INLINE gpt_description description_of(const planned_dataset& planned,
                                               const gpt_request& request,
                                               const std::optional<std::string>& split,
                                               const megatron_caches& caches) {
  return {planned.prefix,      planned.num_samples,     request.part,
          request.random_seed, request.sequence_length, split,
          caches.tokenizer};
}

/// Opens the index of a source, and checks that the source is the one that the run was built with.
MILLRACE_INLINE index_columns open_columns(const megatron_run::source_info& of) {
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
                         " when the run was created: it is another dataset, or was replaced");
}

MILLRACE_INLINE gpt_order order_of(const megatron_run::source_info& of, length_column lengths) {
  if (!of.cache) return {of.plan, lengths, of.index};
  std::string why;
  if (auto order = of.cache->load(of.plan, lengths, &why)) return *std::move(order);
  throw config_error("the cache of " + of.whose + " cannot be used: " + why +
                     "; build it with inspect_dataset prepare-cache");
}

/// Checks that the cached blend, if there is one, equals the blend that was built. A cache does not
/// record how its blend was rounded, and a different rounding gives a different order.
MILLRACE_INLINE void require_kept_blend(const megatron_caches& caches, const blend_recipe& recipe,
                                        const part_plan& plan, const gpt_request& request,
                                        const std::optional<std::string>& split,
                                        blend_rounding rounding, const blend_columns& built) {
  std::vector<python_json> datasets;
  for (const planned_dataset& each : plan.datasets) {
    datasets.push_back(description_of(each, request, split, caches).identifiers());
  }
  const blend_cache cache(caches.folder, recipe, std::move(datasets), request.part);
  if (!io::is_there(cache.dataset_path())) return;
  std::string why;
  const auto kept = cache.load(&why);
  const std::string what = "the blend cache " + cache.dataset_path().string() + " cannot be used: ";
  if (!kept) {
    throw config_error(what + why + "; build it with inspect_dataset prepare-cache");
  }
  for (std::int64_t i = 0; i < kept->size(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    const blended_sample sample = (*kept)[i];
    if (sample == blended_sample{static_cast<std::size_t>(built.dataset[at]), built.sample[at]})
      continue;
    throw config_error(what + "sample " + std::to_string(i) + " differs if blends are " +
                       "rounded " + name(rounding) + "; the cache may come from a machine that " +
                       "rounds differently; pass its --blend-rounding");
  }
}

}  // namespace detail

MILLRACE_INLINE megatron_run::open_source::open_source(const source_info& of)
    : search(detail::open_columns(of)),
      order(detail::order_of(of, length_column(search.columns()))) {}

/// Reads all lengths of the `.idx` once, without mapping it.
MILLRACE_INLINE megatron_run::source_info megatron_run::build_source(
    const planned_dataset& planned, gpt_request request, const std::optional<std::string>& split,
    int threads, const std::optional<megatron_caches>& caches) {
  const index_columns columns(planned.prefix, index_access::pread);
  source_info info{.prefix = planned.prefix,
                   .whose = "the " + std::string(name(request.part)) + " part of " + planned.prefix,
                   .type = columns.type(),
                   .tokens = columns.token_count(),
                   .sequences = columns.sequence_count(),
                   .bin = io::identity_of(detail::bin_of(planned.prefix)),
                   .plan = {},
                   .index = {}};
  sequence_range range{0, columns.sequence_count()};
  if (split) {
    const split_matrix matrix(*split);
    if (!matrix.has(request.part)) {
      throw config_error(info.whose + " has no weight in --split '" + *split + "'; give it one");
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

MILLRACE_INLINE megatron_run megatron_run::build(const part_plan& plan, gpt_request request,
                                                 const std::optional<std::string>& split,
                                                 int threads,
                                                 const std::optional<megatron_caches>& caches,
                                                 blend_rounding rounding, std::size_t most_open) {
  if (plan.datasets.empty()) {
    throw config_error("the " + std::string(name(request.part)) +
                       " part has no data; give it a weight in --split, and request samples of it");
  }
  if (!plan.blended && plan.datasets.size() != 1) {
    throw config_error("the " + std::string(name(request.part)) + " part has " +
                       std::to_string(plan.datasets.size()) +
                       " separate datasets; expected one dataset, or a blend");
  }
  std::vector<source_info> sources;
  std::vector<std::int64_t> lengths;
  for (const planned_dataset& each : plan.datasets) {
    sources.push_back(build_source(each, request, split, threads, caches));
    lengths.push_back(sources.back().plan.samples);
  }
  auto all = std::make_shared<contents>(std::move(sources), most_open);
  // Open every cache now, so that an unusable cache is reported immediately.
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

MILLRACE_INLINE run_state megatron_run::describe(const std::vector<source_info>& sources,
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
  state.samples.assign(3, 0);  // samples of the other parts are unknown and not needed
  state.samples[static_cast<std::size_t>(request.part)] =
      (plan.blended ? plan.size : plan.datasets[0].num_samples).value_or(-1);
  state.surplus = plan.surplus;
  state.weighted = !plan.weights.empty();
  if (plan.blended) state.blend_rounding = name(rounding);
  state.drop_last_partial_sequence = request.drop_last_partial_validation_sequence;
  for (std::size_t s = 0; s < plan.weights.size(); ++s) state.data[s].weight = plan.weights[s];
  return state;
}

MILLRACE_INLINE const megatron_run::source_info& megatron_run::info(std::int64_t s) const noexcept {
  return shared_->sources[static_cast<std::size_t>(s)];
}

MILLRACE_INLINE const gpt_plan& megatron_run::plan(std::int64_t s) const noexcept {
  return info(s).plan;
}

MILLRACE_INLINE megatron_run::source_pointer megatron_run::open(std::int64_t s) const {
  return shared_->pool.get(s);
}

MILLRACE_INLINE std::size_t megatron_run::open_count() const {
  return shared_->pool.open_count();
}

MILLRACE_INLINE const blend_columns& megatron_run::blend() const noexcept {
  return shared_->blend;
}

MILLRACE_INLINE bool megatron_run::is_blend() const noexcept {
  return !blend().dataset.empty();
}

MILLRACE_INLINE std::int64_t megatron_run::end() const {
  return is_blend() ? static_cast<std::int64_t>(blend().dataset.size()) : plan(0).samples;
}

MILLRACE_INLINE std::int64_t megatron_run::seq_len() const {
  return plan(0).sequence_length;
}

MILLRACE_INLINE bool megatron_run::extra_token() const {
  return plan(0).extra_token != 0;
}

MILLRACE_INLINE std::int64_t megatron_run::source_count() const {
  return std::ssize(shared_->sources);
}

MILLRACE_INLINE const std::filesystem::path& megatron_run::prefix(std::int64_t source) const {
  return info(source).prefix;
}

MILLRACE_INLINE std::vector<run_source> megatron_run::sources() const {
  std::vector<run_source> all;
  for (const source_info& each : shared_->sources) {
    const auto tokens = static_cast<std::uint64_t>(each.tokens);
    all.push_back({detail::bin_of(each.prefix), each.type, tokens * formats::size_bytes(each.type),
                   each.bin});
  }
  return all;
}

MILLRACE_INLINE source_sample megatron_run::at(std::int64_t position) const {
  if (!is_blend()) return {0, position};
  const auto i = static_cast<std::size_t>(position);
  return {blend().dataset[i], blend().sample[i]};
}

MILLRACE_INLINE std::int64_t megatron_run::pieces(const source_sample& sample,
                                                  std::vector<piece>& out) const {
  return open(sample.source)->order.sample(sample.k, out);
}

MILLRACE_INLINE void megatron_run::text_of(std::int64_t position, bool boundaries,
                                           sample_text& out) const {
  const source_sample sample = megatron_run::at(position);
  const source_pointer opened = open(sample.source);
  std::vector<piece>& pieces = detail::scratch_pieces();
  (void)opened->order.sample(sample.k, pieces);
  detail::clear(out, position, sample.source);
  (void)detail::append_text(opened->search.columns(), pieces, sample.source, 0, out);
  if (!boundaries) return;
  detail::set_boundaries(pieces, seq_len(), extra_token(), pieces_apart{}, out);
}

MILLRACE_INLINE sample_round megatron_run::round_of(std::int64_t source, std::int64_t) const {
  const gpt_plan& of = plan(source);
  return {0, of.samples, of.epochs,
          of.epochs == 1 ? "one epoch" : "all " + std::to_string(of.epochs) + " epochs"};
}

MILLRACE_INLINE run_state megatron_run::description() const {
  return shared_->description;
}

MILLRACE_INLINE std::vector<std::int64_t> megatron_run::counts_of(const blend_columns& blend,
                                                                  std::size_t sources) {
  std::vector<std::int64_t> counts;
  std::vector<std::int64_t> now(sources);
  for (std::size_t i = 0; i < blend.dataset.size(); ++i) {
    if (i % contents::counted_positions == 0) counts.insert(counts.end(), now.begin(), now.end());
    ++now[static_cast<std::size_t>(blend.dataset[i])];
  }
  return counts;
}

MILLRACE_INLINE std::int64_t megatron_run::taken(std::int64_t source,
                                                 std::int64_t positions) const {
  const std::int64_t all = std::min(positions, end());
  if (!is_blend() || all == 0) return all;
  const std::int64_t block = (all - 1) / contents::counted_positions;
  const auto begin = blend().dataset.begin();
  return shared_->counts[static_cast<std::size_t>(block * source_count() + source)] +
         std::count(begin + block * contents::counted_positions, begin + all, source);
}

MILLRACE_INLINE std::vector<std::int64_t> megatron_run::positions_with(std::int64_t source,
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

MILLRACE_INLINE std::vector<left_out> megatron_run::left_out_of(std::int64_t source,
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
    all.push_back({first, first + p.tokens, 1, "after the last sample"});
  }
  return all;
}

}  // namespace millrace::dataset
