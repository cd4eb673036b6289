// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/instant/instant_order.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/paths.hpp"
#include "unit/dataset/write_dataset.hpp"

namespace millrace::dataset {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class InstantOrder : public testing::Test {
 protected:
  std::filesystem::path stored(const std::string& name, std::size_t tokens) {
    std::vector<std::uint16_t> ids(tokens);
    for (std::size_t i = 0; i < tokens; ++i) ids[i] = static_cast<std::uint16_t>(i);
    test::write_dataset<std::uint16_t>(folder_ / name, {{std::move(ids)}});
    return folder_ / name;
  }
  static instant_options options_of(std::vector<schedule_segment> segments) {
    return {.seed = 1,
            .seq_len = 10,
            .segments = std::move(segments),
            .first_position_of = [](std::int64_t step) { return 8 * step; },
            .train_samples = std::nullopt,
            .most_open = 2};
  }
  template <class Sources>
  static std::string refusal(const Sources& sources, const instant_options& options) {
    try {
      const instant_order order(sources, options);
    } catch (const error& e) {
      return e.what();
    }
    return "accepted";
  }
  test::temp_folder folder_;
};

TEST_F(InstantOrder, WalksForwardAndBack) {
  const std::vector<instant_source> sources = {{stored("web", 1234), "", {}, {}},
                                               {stored("code", 345), "", {}, {}}};
  const instant_order order(sources, options_of({{0, {{0, 2}, {1, 1}}}}));
  EXPECT_EQ(order.name(1), "code");
  for (std::int64_t p = 0; p < 1000; ++p) {
    const instant_sample sample = order.at(p);
    EXPECT_EQ(sample.place, order.windows(sample.source).at(sample.k));
    EXPECT_EQ(order.position_of(sample.source, sample.place.epoch, sample.place.window), p);
    std::vector<piece> pieces;
    order.pieces(sample, pieces);
    EXPECT_THAT(pieces, testing::ElementsAre(piece{0, sample.place.first_token, 11}));
  }
}

TEST_F(InstantOrder, FindsEveryTimeThatATokenIsServed) {
  const std::vector<instant_source> sources = {{stored("web", 1234), "", {}, {}},
                                               {stored("code", 345), "", {}, {}}};
  const instant_order order(sources, options_of({{0, {{0, 2}, {1, 1}}}}));
  for (const std::int64_t token : {0, 1, 17, 340, 344}) {
    std::vector<std::int64_t> expected;
    for (std::int64_t p = 0; p < 700; ++p) {
      const instant_sample sample = order.at(p);
      const std::int64_t first = sample.place.first_token;
      if (sample.source == 1 && first <= token && token < first + 10) expected.push_back(p);
    }
    auto found = order.positions_of(1, token, 700);
    std::sort(found.begin(), found.end());
    EXPECT_EQ(found, expected) << token;
  }
}

// Sources are identified by name, not by their place in the list. So adding sources does not change
// which samples of a source were consumed.
TEST_F(InstantOrder, IsNotDisturbedByOtherSources) {
  const auto web = stored("web", 1234);
  const auto code = stored("code", 345);
  const auto math = stored("math", 500);
  const instant_order before({{web, "", {}, {}}, {code, "", {}, {}}},
                             options_of({{0, {{0, 2}, {1, 1}}}}));
  const instant_order after({{math, "", {}, {}}, {code, "", {}, {}}, {web, "", {}, {}}},
                            options_of({{0, {{2, 2}, {1, 1}}}, {50, {{0, 1}, {1, 1}, {2, 1}}}}));
  for (std::int64_t p = 0; p < 400; ++p) {
    const instant_sample old = before.at(p);
    const instant_sample now = after.at(p);
    EXPECT_EQ(now.source, old.source == 0 ? 2 : 1);
    EXPECT_EQ(now.k, old.k);
    EXPECT_EQ(now.place, old.place);
  }
}

TEST_F(InstantOrder, OpensIndicesOnlyWhenPiecesAreAskedFor) {
  const instant_order order({{folder_ / "absent", "", {}, 1'000'000}}, options_of({{0, {{0, 1}}}}));
  const instant_sample sample = order.at(12345);
  std::vector<piece> pieces;
  EXPECT_THROW(order.pieces(sample, pieces), io_error);
  (void)stored("absent", 999);
  // The order was created with another token count than this dataset has.
  EXPECT_THROW(order.pieces(sample, pieces), format_error);
}

TEST_F(InstantOrder, CountsMoreThan2To40Samples) {
  const std::int64_t tokens = std::int64_t{1} << 50;
  const instant_order order({{"huge", "", {}, tokens}}, options_of({{0, {{0, 1}}}}));
  const std::int64_t count = order.windows(0).windows_per_epoch();
  EXPECT_EQ(count, (tokens - 1) / 10);
  for (const std::int64_t p : {std::int64_t{0}, std::int64_t{1} << 31, std::int64_t{1} << 46}) {
    const instant_sample sample = order.at(p);
    EXPECT_EQ(order.position_of(0, 0, sample.place.window), p);
    EXPECT_LE(sample.place.first_token + 11, tokens);
  }
  EXPECT_EQ(order.position_of(0, std::numeric_limits<std::int64_t>::max() - 1, 5), std::nullopt);
}

TEST_F(InstantOrder, HoldsRepetitionsAgainstTheRun) {
  const std::vector<instant_source> sources = {{"a", "", 1.5, 1001}, {"b", "", {}, 100'001}};
  instant_options options = options_of({{0, {{0, 1}, {1, 1}}}});
  options.train_samples = 300;
  EXPECT_EQ(refusal(sources, options), "accepted");
  options.train_samples = 400;  // source a may serve 150 samples, the last at position 299
  EXPECT_THAT(refusal(sources, options),
              AllOf(HasSubstr("step 37 would take more than the 150 samples allowed of source a")));
}

// The order is the same whether token counts are given or read from the headers.
TEST_F(InstantOrder, BlendsDatasetsOfDifferentTypes) {
  test::write_dataset<std::int32_t>(folder_ / "wide", {{std::vector<std::int32_t>(100)}});
  const auto web = stored("web", 100);
  const auto options = options_of({{0, {{0, 1}, {1, 1}}}});
  const instant_order looked_up({{web, "", {}, {}}, {folder_ / "wide", "", {}, {}}}, options);
  const instant_order given({{web, "", {}, 100}, {folder_ / "wide", "", {}, 100}}, options);
  std::vector<piece> pieces;
  for (std::int64_t p = 0; p < 20; ++p) {
    EXPECT_EQ(looked_up.at(p), given.at(p));
    pieces.clear();
    looked_up.pieces(looked_up.at(p), pieces);
    EXPECT_EQ(pieces.at(0).tokens, 11);
  }
}

TEST_F(InstantOrder, RefusesWhatCannotBe) {
  const auto options = options_of({{0, {{0, 1}}}});
  const auto source = [](const char* prefix, const char* name, std::int64_t tokens) {
    return instant_source{prefix, name, {}, tokens};
  };
  using sources = std::vector<instant_source>;
  EXPECT_THAT(refusal(sources{source("x/web", "", 10)}, options),
              HasSubstr("source web has 10 tokens, fewer than one window"));
  EXPECT_THAT(refusal(sources{source("x/web", "", 100), source("y/web", "", 100)}, options),
              AllOf(HasSubstr("both named \"web\""), HasSubstr("x/web, y/web")));
  EXPECT_EQ(refusal(sources{source("x/web", "", 100), source("y/web", "other", 100)}, options),
            "accepted");
  EXPECT_THAT(refusal(sources{{"a", "", 0., 100}}, options), HasSubstr("most_epochs of source a"));
  EXPECT_THAT(refusal(sources{}, options), HasSubstr("expected one of the 0"));
}

TEST_F(InstantOrder, NeedsTheStepsOnlyWhereABlendChanges) {
  const std::vector<instant_source> sources = {{"web", "", {}, 100}};
  instant_options one = options_of({{0, {{0, 1}}}});
  one.first_position_of = nullptr;
  EXPECT_EQ(refusal(sources, one), "accepted");
  instant_options two = options_of({{0, {{0, 1}}}, {3, {{0, 1}}}});
  two.first_position_of = nullptr;
  EXPECT_EQ(refusal(sources, two),
            "first_position_of is empty, but there are 2 segments: expected the first position of "
            "each step, e.g. step * global_batch_size");
}

}  // namespace
}  // namespace millrace::dataset
