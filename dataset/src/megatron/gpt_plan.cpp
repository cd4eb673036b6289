// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/megatron/gpt_plan.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <millrace/dataset/detail/megatron/split.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/dtype.hpp>

namespace millrace::dataset {

namespace detail {

constexpr std::int64_t int32_max = std::numeric_limits<std::int32_t>::max();

/// Returns a * b + c for nonnegative numbers. Throws if the result overflows.
MILLRACE_INLINE std::int64_t checked_product(std::int64_t a, std::int64_t b, std::int64_t c,
                                             const std::string& message) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result) || __builtin_add_overflow(result, c, &result)) {
    throw config_error(message);
  }
  return result;
}

MILLRACE_INLINE void check_gpt_request(const gpt_request& request, sequence_range sequences,
                                       const std::string& whose) {
  if (request.sequence_length < 2 || request.sequence_length > int32_max - 1) {
    throw config_error("the sequence length is " + std::to_string(request.sequence_length) +
                       ", expected 2 to 2147483646");
  }
  if (request.num_samples.value_or(0) < 0) {
    throw config_error(whose + " requests " + std::to_string(*request.num_samples) +
                       " samples, expected 0 or more");
  }
  if (sequences.last > int32_max) {
    throw config_error(whose + " has sequences up to number " + std::to_string(sequences.last - 1) +
                       ", but Megatron stores their numbers in 32 bits: split the data into "
                       "datasets of at most 2147483647 sequences and blend them");
  }
}

/// Returns the smallest number of epochs that have enough tokens for the samples.
MILLRACE_INLINE std::int64_t gpt_epochs(const gpt_request& request, const gpt_plan& plan,
                                        const std::string& whose) {
  if (request.num_samples.value_or(0) == 0) return 1;
  const std::string wanted = whose + " requests " + std::to_string(*request.num_samples) +
                             " samples of " + std::to_string(plan.sequence_length) + " tokens, ";
  if (plan.tokens_per_epoch <= 1) {
    throw config_error(
        wanted + "but has " + std::to_string(plan.tokens_per_epoch) +
        " tokens: give the part a larger weight in --split or more data, or request no samples");
  }
  const std::int64_t tokens = checked_product(*request.num_samples, plan.sequence_length,
                                              plan.extra_token + plan.tokens_per_epoch,
                                              wanted + "more than 2^63 tokens: request fewer");
  return (tokens - 1) / plan.tokens_per_epoch;
}

/// ceil(tokens / sequence_length), computed in float as Megatron does.
MILLRACE_INLINE std::int64_t samples_with_partial(std::int64_t tokens,
                                                  std::int64_t sequence_length) {
  const volatile float quotient = static_cast<float>(tokens) / static_cast<float>(sequence_length);
  return static_cast<std::int64_t>(std::ceil(quotient));
}

}  // namespace detail

MILLRACE_INLINE gpt_plan plan_gpt_index(const gpt_request& request, sequence_range sequences,
                                        std::int64_t tokens_per_epoch, const std::string& whose) {
  detail::check_gpt_request(request, sequences, whose);
  gpt_plan plan;
  plan.sequences = sequences;
  plan.sequence_length = request.sequence_length;
  plan.extra_token = request.add_extra_token ? 1 : 0;
  plan.random_seed = request.random_seed;
  plan.tokens_per_epoch = tokens_per_epoch;
  plan.epochs = detail::gpt_epochs(request, plan, whose);
  const std::string epochs = whose + " needs " + std::to_string(plan.epochs) + " epochs, ";
  if (plan.epochs > detail::int32_max) {
    throw config_error(epochs + "expected at most 2147483647: request fewer samples");
  }
  (void)detail::checked_product(plan.epochs, tokens_per_epoch, 0,
                                epochs + "more than 2^63 tokens: request fewer samples");

  const std::int64_t length = plan.sequence_length;
  const std::int64_t usable = plan.tokens() - plan.extra_token;  // -1 if there are no tokens
  plan.samples = usable / length;
  if (request.part == split_part::valid && !request.drop_last_partial_validation_sequence) {
    const std::int64_t whole = plan.samples;
    plan.samples = detail::samples_with_partial(usable, length);
    plan.last_sample_is_partial = plan.samples > 0 && plan.samples * length > usable;
    // As in Megatron, the last sample must not be empty, but it may consist of only the token that
    // it shares with the preceding sample.
    const bool too_many = plan.samples > 0 && (plan.samples - 1) * length > usable;
    if (too_many || plan.samples < request.num_samples.value_or(0)) {
      throw config_error(whose + " has " + std::to_string(whole) + " whole samples of " +
                         std::to_string(length) + " tokens, but Megatron counts " +
                         std::to_string(plan.samples) +
                         " in single precision: drop the last partial sample, or change the "
                         "sequence length or the number of samples");
    }
  }
  if (plan.epochs > 1) {
    plan.samples_before_last_epoch =
        ((plan.epochs - 1) * tokens_per_epoch - plan.extra_token) / length;
    const std::int64_t of_last = *request.num_samples - plan.samples_before_last_epoch;
    const std::int64_t per_epoch = (tokens_per_epoch - plan.extra_token) / length;
    plan.separate_last_epoch =
        of_last < static_cast<std::int64_t>(0.80 * static_cast<double>(per_epoch));
  }
  if (!plan.separate_last_epoch) plan.samples_before_last_epoch = 0;
  plan.wide_sample_index = plan.document_entries() > detail::int32_max;
  plan.wide_shuffle_index = plan.samples >= std::int64_t{0xFFFFFFFE};
  return plan;
}

MILLRACE_INLINE std::vector<gpt_part> plan_gpt_parts(
    const indexed_dataset& data, const split_matrix& split, gpt_request request,
    const std::array<std::optional<std::int64_t>, 3>& samples) {
  const std::int64_t count = data.sequence_count();
  const auto tokens_before = [&](std::int64_t sequence) {
    if (sequence == count) return data.token_count();
    const std::byte* const begin = data.sequence(sequence).bytes().data();
    const auto bytes = begin - data.stream().bytes().data();
    return static_cast<std::int64_t>(bytes) /
           static_cast<std::int64_t>(formats::size_bytes(data.type()));
  };
  std::vector<gpt_part> parts;
  for (const split_part part : split_parts) {
    if (!split.has(part)) continue;
    const sequence_range range = split.of(part, count);
    request.part = part;
    request.num_samples = samples[static_cast<std::size_t>(part)];
    const std::int64_t tokens =
        range.size() == 0 ? 0 : tokens_before(range.last) - tokens_before(range.first);
    if (tokens < 0) {
      throw format_error(
          data.idx_path(),
          data.index().pointers_offset() + 8 * static_cast<std::uint64_t>(range.first),
          "the pointers of sequences " + std::to_string(range.first) + " and " +
              std::to_string(range.last) + " descend, expected ascending pointers");
    }
    parts.push_back({part, plan_gpt_index(request, range, tokens,
                                          "the " + std::string(name(part)) + " part of " +
                                              data.prefix().string())});
  }
  return parts;
}

}  // namespace millrace::dataset
