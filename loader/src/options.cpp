// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/options.hpp>

#include <cstdint>
#include <limits>
#include <string>

#include <millrace/dataset/detail/run/batch_steps.hpp>
#include <millrace/dataset/state.hpp>
#include <millrace/error.hpp>
#include <millrace/loader/detail/verify/verify_options.hpp>

namespace millrace::loader {

MILLRACE_INLINE const loader_options& check(const loader_options& options) {
  const auto expect = [](bool good, const char* name, std::int64_t value,
                         const std::string& range) {
    if (!good) {
      throw config_error(std::string(name) + " is " + std::to_string(value) + ", expected " +
                         range);
    }
  };
  // With values below 2^31, the product of any two values fits in 63 bits.
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  expect(options.batch_size >= 1 && options.batch_size <= most, "batch_size", options.batch_size,
         "1 to 2147483647");
  expect(options.seq_len >= 0 && options.seq_len < most, "seq_len", options.seq_len,
         "1 to 2147483646, or 0 for the run's");
  expect(options.world_size >= 1 && options.world_size <= most, "world_size", options.world_size,
         "1 to 2147483647");
  expect(options.rank >= 0 && options.rank < options.world_size, "rank", options.rank,
         "0 to world_size - 1, which is " + std::to_string(options.world_size - 1));
  expect(options.context_parallel >= 1 && options.context_parallel <= 1 << 20, "context_parallel",
         options.context_parallel, "1 to 1048576");
  expect(options.cp_rank >= 0 && options.cp_rank < options.context_parallel, "cp_rank",
         options.cp_rank,
         "0 to context_parallel - 1, which is " + std::to_string(options.context_parallel - 1));
  expect(options.consumed_samples >= 0, "consumed_samples", options.consumed_samples, "0 or more");
  expect(options.look_ahead >= 1 && options.look_ahead <= 1024, "look_ahead", options.look_ahead,
         "1 to 1024");
  expect(options.held >= 1 && options.held <= most_held, "held", options.held,
         "1 to " + std::to_string(most_held));
  expect(options.prefetch_samples >= 0 && options.prefetch_samples <= 65536, "prefetch_samples",
         options.prefetch_samples, "0 to 65536");
  expect(options.end_within.count() >= 0 && options.end_within.count() <= most, "end_within",
         options.end_within.count(), "0 to 2147483647 ms");
  expect(options.threads >= 1 && options.threads <= 255, "threads", options.threads, "1 to 255");
  const std::int64_t width = options.samples_of_micro_batch();
  const auto whole = [&](std::int64_t samples, const char* name) {
    expect(samples >= 1 && samples % width == 0, name, samples,
           "a multiple of " + std::to_string(width) + ", the micro-batch size " +
               std::to_string(options.batch_size) + " times the " +
               std::to_string(options.world_size) + " data-parallel ranks");
  };
  whole(options.samples_of_step(), "global_batch_size");
  if (options.rampup) {
    check(*options.rampup, options.samples_of_step());
    whole(options.rampup->start, "the first batch of the ramp-up");
    whole(options.rampup->increment, "the increment of the ramp-up");
  }
  if (options.sampler != sampler_type::single && !options.edits.empty()) {
    throw config_error("there are " + std::to_string(options.edits.size()) +
                       " edits, expected none: only the single sampler can skip or replay samples");
  }
  if (options.sampler != sampler_type::single && options.rampup) {
    throw config_error("a batch-size ramp-up requires the single sampler");
  }
  if (options.sampler != sampler_type::single && !options.drop_last) {
    throw config_error(
        "drop_last is false, expected true: only the single sampler can serve a short last "
        "micro-batch");
  }
  if (options.sampler == sampler_type::full_validation) {
    expect(options.batch_size == 1, "batch_size", options.batch_size,
           "1: full validation takes one sample at a time");
  }
  return options;
}

}  // namespace millrace::loader
