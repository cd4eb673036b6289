// SPDX-License-Identifier: Apache-2.0
//
// Compares samplers with the lists of Megatron-LM's data_samplers.py: `samplers` of
// megatron_golden.json.
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <simdjson.h>

#include <millrace/dataset/detail/megatron/cyclic_sampler.hpp>
#include <millrace/dataset/detail/megatron/range_samplers.hpp>

#include "support/paths.hpp"

namespace millrace::dataset {
namespace {

using batches = std::vector<std::vector<std::int64_t>>;

std::vector<std::int64_t> listed(sample_run run) {
  std::vector<std::int64_t> samples(static_cast<std::size_t>(run.count));
  std::iota(samples.begin(), samples.end(), run.first);
  return samples;
}
std::vector<std::int64_t> listed(std::vector<std::int64_t> samples) {
  return samples;
}

template <class Sampler>
batches all_of(const Sampler& sampler) {
  batches all;
  for (std::int64_t t = 0; t < sampler.batches(); ++t) all.push_back(listed(sampler.batch(t)));
  return all;
}

batches lists_of(simdjson::dom::element rank) {
  batches all;
  for (const simdjson::dom::element list : rank) {
    all.emplace_back();
    for (const simdjson::dom::element sample : list) all.back().push_back(std::int64_t{sample});
  }
  return all;
}

batches ours(std::string_view kind, simdjson::dom::element each, data_share share) {
  const std::int64_t total = each["total"];
  if (kind == "full_validation") {
    const full_validation_sampler sampler(total, share);
    const std::int64_t expected = each["lens"].at(static_cast<std::size_t>(share.rank));
    EXPECT_EQ(sampler.batches(), expected);
    return all_of(sampler);
  }
  const std::int64_t consumed = each["consumed"];
  share.micro_batch_size = each["mbs"];
  if (kind == "single") {
    return all_of(single_sampler(total, consumed, share, bool{each["drop_last"]}));
  }
  if (kind == "cyclic") {
    return all_of(cyclic_sampler(total, consumed, share, bool{each["data_sharding"]}));
  }
  EXPECT_EQ(kind, "hybrid");
  return all_of(hybrid_sampler(total, consumed, std::int64_t{each["gbs"]}, share));
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
    data_share share = {1, each["dp"], 0};
    SCOPED_TRACE(simdjson::to_string(each));
    for (const simdjson::dom::element rank : each["ranks"]) {
      EXPECT_EQ(ours(kind, each, share), lists_of(rank)) << "rank " << share.rank;
      ++share.rank;
    }
    EXPECT_EQ(share.rank, share.ranks);
    ++seen[kind];
  }
  EXPECT_EQ(seen, (std::map<std::string, int>{
                      {"single", 4}, {"cyclic", 10}, {"full_validation", 2}, {"hybrid", 1}}));
}

}  // namespace
}  // namespace millrace::dataset
