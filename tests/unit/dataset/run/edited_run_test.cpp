// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/run/edited_run.hpp>

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/dataset/run/where.hpp>

#include "unit/dataset/run/naive_stream.hpp"
#include "unit/dataset/run/stored_run.hpp"

namespace millrace::dataset {
namespace {

using testing::HasSubstr;

constexpr std::int64_t global_batch = 4;

class EditedRun : public testing::Test {
 protected:
  EditedRun() {
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

  /// Every slot of the edited run holds the naive stream's sample, and its documents are found
  /// there.
  template <class Order>
  void expect_edited(const Order& order) {
    const auto all = edits();
    const auto stream = stream_of(
        order, all, [](std::int64_t step) { return step * global_batch; }, order.end());
    std::map<std::int64_t, std::vector<std::int64_t>> blocked;
    const topology ranks(2, 2, global_batch);
    const run_places unedited(order, ranks);
    for (std::int64_t d = 4; d < 6; ++d) {
      for (const appearance& each : unedited.of(1, d, order.end())) {
        blocked[d].push_back(each.position);
      }
    }
    ASSERT_FALSE(blocked.empty());
    const edited_run run(order, stream);
    const auto expected =
        test::naive_stream(all, static_cast<std::size_t>(run.end()), global_batch, blocked);
    const run_places places(run, ranks);
    std::map<std::int64_t, std::vector<std::int64_t>> met;  // document of b to served samples
    for (std::int64_t n = 0; n < run.end(); ++n) {
      const served_sample served = places.at(ranks.place_of(n));
      const auto position = expected[static_cast<std::size_t>(n)];
      ASSERT_EQ(served.sample, order.at(position)) << n;
      if (served.sample.source != 1) continue;
      for (const document_piece& each : served.pieces) {
        auto& of = met[each.document];
        if (of.empty() || of.back() != n) of.push_back(n);
      }
    }
    EXPECT_FALSE(met.contains(4) || met.contains(5));
    for (std::int64_t d = 0; d < places.documents(1)->document_count(); ++d) {
      std::vector<std::int64_t> found;
      for (const appearance& each : places.of(1, d, run.end())) {
        if (each.tokens > 0) found.push_back(each.position);
      }
      ASSERT_EQ(found, met[d]) << "document " << d;
    }
    EXPECT_THROW((void)places.at(ranks.place_of(run.end())), config_error);
  }

  test::temp_folder folder_;
};

TEST_F(EditedRun, ServesAndFindsWhatTheStreamSays) {
  const std::vector<std::filesystem::path> both = {folder_ / "a", folder_ / "b"};
  expect_edited(test::instant_run_of(both, 10, global_batch, 120));
  expect_edited(test::megatron_run_of(both, 10, "1", 80));
}

TEST_F(EditedRun, BlocksADatasetWhereverTheBlendHasIt) {
  instant_options options;
  options.seq_len = 10;
  options.first_position_of = [](std::int64_t step) { return step * global_batch; };
  options.train_samples = 60;
  options.segments = {{0, {{0, 1.0}, {1, 1.0}}}};
  const instant_run order({{folder_ / "b", "x", {}, {}}, {folder_ / "b", "y", {}, {}}}, options);
  const std::vector<edit> one = {edits()[2]};
  const auto stream = stream_of(
      order, one, [](std::int64_t step) { return step * global_batch; }, order.end());
  const edited_run run(order, stream);
  const source_documents documents(folder_ / "b");
  const sequence_range blocked{documents.sequences_of(4).first, documents.sequences_of(5).last};
  EXPECT_LT(run.end(), order.end());
  for (std::int64_t source = 0; source < 2; ++source) {
    EXPECT_FALSE(order.positions_with(source, blocked, order.end()).empty()) << source;
    EXPECT_TRUE(run.positions_with(source, blocked, run.end()).empty()) << source;
  }
}

TEST_F(EditedRun, RefusesToBlockWhatIsNotThere) {
  const auto order = test::instant_run_of({folder_ / "b"}, 10, global_batch, 40);
  const auto fault = [&](const edit& e) -> std::string {
    const std::vector<edit> one = {e};
    try {
      (void)stream_of(
          order, one, [](std::int64_t step) { return step; }, order.end());
    } catch (const config_error& error) {
      return error.what();
    }
    return "accepted";
  };
  edit e = edits()[2];
  EXPECT_EQ(fault(e), "accepted");
  e.last = 32;
  EXPECT_THAT(fault(e), HasSubstr("documents 4 to 31 of "));
  e.source = "c";
  EXPECT_THAT(fault(e), HasSubstr("documents of c are blocked, which is none of the datasets"));
}

}  // namespace
}  // namespace millrace::dataset
