// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/sampler.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/dataset/detail/run/edited_stream.hpp>
#include <millrace/dataset/where.hpp>

#include "support/config_refusal.hpp"
#include "unit/dataset/run/naive_stream.hpp"
#include "unit/dataset/run/stored_run.hpp"

namespace millrace::dataset {
namespace {

using testing::HasSubstr;

constexpr std::int64_t global_batch = 4;

class EditedPositions : public testing::Test {
 protected:
  EditedPositions() {
    std::mt19937 random(6);
    test::store_documents(folder_ / "a", random, 30);
    test::store_documents(folder_ / "b", random, 30);
  }
  std::vector<edit> edits() const {
    return {{.first = 3, .last = 9, .why = "spike"},
            {.kind = edit_kind::replay, .first = 0, .last = 3, .at = 14, .why = "again"},
            {.kind = edit_kind::block,
             .unit = edit_unit::documents,
             .first = 4,
             .last = 6,
             .source = (folder_ / "b").string(),
             .why = "leaked"}};
  }

  static std::shared_ptr<const edited_stream> stream_of(const run& order,
                                                        const std::vector<edit>& all) {
    return std::make_shared<const edited_stream>(
        edited_positions(order, all, batch_steps(global_batch)));
  }
  static sampler ranks_of(const run& order, std::shared_ptr<const edited_stream> stream = nullptr) {
    return sampler(order.end(),
                   {.batch_size = 2, .world_size = 2, .global_batch_size = global_batch},
                   std::move(stream));
  }

  /// Expects that each place of the edited run has the same sample as in the naive stream. Also
  /// expects that a lookup of the sample's documents finds this place.
  void expect_edited(const run& order) {
    const auto all = edits();
    const sampler ranks = ranks_of(order, stream_of(order, all));
    std::map<std::int64_t, std::vector<std::int64_t>> blocked;
    const sampler plain = ranks_of(order);
    const run_places unedited(order, plain);
    for (std::int64_t d = 4; d < 6; ++d) {
      // Finds the positions without `where`, because the last samples may not fill a micro-batch.
      for (std::int64_t p = 0; p < order.end(); ++p) {
        const source_sample sample = order.at(p);
        std::vector<piece> pieces;
        (void)order.pieces(sample, pieces);
        const sequence_range of = unedited.documents(1)->sequences_of(d);
        const bool holds = std::ranges::any_of(pieces, [&](const piece& each) {
          return each.tokens > 0 && of.first <= each.sequence && each.sequence < of.last;
        });
        if (sample.source == 1 && holds) blocked[d].push_back(p);
      }
    }
    ASSERT_FALSE(blocked.empty());
    const auto end = static_cast<std::size_t>(ranks.end_sample());
    const auto expected = test::naive_stream(all, end, global_batch, blocked);
    const run_places places(order, ranks);
    std::map<std::int64_t, std::vector<std::int64_t>>
        met;  // key: document of source b; value: sample indices
    for (std::int64_t n = 0; n < ranks.end_sample(); ++n) {
      const served_sample served = places.at(ranks.slot_of(n));
      ASSERT_EQ(served.served, n);
      ASSERT_EQ(served.position, expected[static_cast<std::size_t>(n)]) << n;
      ASSERT_EQ(served.sample, order.at(served.position)) << n;
      if (served.sample.source != 1) continue;
      for (const document_piece& each : served.pieces) {
        auto& of = met[each.document];
        if (of.empty() || of.back() != n) of.push_back(n);
      }
    }
    EXPECT_FALSE(met.contains(4) || met.contains(5));
    for (std::int64_t d = 0; d < places.documents(1)->document_count(); ++d) {
      std::vector<std::int64_t> found;
      for (const appearance& each : places.of(1, d, ranks.end_sample())) {
        if (each.tokens > 0) found.push_back(each.served);
      }
      ASSERT_EQ(found, met[d]) << "document " << d;
    }
    EXPECT_THROW((void)places.at(ranks.slot_of(ranks.end_sample())), config_error);
  }

  test::temp_folder folder_;
};

TEST_F(EditedPositions, ServesAndFindsWhatTheStreamSays) {
  const std::vector<std::filesystem::path> both = {folder_ / "a", folder_ / "b"};
  expect_edited(test::instant_run_of(both, 10, global_batch, 120));
  expect_edited(test::megatron_run_of(both, 10, "1", 80));
}

TEST_F(EditedPositions, BlocksADatasetWhereverTheBlendHasIt) {
  instant_options options;
  options.seq_len = 10;
  options.first_position_of = [](std::int64_t step) { return step * global_batch; };
  options.train_samples = 60;
  options.segments = {{0, {{0, 1.0}, {1, 1.0}}}};
  const instant_run order({{folder_ / "b", "x", {}, {}}, {folder_ / "b", "y", {}, {}}}, options);
  const std::vector<edit> one = {edits()[2]};
  const sampler ranks = ranks_of(order, stream_of(order, one));
  const run_places places(order, ranks);
  const run_places unedited(order, ranks_of(order));
  EXPECT_LT(ranks.end_sample(), order.end());
  std::vector<appearance> found;
  for (const std::int64_t document : {4, 5}) {
    const auto of = unedited.of(folder_ / "b", document, order.end());
    EXPECT_TRUE(std::ranges::is_sorted(of, {}, &appearance::served));
    found.insert(found.end(), of.begin(), of.end());
  }
  for (const std::int64_t source : {0, 1}) {
    EXPECT_TRUE(std::ranges::any_of(found, [&](const appearance& each) {
      return each.source == source;
    })) << source;
  }
  for (const std::int64_t document : {4, 5}) {
    EXPECT_TRUE(places.of(folder_ / "b", document, ranks.end_sample()).empty()) << document;
  }
  EXPECT_THROW((void)places.of(folder_ / "c", 0, 10), config_error);
}

TEST_F(EditedPositions, RefusesToBlockWhatIsNotThere) {
  const auto order = test::instant_run_of({folder_ / "b"}, 10, global_batch, 40);
  const auto fault = [&](const edit& e) -> std::string {
    return test::config_refusal([&] { return edited_positions(order, {&e, 1}, batch_steps(1)); });
  };
  edit e = edits()[2];
  EXPECT_EQ(fault(e), "accepted");
  e.last = 32;
  EXPECT_THAT(fault(e), HasSubstr("documents 4 to 32 of "));
  e.source = "c";
  EXPECT_THAT(fault(e),
              HasSubstr("documents of c are blocked, expected a prefix of one of the 1 datasets"));
}

}  // namespace
}  // namespace millrace::dataset
