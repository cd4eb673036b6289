// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/run/edited_stream.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/seed.hpp"
#include "unit/dataset/run/naive_stream.hpp"

namespace millrace::dataset {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using positions = std::vector<std::int64_t>;

constexpr std::int64_t step_samples = 4;

edit skip(std::int64_t first, std::int64_t last, std::int64_t since = 0) {
  return {.first = first, .last = last, .since = since, .why = "a loss spike"};
}
edit replay(std::int64_t first, std::int64_t last, std::int64_t at, std::int64_t since = 0) {
  return {.kind = edit_kind::replay,
          .first = first,
          .last = last,
          .at = at,
          .since = since,
          .why = "once more"};
}

edited_stream stream_of(const std::vector<edit>& edits,
                        const std::map<std::int64_t, positions>& documents = {}) {
  return edited_stream(
      edits, [](std::int64_t step) { return step * step_samples; },
      [&](const edit& e) {
        std::vector<position_range> found;
        for (std::int64_t d = e.first; d < e.last; ++d) {
          const auto at = documents.find(d);
          if (at == documents.end()) continue;
          for (const std::int64_t p : at->second) found.push_back({p, p + 1});
        }
        return found;
      });
}

positions first_of(const edited_stream& stream, std::int64_t count) {
  positions all;
  for (std::int64_t n = 0; n < count; ++n) all.push_back(stream[n]);
  return all;
}

std::string fault(const std::vector<edit>& edits) {
  try {
    (void)stream_of(edits);
  } catch (const config_error& e) {
    return e.what();
  }
  return "";
}

TEST(EditedStream, OfNoEditsIsEveryPosition) {
  for (const edited_stream& stream : {edited_stream(), stream_of({})}) {
    EXPECT_THAT(first_of(stream, 4), ElementsAre(0, 1, 2, 3));
    EXPECT_EQ(stream[std::int64_t{1} << 60], std::int64_t{1} << 60);
    EXPECT_EQ(stream.served(std::int64_t{1} << 60), std::int64_t{1} << 60);
    EXPECT_EQ(stream.stretches().size(), 1U);
  }
}

TEST(EditedStream, SkipsAndReplays) {
  const auto stream = stream_of({skip(3, 5), replay(1, 3, 6)});
  EXPECT_THAT(first_of(stream, 9), ElementsAre(0, 1, 2, 5, 1, 2, 6, 7, 8));
  EXPECT_THAT(stream.all_served(1), ElementsAre(1, 4));
  EXPECT_THAT(stream.all_served(3), ElementsAre());
  EXPECT_EQ(stream.served(3), std::nullopt);
  EXPECT_EQ(stream.served(5), 3);
  EXPECT_EQ(stream.served(1000), 1000);  // before this position, 2 are skipped and 2 replayed
}

TEST(EditedStream, CountsStepsOfTheRunWithoutEdits) {
  edit steps = skip(1, 2);
  steps.unit = edit_unit::steps;
  edit twice = replay(0, 1, 3);
  twice.unit = edit_unit::steps;
  EXPECT_THAT(first_of(stream_of({steps, twice}), 13),
              ElementsAre(0, 1, 2, 3, 8, 9, 10, 11, 0, 1, 2, 3, 12));
}

TEST(EditedStream, BlocksDocumentsWhereverTheyCome) {
  const edit blocked{.kind = edit_kind::block,
                     .unit = edit_unit::documents,
                     .first = 7,
                     .last = 9,
                     .source = "web",
                     .why = "leaked"};
  EXPECT_THAT(first_of(stream_of({blocked}, {{7, {1, 5}}, {8, {5, 6}}, {9, {2}}}), 5),
              ElementsAre(0, 2, 3, 4, 7));
}

// An edit does not change samples that were served before it was made.
TEST(EditedStream, LeavesAloneWhatWasServedBeforeAnEdit) {
  EXPECT_THAT(first_of(stream_of({skip(1, 5, 3)}), 6), ElementsAre(0, 1, 2, 5, 6, 7));
  EXPECT_THAT(first_of(stream_of({skip(0, 2, 3)}), 4), ElementsAre(0, 1, 2, 3));
  // This edit is made while a replay is being served.
  EXPECT_THAT(first_of(stream_of({replay(0, 3, 3), skip(1, 2, 4)}), 7),
              ElementsAre(0, 1, 2, 0, 2, 3, 4));
}

TEST(EditedStream, NeverReplaysWhatIsSkipped) {
  EXPECT_THAT(first_of(stream_of({skip(1, 2), replay(0, 3, 3)}), 6), ElementsAre(0, 2, 0, 2, 3, 4));
  EXPECT_THAT(first_of(stream_of({replay(0, 2, 4), skip(3, 6)}), 6), ElementsAre(0, 1, 2, 0, 1, 6))
      << "before a position that is skipped itself";
}

TEST(EditedStream, RefusesEditsThatContradictThemselves) {
  EXPECT_THAT(fault({skip(0, 1), skip(5, 3)}),
              HasSubstr("edit 1, skip_samples [5, 3]: expected an ascending range"));
  EXPECT_THAT(fault({skip(-1, 3)}), HasSubstr("edit 0, skip_samples [-1, 3]"));
  EXPECT_THAT(fault({skip(1, 3, -1)}), HasSubstr("since is -1"));
  EXPECT_THAT(fault({replay(1, 3, 2)}), HasSubstr("at is 2, expected 3 or later"));
  EXPECT_THAT(fault({replay(1, 3, 4, 9)}),
              HasSubstr("edit 0 replays samples at sample 4, expected 9 or later"));
  edit late = skip(0, (std::int64_t{1} << 40) + 1);
  late.unit = edit_unit::steps;
  EXPECT_THAT(fault({late}), HasSubstr("expected an ascending range within 0 to 2^40"));
  late = replay(0, 1, (std::int64_t{1} << 40) + 1);
  late.unit = edit_unit::steps;
  EXPECT_THAT(fault({late}),
              HasSubstr("expected 1 or later, after these were served, and up to 2^40"));
  edit no_reason = skip(0, 1);
  no_reason.why = "";
  EXPECT_THAT(fault({no_reason}), HasSubstr("expected a reason"));
  edit documents = skip(0, 1);
  documents.unit = edit_unit::documents;
  EXPECT_THAT(fault({documents}),
              HasSubstr("skip_documents [0, 1]: only documents can be blocked"));
  documents.kind = edit_kind::block;
  EXPECT_THAT(fault({documents}), HasSubstr("source is empty, expected the prefix"));
}

// An edit can name any step whose position fits into 64 bits. If the caller's function from steps
// to positions returns a negative position, as after an overflow, the edit is refused.
TEST(EditedStream, TakesStepsAsFarAsPositionsReach) {
  edit far = skip(1, std::int64_t{1} << 40);
  far.unit = edit_unit::steps;
  const auto stream = stream_of({far});
  EXPECT_EQ(stream[step_samples - 1], step_samples - 1);
  EXPECT_EQ(stream[step_samples], step_samples << 40);
  const auto beyond = [&](std::int64_t step) {
    return step < 2 ? step : std::numeric_limits<std::int64_t>::min();
  };
  const std::vector<edit> edits = {far};
  try {
    (void)edited_stream(edits, beyond, [](const edit&) { return std::vector<position_range>(); });
    ADD_FAILURE() << "accepted";
  } catch (const config_error& e) {
    EXPECT_THAT(e.what(), HasSubstr("edit 0, skip_steps: step 1099511627776 begins at sample -92"));
  }
}

// With skips, a run reaches its last position after fewer samples. Asking the edited run for a
// sample past that position is an error.
TEST(EditedStream, EndsWhereTheRunDoes) {
  const auto stream = stream_of({skip(3, 5), replay(1, 3, 6)});  // 0 1 2 5 1 2 6 7 8
  EXPECT_EQ(stream.served_before(8), 8);
  EXPECT_EQ(stream.at(7, 8), 7);
  try {
    (void)stream.at(8, 8);
    ADD_FAILURE() << "accepted";
  } catch (const config_error& e) {
    EXPECT_STREQ(e.what(),
                 "sample 8 of the edited run is sample 8 of the run without edits, which has 8: "
                 "edited, it has 8; raise train_samples, skip fewer samples, or stop before it");
  }
  EXPECT_EQ(stream.served_before(3), 3);
  EXPECT_EQ(stream.served_before(4), 3);
  EXPECT_EQ(stream.served_before(6), 6);
  EXPECT_EQ(stream.served_before(0), 0);
  EXPECT_EQ(edited_stream().served_before(std::int64_t{1} << 62), std::int64_t{1} << 62);
}

TEST(EditedStream, SaysHowFarItReached) {
  const auto stream = stream_of({skip(3, 5), replay(1, 3, 6)});  // 0 1 2 5 1 2 6 7 8
  positions reached;
  for (std::int64_t n = 0; n < 9; ++n) reached.push_back(stream.reached(n));
  EXPECT_THAT(reached, ElementsAre(0, 1, 2, 3, 6, 6, 6, 7, 8));
  EXPECT_EQ(edited_stream().reached(1 << 20), 1 << 20);
}

TEST(EditedStream, KnowsWhetherAnEditMovesWhatWasServed) {
  const auto before = stream_of({skip(10, 20)});
  EXPECT_TRUE(before.same_until(stream_of({skip(10, 20), skip(30, 40)}), 20));
  EXPECT_FALSE(before.same_until(stream_of({skip(10, 20), skip(30, 40)}), 21));
  EXPECT_TRUE(before.same_until(stream_of({skip(10, 20), skip(0, 5, 100)}), 100));
  EXPECT_FALSE(before.same_until(stream_of({}), 11));
  EXPECT_TRUE(before.same_until(stream_of({}), 10));
  EXPECT_TRUE(before.same_until(stream_of({skip(10, 15), skip(15, 20)}), 1 << 20));
}

/// Returns whether an edit skips or blocks a position.
bool keeps_out(const edit& e, std::int64_t position,
               const std::map<std::int64_t, positions>& documents) {
  if (e.kind == edit_kind::replay) return false;
  if (e.kind == edit_kind::skip) {
    const std::int64_t unit = e.unit == edit_unit::steps ? step_samples : 1;
    return e.first * unit <= position && position < e.last * unit;
  }
  return std::ranges::any_of(documents, [&](const auto& each) {
    return e.first <= each.first && each.first < e.last &&
           std::ranges::count(each.second, position) != 0;
  });
}

/// Checks what the stream reports about each position: whether it is served for the first time,
/// replayed or never served, and which edit causes this. `expected` lists the positions that are
/// served.
void expect_told_apart(const edited_stream& stream, const std::vector<edit>& edits,
                       const std::map<std::int64_t, positions>& documents,
                       const positions& expected) {
  std::set<std::int64_t> met;
  for (const edited_stream::stretch& each : stream.stretches()) {
    for (std::int64_t n = each.served; n < std::min<std::int64_t>(each.served + each.count, 300);
         ++n) {
      const std::int64_t position = expected[static_cast<std::size_t>(n)];
      ASSERT_EQ(each.position + (n - each.served), position);
      ASSERT_EQ(each.replayed_by.has_value(), !met.insert(position).second) << n;
      if (each.replayed_by) {
        const edit& e = edits[*each.replayed_by];
        const std::int64_t unit = e.unit == edit_unit::steps ? step_samples : 1;
        ASSERT_EQ(e.kind, edit_kind::replay);
        ASSERT_TRUE(e.first * unit <= position && position < e.last * unit);
      }
    }
  }
  const std::int64_t reached = *std::ranges::max_element(expected);
  std::set<std::int64_t> dropped;
  std::int64_t behind = 0;
  for (const auto& [range, by] : stream.dropped()) {
    ASSERT_LE(behind, range.first);
    ASSERT_LT(range.first, range.last);
    behind = range.last;
    for (std::int64_t p = range.first; p < range.last; ++p) {
      dropped.insert(p);
      const auto since = edits[by].since;
      ASSERT_TRUE(keeps_out(edits[by], p, documents)) << p;
      for (std::size_t i = 0; i < edits.size(); ++i) {
        const bool earlier = std::pair(edits[i].since, i) < std::pair(since, by);
        ASSERT_FALSE(earlier && keeps_out(edits[i], p, documents)) << p << ", by " << i;
      }
    }
  }
  for (std::int64_t p = 0; p <= reached; ++p) {
    ASSERT_EQ(dropped.contains(p), !met.contains(p)) << p;
  }
}

TEST(EditedStream, IsThatOfANaiveModel) {
  std::mt19937_64 random(test::seed(7));
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  int replays = 0;
  int compared = 0;
  for (int round = 0; round < 3000; ++round) {
    std::map<std::int64_t, positions> documents;
    for (std::int64_t d = 0; d < 4; ++d) {
      for (std::int64_t i = below(4); i > 0; --i) documents[d].push_back(below(120));
    }
    std::vector<edit> edits;
    for (std::int64_t i = below(7); i > 0; --i) {
      edit e = skip(0, 0, below(3) == 0 ? below(60) : 0);
      e.unit = below(3) == 0 ? edit_unit::steps : edit_unit::samples;
      const std::int64_t most = e.unit == edit_unit::steps ? 25 : 100;
      e.first = below(most);
      e.last = e.first + below(most / 5);
      const auto kind = below(3);
      if (kind == 1) {
        e.kind = edit_kind::replay;
        e.at = e.last + below(20) + e.since;  // so that it is past `since`
        ++replays;
      } else if (kind == 2) {
        e = {.kind = edit_kind::block,
             .unit = edit_unit::documents,
             .first = 0,
             .last = below(5),
             .since = e.since,
             .source = "web",
             .why = "leaked"};
      }
      edits.push_back(e);
    }
    // Edits are listed in the order in which they were made.
    std::ranges::stable_sort(edits, {}, &edit::since);
    edited_stream stream;
    try {
      stream = stream_of(edits, documents);
    } catch (const config_error&) {
      continue;  // earlier skips have already moved the run past the place of the replay
    }
    const auto expected = test::naive_stream(edits, 300, step_samples, documents);
    ASSERT_EQ(first_of(stream, 300), expected) << round;
    ++compared;
    std::int64_t furthest = 0;
    for (std::size_t n = 0; n < expected.size(); ++n) {
      ASSERT_EQ(stream.reached(static_cast<std::int64_t>(n)), furthest) << round << ", " << n;
      furthest = std::max(furthest, expected[n] + 1);
      if (n % 16 != 0) continue;
      // Suppose that the run ends before this position. Then it serves all samples before the first
      // one with this position or a higher one.
      const auto beyond =
          std::ranges::find_if(expected, [&](std::int64_t p) { return p >= expected[n]; });
      ASSERT_EQ(stream.served_before(expected[n]), beyond - expected.begin()) << round;
    }
    expect_told_apart(stream, edits, documents, expected);
    for (std::int64_t p = 0; p < 200; ++p) {
      positions naive;
      for (std::size_t n = 0; n < expected.size(); ++n) {
        if (expected[n] == p) naive.push_back(static_cast<std::int64_t>(n));
      }
      positions found = stream.all_served(p);
      std::erase_if(found, [](std::int64_t n) { return n >= 300; });  // outside the model
      ASSERT_EQ(found, naive) << round << ", position " << p;
      if (naive.empty()) continue;
      ASSERT_EQ(stream.served(p), naive.front());
    }
  }
  EXPECT_GT(compared, 2000);
  EXPECT_GT(replays, 1000);
}

}  // namespace
}  // namespace millrace::dataset
