// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/options.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::loader {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

TEST(Options, AreGoodAsTheyStand) {
  EXPECT_NO_THROW(check(loader_options{}));
}

TEST(Options, AreGoodAtTheEndsOfTheirRanges) {
  EXPECT_NO_THROW(check({.batch_size = 2147483647,
                         .seq_len = 2147483646,
                         .rank = 2147483646,
                         .world_size = 2147483647,
                         .consumed_samples = most,
                         .look_ahead = 1024}));
  EXPECT_NO_THROW(check({.batch_size = 1, .seq_len = 1, .look_ahead = 1}));
}

TEST(Options, OutOfRangeAreNamedWithValueAndRange) {
  struct wrong {
    loader_options options;
    std::string name_and_value;
    std::string range;
  };
  const std::string int32 = "expected 1 to 2147483647";
  const std::vector<wrong> cases = {
      {{.batch_size = 0}, "batch_size is 0,", int32},
      {{.batch_size = least}, "batch_size is -9223372036854775808,", int32},
      {{.batch_size = 2147483648}, "batch_size is 2147483648,", int32},
      {{.seq_len = -1}, "seq_len is -1,", "expected 1 to 2147483646"},
      {{.seq_len = most}, "seq_len is 9223372036854775807,", "expected 1 to 2147483646"},
      {{.world_size = 0}, "world_size is 0,", int32},
      {{.world_size = 2147483648}, "world_size is 2147483648,", int32},
      {{.rank = -1}, "rank is -1,", "expected 0 to world_size - 1, which is 0"},
      {{.rank = 4, .world_size = 4}, "rank is 4,", "expected 0 to world_size - 1, which is 3"},
      {{.consumed_samples = -1}, "consumed_samples is -1,", "expected 0 or more"},
      {{.look_ahead = 0}, "look_ahead is 0,", "expected 1 to 1024"},
      {{.look_ahead = 1025}, "look_ahead is 1025,", "expected 1 to 1024"},
      {{.held = 0}, "held is 0,", "expected 1 to 131072"},
      {{.held = 131073}, "held is 131073,", "expected 1 to 131072"},
      {{.batch_size = 2, .world_size = 3, .global_batch_size = 16},
       "global_batch_size is 16,",
       "a multiple of 6, the micro-batch size 2 times the 3 data-parallel ranks"},
      {{.global_batch_size = -1}, "global_batch_size is -1,", "a multiple of 1"},
      {{.batch_size = 4, .global_batch_size = 16, .rampup = dataset::rampup_batch{2, 2, 100}},
       "the first batch of the ramp-up is 2,",
       "a multiple of 4"},
      {{.batch_size = 2, .global_batch_size = 8, .rampup = dataset::rampup_batch{2, 3, 100}},
       "the increment of the ramp-up is 3,",
       "a multiple of 2"},
      {{.global_batch_size = 8, .rampup = dataset::rampup_batch{2, 4, 100}},
       "rampup_batch 2 4 100: the increment is 4,",
       "a divisor of 6"},
      {{.global_batch_size = 8, .rampup = dataset::rampup_batch{8, 1, 100}},
       "rampup_batch 8 1 100: it starts with 8",
       "less than the global batch of 8"},
      {{.global_batch_size = 8, .rampup = dataset::rampup_batch{2, 2, 0}},
       "rampup_batch 2 2 0: it takes 0 samples",
       "1 to 2^53"},
      {{.global_batch_size = 8,
        .rampup = dataset::rampup_batch{2, 2, 10},
        .sampler = sampler_type::cyclic},
       "a batch-size ramp-up",
       "requires the single sampler"},
      {{.batch_size = 2, .sampler = sampler_type::full_validation}, "batch_size is 2,", "1: full"},
      {{.sampler = sampler_type::cyclic, .edits = {{.first = 1, .last = 2, .why = "it"}}},
       "there are 1 edits,",
       "single"},
      {{.prefetch_samples = -1}, "prefetch_samples is -1,", "0 to 65536"},
      {{.prefetch_samples = 65537}, "prefetch_samples is 65537,", "0 to 65536"},
      {{.threads = 0}, "threads is 0,", "1 to 255"},
      {{.threads = 256}, "threads is 256,", "1 to 255"},
  };
  for (const wrong& c : cases) {
    try {
      check(c.options);
      ADD_FAILURE() << "accepted: " << c.name_and_value;
    } catch (const config_error& e) {
      EXPECT_THAT(e.what(), AllOf(StartsWith(c.name_and_value), HasSubstr(c.range)));
    }
  }
}

}  // namespace
}  // namespace millrace::loader
