// SPDX-License-Identifier: Apache-2.0
//
// Compares blends with the results of megatron-core's helpers. The entry `blend` of
// megatron_golden.json holds these results.
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>
#include <simdjson.h>

#include <millrace/dataset/detail/megatron/greedy_blend.hpp>
#include <millrace/dataset/detail/megatron/normalize.hpp>
#include <millrace/dataset/megatron_run.hpp>

#include "support/paths.hpp"
#include "support/plain_blend.hpp"

namespace millrace::dataset {
namespace {

template <class T>
std::vector<T> numbers(simdjson::dom::element list) {
  std::vector<T> all;
  for (const simdjson::dom::element number : list) {
    if constexpr (std::is_floating_point_v<T>) {
      all.push_back(double{number});
    } else {
      all.push_back(static_cast<T>(std::int64_t{number}));
    }
  }
  return all;
}

TEST(BlendGolden, IsMegatrons) {
  const auto shared = test::shared_folder();
  if (shared.empty()) GTEST_SKIP() << test::no_shared_folder;
  simdjson::dom::parser parser;
  const simdjson::dom::element golden =
      parser.load((shared / "golden/megatron_golden.json").string());
  int greedy = 0;
  int exhaustive = 0;
  for (const simdjson::dom::element each : golden["blend"]) {
    SCOPED_TRACE(simdjson::to_string(each));
    const auto dataset_index = numbers<std::int16_t>(each["dataset_index"]);
    test::blend_columns columns(static_cast<std::int64_t>(dataset_index.size()));
    simdjson::dom::element sizes;
    if (each["exhaustive"].get(sizes) == simdjson::SUCCESS) {
      fill_exhaustive_blend(numbers<std::int64_t>(sizes), columns.span());
      ++exhaustive;
    } else {
      EXPECT_EQ(static_cast<std::int64_t>(dataset_index.size()), std::int64_t{each["size"]});
      const auto once = normalize(numbers<double>(each["weights"]));
      const auto twice = normalize(once);
      EXPECT_EQ(once, numbers<double>(each["normalized_once"]));
      EXPECT_EQ(twice, numbers<double>(each["normalized_twice"]));
      fill_greedy_blend(twice, columns.span());
      ++greedy;
    }
    EXPECT_EQ(columns.dataset_index, dataset_index);
    EXPECT_EQ(columns.dataset_sample_index, numbers<std::int64_t>(each["dataset_sample_index"]));
  }
  EXPECT_EQ(greedy, 4);
  EXPECT_EQ(exhaustive, 3);
}

}  // namespace
}  // namespace millrace::dataset
