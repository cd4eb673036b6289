// SPDX-License-Identifier: Apache-2.0
//
// Compares random numbers and shuffles with those of numpy's RandomState. The entry `randomstate`
// of megatron_golden.json holds numpy's results.
#include <millrace/dataset/detail/megatron/numpy_random.hpp>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/dataset/detail/megatron/mersenne_twister.hpp>
#include <millrace/formats/detail/md5.hpp>

#include "golden/dataset/megatron_golden.hpp"

namespace millrace::dataset {
namespace {

namespace dom = simdjson::dom;

std::vector<std::int64_t> shuffled(numpy_random& random, std::size_t size) {
  std::vector<std::int64_t> values(size);
  std::iota(values.begin(), values.end(), std::int64_t{0});
  random.shuffle(std::span(values));
  return values;
}

TEST(RandomStateGolden, ShufflesAsNumpyDoes) {
  if (test::shared_folder().empty()) GTEST_SKIP() << test::no_shared_folder;
  const test::megatron_golden golden;
  int seeds = 0;
  for (const auto [text, expected] : dom::object(golden["randomstate"])) {
    SCOPED_TRACE(std::string(text));
    const auto seed = static_cast<std::uint32_t>(std::stoul(std::string(text)));

    numpy_random random(seed);  // both shuffles use this generator, in order
    std::size_t size = 10;
    for (const dom::element shuffle : dom::array(expected["first_two_shuffles"])) {
      EXPECT_EQ(shuffled(random, size), test::numbers(shuffle));
      size = 7;
    }

    numpy_random fresh(seed);
    const std::vector<std::int64_t> large = shuffled(fresh, 100000);
    EXPECT_EQ(std::vector(large.begin(), large.begin() + 5),
              test::numbers(expected["arange100000_int64_first5"]));
    EXPECT_EQ(formats::md5().update(std::as_bytes(std::span(large))).hex(),
              std::string_view(expected["md5_le_int64"]));

    mersenne_twister twister(seed);
    for (const std::int64_t draw : test::numbers(expected["first4_uint32"])) {
      EXPECT_EQ(twister(), draw);
    }
    ++seeds;
  }
  EXPECT_EQ(seeds, 4);
}

}  // namespace
}  // namespace millrace::dataset
