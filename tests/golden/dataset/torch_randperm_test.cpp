// SPDX-License-Identifier: Apache-2.0
//
// Compares permutations with those of torch.randperm. The folder tests/golden/dataset/torch holds
// torch's permutations.
#include <millrace/dataset/detail/megatron/torch_random.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <simdjson.h>

#include <millrace/formats/detail/md5.hpp>

#include "support/paths.hpp"

namespace millrace::dataset {
namespace {

template <class T>
std::vector<std::int64_t> permutation(std::uint64_t seed, std::size_t size) {
  std::vector<T> order(size);
  torch_randperm(seed, std::span(order));
  return {order.begin(), order.end()};
}

TEST(TorchRandpermGolden, IsTorchs) {
  simdjson::dom::parser parser;
  const simdjson::dom::element golden =
      parser.load(test::golden("dataset/torch/randperm.json").string());
  int cases = 0;
  for (const simdjson::dom::element each : golden["cases"]) {
    const std::uint64_t seed = each["seed"];
    const auto size = static_cast<std::size_t>(std::uint64_t{each["size"]});
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", size " << size);
    const std::vector<std::int64_t> order = permutation<std::int64_t>(seed, size);
    std::size_t i = 0;
    for (const simdjson::dom::element number : each["first"]) {
      EXPECT_EQ(order[i++], std::int64_t{number});
    }
    const std::string md5 = formats::md5().update(std::as_bytes(std::span(order))).hex();
    EXPECT_EQ(md5, std::string(std::string_view(each["md5_le_int64"])));
    EXPECT_EQ(permutation<std::uint32_t>(seed, size), order);
    ++cases;
  }
  EXPECT_EQ(cases, 66);
}

}  // namespace
}  // namespace millrace::dataset
