// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/megatron/prepare_gpt_cache.hpp>

#include <cstdint>
#include <optional>
#include <string>

#include <millrace/dataset/detail/megatron/gpt_cache.hpp>
#include <millrace/dataset/detail/megatron/gpt_plan.hpp>
#include <millrace/dataset/detail/megatron/large_array.hpp>
#include <millrace/dataset/detail/megatron/split.hpp>
#include <millrace/dataset/detail/megatron/verify_gpt_index.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/error.hpp>

namespace millrace::dataset {

MILLRACE_INLINE std::optional<prepared_gpt_cache> prepare_gpt_cache(
    const gpt_cache_options& options, const std::string& prefix, split_part part,
    std::optional<std::int64_t> num_samples) {
  const indexed_dataset data(prefix);
  sequence_range range{0, data.sequence_count()};
  if (options.split) {
    const split_matrix split(*options.split);
    if (!split.has(part)) return std::nullopt;
    range = split.of(part, data.sequence_count());
  }
  // Lengths are read in random order. So all pages of the mapped file would count as memory of this
  // process, in addition to the indices. To avoid this, copy the lengths and release the pages.
  const large_array<std::int32_t> copy = large_copy(data.index().lengths);
  data.let_go_of_index();
  const formats::unaligned_span<std::int32_t> lengths(copy.bytes());

  prepared_gpt_cache prepared;
  prepared.description = {
      prefix,        num_samples,      part, options.random_seed, options.sequence_length,
      options.split, options.tokenizer};
  const gpt_request request{options.sequence_length,
                            num_samples,
                            part,
                            options.random_seed,
                            options.add_extra_token,
                            options.drop_last_partial_validation_sequence};
  const std::string whose = "the " + std::string(name(part)) + " part of " + prefix;
  std::int64_t tokens = 0;
  try {
    tokens = count_tokens(lengths, range, data.index().lengths_offset());
  } catch (const format_error& e) {
    throw e.in(data.idx_path());
  }
  prepared.plan = plan_gpt_index(request, range, tokens, whose);
  const std::int64_t all = data.token_count();
  const bool too_short = all <= options.sequence_length;
  if (prepared.plan.samples == 0 && !num_samples && tokens > 0 &&
      (too_short || part == split_part::train)) {
    throw config_error(
        "the sequence length is " + std::to_string(options.sequence_length) +
        ", expected at most the " +
        (too_short ? std::to_string(all) + " tokens of " + prefix
                   : std::to_string(tokens) + " tokens of " + whose) +
        "; pass a shorter one, or a number of samples, so that several epochs are joined");
  }
  const gpt_cache cache(options.folder, prepared.description);
  const gpt_order order = cache.load_or_build(prepared.plan, lengths, whose, options.threads,
                                              &prepared.built, options.check);
  if (prepared.built) return prepared;
  const auto has = has_extra_token(prepared.plan, lengths, order.index());
  if (has.value_or(options.add_extra_token) != options.add_extra_token) {
    throw config_error(cache.sample_path().string() + ": its samples have " +
                       (*has ? "an extra token" : "no extra token") + ", expected " +
                       (*has ? "none" : "one") +
                       "; caches with and without it have the same name. Remove its files, or pass "
                       "another --data-cache-path");
  }
  return prepared;
}

}  // namespace millrace::dataset
