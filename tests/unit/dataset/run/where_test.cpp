// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/where.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/dataset/run/stored_run.hpp"

namespace millrace::dataset {
namespace {

using testing::HasSubstr;

/// Returns a sampler for two ranks with two rows each. A step has 8 samples.
sampler asked_ranks(const run& order, sampler_type type = sampler_type::single,
                    bool data_sharding = true) {
  return sampler(order.end(), {.type = type,
                               .batch_size = 2,
                               .world_size = 2,
                               .global_batch_size = 8,
                               .data_sharding = data_sharding});
}

using document_number = std::pair<std::int64_t, std::int64_t>;  // source, document

/// Finds the document of each token of the run directly in the dataset, one token at a time.
std::map<document_number, std::vector<appearance>> enumerate(const run& order, const sampler& ranks,
                                                             std::int64_t before,
                                                             std::int64_t pad_documents_to) {
  std::map<document_number, std::vector<appearance>> all;
  for (std::int64_t served = 0; served < before; ++served) {
    const std::int64_t position = ranks.position_of(served);
    const source_sample sample = order.at(position);
    std::int64_t k = sample.k;
    if (ranks.pass_of(served) > 0) {
      const std::int64_t samples = order.taken(sample.source, order.end());
      k += ranks.pass_of(served) * order.round_of(sample.source, samples - 1).last;
    }
    const indexed_dataset data(order.prefix(sample.source));
    std::vector<piece> pieces;
    (void)order.pieces(sample, pieces);
    std::map<std::int64_t, appearance> here;
    std::int64_t at = 0;
    std::int64_t before_it = -1;  // document of the preceding token
    for (const piece& p : pieces) {
      std::int64_t d = 0;
      while (!(data.document(d).first <= p.sequence && p.sequence < data.document(d).last)) ++d;
      if (std::exchange(before_it, d) != d)
        at += (-at % pad_documents_to + pad_documents_to) % pad_documents_to;
      for (std::int64_t t = 0; t < p.tokens; ++t, ++at) {
        const auto [found, is_new] = here.try_emplace(
            d, appearance{ranks.slot_of(served), served, position, sample.source, k, at});
        ++found->second.tokens;
        found->second.label_only = found->second.at == order.seq_len();
      }
    }
    for (const auto& [d, found] : here) all[{sample.source, d}].push_back(found);
  }
  return all;
}

void expect_both_ways(const run& order, const sampler& ranks, std::int64_t before,
                      std::int64_t pad_documents_to = 1) {
  const run_places where(order, ranks);
  before = std::min(before, ranks.end_sample());
  const auto expected = enumerate(order, ranks, before, pad_documents_to);
  std::size_t found = 0;
  for (std::int64_t source = 0; source < order.source_count(); ++source) {
    const std::int64_t documents = where.documents(source)->document_count();
    for (std::int64_t d = 0; d < documents; ++d) {
      const auto there = expected.find({source, d});
      const auto wanted = there == expected.end() ? std::vector<appearance>() : there->second;
      const auto appearances = where.of(source, d, before);
      ASSERT_EQ(appearances, wanted) << "document " << d << " of source " << source;
      if (!appearances.empty()) ++found;
      for (const appearance& each : appearances) {
        const served_sample served = where.at(each.slot);
        ASSERT_EQ(served.position, each.position);
        ASSERT_EQ(served.sample.source, source);
        ASSERT_EQ(served.served, each.served);
        ASSERT_EQ(served.k, each.k);
        std::int64_t tokens = 0;
        for (const document_piece& p : served.pieces) {
          if (p.document == d) tokens += p.tokens.tokens;
        }
        ASSERT_EQ(tokens, each.tokens);
      }
    }
  }
  EXPECT_EQ(found, expected.size());
  EXPECT_GT(found, 5U);
}
void expect_both_ways(const run& order, std::int64_t before, std::int64_t pad_documents_to = 1) {
  expect_both_ways(order, asked_ranks(order), before, pad_documents_to);
}

class Where : public testing::Test {
 protected:
  std::filesystem::path stored(const std::string& name, int documents) {
    return test::store_documents(folder_ / name, random_, documents);
  }
  test::temp_folder folder_;
  std::mt19937 random_{7};
};

TEST_F(Where, AgreesForwardAndBackInMegatronsOrder) {
  for (int round = 0; round < 6; ++round) {
    const auto web = stored("web" + std::to_string(round), 25);
    for (const std::optional<std::int64_t> samples : {std::optional<std::int64_t>(), {60}}) {
      const auto order = test::megatron_run_of({web}, 7 + round, "8,1,1", samples);
      expect_both_ways(order, order.end());
    }
  }
}

TEST_F(Where, AgreesForwardAndBackInTheOrderInstant) {
  for (int round = 0; round < 6; ++round) {
    const auto order =
        test::instant_run_of({stored("web" + std::to_string(round), 25)}, 7 + round, 8, {});
    expect_both_ways(order, 150);
  }
}

TEST_F(Where, AgreesForwardAndBackInBlends) {
  const auto web = stored("web", 25);
  const auto code = stored("code", 12);
  const auto megatron = test::megatron_run_of({web, code}, 9, "9,1,0", 70);
  expect_both_ways(megatron, megatron.end());
  const auto instant = test::instant_run_of({web, code}, 9, 8, 70);
  expect_both_ways(instant, instant.end());
}

TEST_F(Where, AgreesForwardAndBackInPackedRows) {
  const auto web = stored("web", 25);
  const auto code = stored("code", 12);
  for (const std::int64_t pad : {1, 4}) {
    const auto alone = test::packed_run_of({web}, 32, 8, {}, pad);
    expect_both_ways(alone, 3 * alone.round_of(0, 0).last, pad);
    const auto blend = test::packed_run_of({web, code}, 32, 8, 70, pad);
    expect_both_ways(blend, blend.end(), pad);
  }
}

TEST_F(Where, AgreesForwardAndBackInTheSamplerCyclic) {
  const auto web = stored("web", 25);
  const auto code = stored("code", 12);
  constexpr auto type = sampler_type::cyclic;
  for (const bool sharded : {true, false}) {
    const auto megatron = test::megatron_run_of({web}, 9, "8,1,1", 31);
    expect_both_ways(megatron, asked_ranks(megatron, type, sharded), 90);
    const auto blend = test::instant_run_of({web, code}, 9, 8, 37);
    expect_both_ways(blend, asked_ranks(blend, type, sharded), 90);
    const auto packed = test::packed_run_of({web, code}, 32, 8, 30, 4);
    expect_both_ways(packed, asked_ranks(packed, type, sharded), 90, 4);
  }
}

TEST_F(Where, FollowsStepsThatGrow) {
  const auto order = test::instant_run_of({stored("web", 25)}, 9, 8, {});
  const sampler ranks(order.end(), {.batch_size = 2,
                                    .world_size = 2,
                                    .global_batch_size = 12,
                                    .rampup = rampup_batch{4, 4, 24}});
  const run_places where(order, ranks);
  for (std::int64_t position = 0; position < 60; ++position) {
    const served_sample served = where.at(ranks.slot_of(position));
    ASSERT_EQ(served.position, position);
    for (const document_piece& each : served.pieces) {
      const auto found = where.of(0, each.document, 60);
      ASSERT_TRUE(std::ranges::any_of(found, [&](const appearance& there) {
        return there.slot == served.slot && there.position == position;
      }));
    }
  }
}

TEST_F(Where, SaysOnlyWhatIsBeforeAPosition) {
  const auto order = test::instant_run_of({stored("web", 25)}, 9, 8, {});
  expect_both_ways(order, 11);
  const auto megatron = test::megatron_run_of({stored("code", 25)}, 9, "1,0,0", 70);
  expect_both_ways(megatron, 11);
}

TEST_F(Where, RefusesWhatIsNotThere) {
  const auto order = test::megatron_run_of({stored("web", 5)}, 4, "1,0,0", 20);
  const run_places where(order, asked_ranks(order));
  const auto refusal = [](const auto& ask) -> std::string {
    try {
      ask();
    } catch (const config_error& e) {
      return e.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refusal([&] {
                (void)where.at({1000, 0, 1});
              }),
              HasSubstr("step 1000, rank 0, slot 1 is sample 8001, but the run has only "));
  EXPECT_THAT(refusal([&] { (void)where.at({0, 2, 0}); }), HasSubstr("rank is 2"));
  EXPECT_THAT(refusal([&] { (void)where.of(0, 6, 10); }),
              HasSubstr("document 6: " + (folder_ / "web").string() + " has documents 0 to 5"));
  EXPECT_THAT(refusal([&] { (void)where.of(0, -1, 10); }), HasSubstr("document -1"));
}

// Each document has the line and the bytes that the golden file lists for it.
TEST(WhereInTheCorpus, NamesTheRecord) {
  test::temp_folder folder;
  const auto prefix = folder / "preprocess_lines";
  for (const char* extension : {".bin", ".idx"}) {
    std::filesystem::copy_file(test::golden("megatron/preprocess_lines" + std::string(extension)),
                               test::suffixed(prefix, extension));
  }
  {
    const auto order = test::instant_run_of({prefix}, 10, 8, {});
    EXPECT_EQ(run_places(order, asked_ranks(order)).documents(0)->read_from(0), std::nullopt);
  }
  std::filesystem::copy_file(test::golden("sidecars/preprocess_lines.src"),
                             test::suffixed(prefix, ".src"));
  const auto order = test::instant_run_of({prefix}, 10, 8, {});
  const run_places where(order, asked_ranks(order));
  const served_sample served = where.at({0, 0, 0});
  ASSERT_FALSE(served.pieces.empty());
  const document_piece first = served.pieces.front();
  const auto from = where.documents(0)->read_from(first.document);
  ASSERT_TRUE(from);
  EXPECT_EQ(from->input, "preprocess_lines.jsonl");
  EXPECT_EQ(where.documents(0)->read_from(0)->line, 1);
  EXPECT_LT(from->begin, from->end);
}

}  // namespace
}  // namespace millrace::dataset
