// SPDX-License-Identifier: Apache-2.0
//
// Compares the batches of the sampler with those of Megatron-LM's data_samplers.py. The entry
// `samplers` of megatron_golden.json lists Megatron's batches.
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <simdjson.h>

#include <millrace/dataset/sampler.hpp>
#include <millrace/error.hpp>

#include "support/paths.hpp"

namespace millrace::dataset {
namespace {

using batches = std::vector<std::vector<std::int64_t>>;

batches lists_of(simdjson::dom::element rank) {
  batches all;
  for (const simdjson::dom::element list : rank) {
    all.emplace_back();
    for (const simdjson::dom::element sample : list) all.back().push_back(std::int64_t{sample});
  }
  return all;
}

sampler_options options_of(std::string_view kind, simdjson::dom::element each) {
  sampler_options options;
  options.world_size = each["dp"];
  if (kind == "full_validation") {
    options.type = sampler_type::full_validation;
    return options;
  }
  options.batch_size = each["mbs"];
  options.consumed_samples = each["consumed"];
  if (kind == "single") {
    options.drop_last = bool{each["drop_last"]};
  } else if (kind == "cyclic") {
    options.type = sampler_type::cyclic;
    options.data_sharding = bool{each["data_sharding"]};
  } else {
    EXPECT_EQ(kind, "hybrid");
    options.global_batch_size = each["gbs"];
  }
  return options;
}

/// Returns the batches of a rank, in the form of Megatron's lists. A batch is a list of positions.
/// For hybrid context parallelism, all micro-batches of a step form one batch. The cyclic sampler
/// would continue with the next pass, so at most `size` of its batches are returned.
batches ours(std::string_view kind, const sampler& of, std::int64_t rank, std::size_t size) {
  batches all;
  std::vector<std::int64_t> positions;
  for (std::int64_t t = 0; t < of.count() && (kind != "cyclic" || all.size() < size); ++t) {
    const batch_number number = of.batch(t, rank, positions);
    if (kind != "hybrid" || number.micro_batch == 0) all.emplace_back();
    all.back().insert(all.back().end(), positions.begin(), positions.end());
  }
  return all;
}

// Removes the last batch of a full validation if Megatron does not list it. Our sampler repeats the
// first batch on a rank with fewer samples, so that all ranks have equally many batches. Megatron
// lists only one pass over the samples of the rank.
batches once(std::string_view kind, batches all, std::size_t size) {
  if (kind == "full_validation" && size < all.size()) {
    EXPECT_EQ(all.size(), size + 1);
    EXPECT_EQ(all.back(), all.front());
    all.pop_back();
  }
  return all;
}

TEST(SamplerGolden, ListsWhatMegatronLists) {
  const auto shared = test::shared_folder();
  if (shared.empty()) GTEST_SKIP() << test::no_shared_folder;
  simdjson::dom::parser parser;
  const simdjson::dom::element golden =
      parser.load((shared / "golden/megatron_golden.json").string());
  std::map<std::string, int> seen;
  for (const simdjson::dom::element each : golden["samplers"]) {
    const auto kind = std::string(std::string_view(each["kind"]));
    SCOPED_TRACE(simdjson::to_string(each));
    ++seen[kind];
    const std::int64_t total = each["total"];
    const sampler_options options = options_of(kind, each);
    if (total < options.world_size) {  // Megatron leaves some ranks without a sample
      EXPECT_EQ(kind, "full_validation");
      EXPECT_THROW(sampler(total, options), config_error);
      continue;
    }
    const sampler of(total, options);
    std::int64_t rank = 0;
    for (const simdjson::dom::element list : each["ranks"]) {
      const batches expected = lists_of(list);
      EXPECT_EQ(once(kind, ours(kind, of, rank, expected.size()), expected.size()), expected)
          << "rank " << rank;
      ++rank;
    }
    EXPECT_EQ(rank, options.world_size);
  }
  EXPECT_EQ(seen, (std::map<std::string, int>{
                      {"single", 4}, {"cyclic", 10}, {"full_validation", 2}, {"hybrid", 1}}));
}

}  // namespace
}  // namespace millrace::dataset
