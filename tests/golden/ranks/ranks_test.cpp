// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/ranks/context_slices.hpp>
#include <millrace/loader/detail/ranks/rank_grid.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <simdjson.h>

#include <millrace/loader/batch_loader.hpp>

#include "support/paths.hpp"
#include "unit/dataset/run/stored_run.hpp"

namespace millrace::loader {
namespace {

using numbers = std::vector<std::int64_t>;

numbers numbers_of(const simdjson::dom::element& list) {
  numbers result;
  for (const simdjson::dom::element each : list.get_array()) result.push_back(each.get_int64());
  return result;
}

class RanksGolden : public testing::Test {
 protected:
  simdjson::dom::parser parser_;
  simdjson::dom::element golden_ = parser_.load(test::golden("ranks/layouts.json").string());
};

TEST_F(RanksGolden, GroupsAreThoseOfRankGenerator) {
  std::int64_t compared = 0;
  for (const simdjson::dom::element grid : golden_.at_key("grids").get_array()) {
    const numbers sizes = numbers_of(grid.at_key("sizes"));
    const std::string order(grid.at_key("order").get_string().value());
    const rank_grid ours({sizes[0], sizes[1], sizes[2], sizes[3], sizes[4]}, order,
                         grid.at_key("offset").get_int64());
    for (const auto [axes, groups] : grid.at_key("groups").get_object()) {
      std::vector<numbers> expected;
      for (const simdjson::dom::element group : groups.get_array()) {
        expected.push_back(numbers_of(group));
      }
      EXPECT_EQ(ours.groups(axes), expected) << order << ", groups along " << axes;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 70);
}

TEST_F(RanksGolden, SlicesAreThoseOfContextParallelism) {
  std::int64_t compared = 0;
  for (const simdjson::dom::element row : golden_.at_key("slices").get_array()) {
    const std::int64_t cp = row.at_key("context_parallel").get_int64();
    std::int64_t rank = 0;
    for (const simdjson::dom::element positions : row.at_key("positions").get_array()) {
      const context_slices ours(row.at_key("seq_len").get_int64(), cp, rank++);
      numbers found;
      for (std::int64_t i = 0; i < ours.length(); ++i) found.push_back(ours.position(i));
      EXPECT_EQ(found, numbers_of(positions)) << cp << " ranks, rank " << rank - 1;
      ++compared;
    }
    EXPECT_EQ(rank, cp);
  }
  EXPECT_EQ(compared, 10);
}

// The tokens, labels, loss mask and position ids of context-parallel ranks equal those that
// Megatron makes and then cuts for the ranks.
TEST_F(RanksGolden, FieldsAreThoseOfContextParallelism) {
  std::int64_t compared = 0;
  for (const simdjson::dom::element row : golden_.at_key("fields").get_array()) {
    const test::temp_folder folder{test::quick_folder()};
    test::documents_of<std::uint16_t> documents(1);
    auto& text = documents[0].emplace_back();
    for (const std::int64_t token : numbers_of(row.at_key("text"))) {
      text.push_back(static_cast<std::uint16_t>(token));
    }
    test::write_dataset<std::uint16_t>(folder / "data", documents);
    const dataset::indexed_dataset data(folder / "data");
    loader_options options;
    options.seq_len = std::ssize(text) - 1;
    options.fields = {true, true, true, true, false};
    options.field_rules.eod = row.at_key("eod").get_int64();
    options.field_rules.reset_position_ids = row.at_key("reset_position_ids").get_bool();
    options.field_rules.eod_mask_loss = row.at_key("eod_mask_loss").get_bool();
    const simdjson::dom::array ranks = row.at_key("ranks").get_array();
    options.context_parallel = static_cast<std::int64_t>(ranks.size());
    for (const simdjson::dom::element expected : ranks) {
      batch_loader loader(data, options);
      const auto batch = loader.next();
      ASSERT_TRUE(batch.has_value());
      const auto all = [](auto field) { return numbers(field.begin(), field.end()); };
      EXPECT_EQ(all(batch->tokens()), numbers_of(expected.at_key("tokens")));
      EXPECT_EQ(all(batch->labels()), numbers_of(expected.at_key("labels")));
      EXPECT_EQ(all(batch->loss_mask()), numbers_of(expected.at_key("loss_mask")));
      EXPECT_EQ(all(batch->position_ids()), numbers_of(expected.at_key("position_ids")));
      ++compared;
      ++options.cp_rank;
    }
  }
  EXPECT_EQ(compared, 2 + 2 + 3 + 4);
}

}  // namespace
}  // namespace millrace::loader
