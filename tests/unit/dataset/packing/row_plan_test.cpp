// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/packing/row_plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/dataset/detail/megatron/numpy_random.hpp>
#include <millrace/dataset/detail/packing/level_bitmap.hpp>
#include <millrace/error.hpp>

#include "support/seed.hpp"

namespace millrace::dataset {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using rows_of_documents = std::vector<std::vector<std::uint32_t>>;

row_plan::lengths_reader reader_of(const std::vector<std::int64_t>& lengths) {
  return [&](std::int64_t first, std::int64_t last, std::vector<std::int64_t>& out) {
    out.assign(lengths.begin() + first, lengths.begin() + last);
  };
}

row_plan plan_of(const row_plan_options& options, const std::vector<std::int64_t>& lengths) {
  return {options, std::ssize(lengths), reader_of(lengths)};
}

rows_of_documents rows_of(const row_plan& plan) {
  rows_of_documents rows;
  for (std::int64_t row = 0; row < plan.row_count(); ++row) {
    const auto documents = plan.documents_of(row);
    rows.emplace_back(documents.begin(), documents.end());
  }
  return rows;
}

/// Megatron-Bridge's packing as it is described: tries every row for every length.
rows_of_documents naive_first_fit(const row_plan_options& options,
                                  const std::vector<std::int64_t>& lengths) {
  std::map<std::int64_t, std::vector<std::uint32_t>> of_length;
  std::vector<std::int64_t> items;
  for (std::size_t d = 0; d < lengths.size(); ++d) {
    if (lengths[d] > options.seq_len) continue;
    of_length[lengths[d]].push_back(static_cast<std::uint32_t>(d));
    items.push_back(lengths[d]);
  }
  std::ranges::sort(items);
  numpy_random random(options.seed);
  if (options.algorithm == packing_algorithm::first_fit_shuffle) {
    random.shuffle(std::span(items));
  } else {
    std::ranges::reverse(items);
  }
  std::vector<std::vector<std::int64_t>> bins;
  std::vector<std::int64_t> used;
  for (const std::int64_t item : items) {
    std::size_t b = 0;
    while (b < bins.size() && used[b] + item > options.seq_len) ++b;
    if (b == bins.size()) {
      bins.emplace_back();
      used.push_back(0);
    }
    bins[b].push_back(item);
    used[b] += item;
  }
  for (auto& [length, documents] : of_length) random.shuffle(std::span(documents));
  rows_of_documents rows;
  for (const auto& bin : bins) {
    auto& row = rows.emplace_back();
    for (const std::int64_t item : bin) {
      if (item != 0) row.push_back(of_length[item].back());
      of_length[item].pop_back();
    }
    if (row.empty()) rows.pop_back();
  }
  return rows;
}

/// Modified first-fit decreasing as it is described, on lists.
class naive_modified {
 public:
  naive_modified(std::int64_t seq_len, const std::vector<std::int64_t>& lengths)
      : seq_len_(seq_len), lengths_(lengths) {}

  rows_of_documents pack() {
    std::vector<std::uint32_t> large;
    std::vector<std::uint32_t> medium;
    std::vector<std::uint32_t> small;
    std::vector<std::uint32_t> tiny;
    for (std::uint32_t d = 0; d < lengths_.size(); ++d) {
      const double length = static_cast<double>(lengths_[d]);
      const double row = static_cast<double>(seq_len_);
      if (length < 1 || length > row) continue;
      (length > row / 2   ? large
       : length > row / 3 ? medium
       : length > row / 6 ? small
                          : tiny)
          .push_back(d);
    }
    descending(large);
    descending(medium);
    ascending(small);
    ascending(tiny);
    rows_of_documents rows;
    for (const std::uint32_t d : large) rows.push_back({d});
    for (auto& row : rows) {
      const auto fits = std::ranges::find_if(medium, [&](auto d) { return fits_in(row, d); });
      if (fits != medium.end()) move(medium, fits, row);
    }
    for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
      if (row->size() > 1 || small.size() < 2) continue;
      if (lengths_[small[0]] + lengths_[small[1]] > room(*row)) continue;
      move(small, small.begin(), *row);
      const auto last =
          std::find_if(small.rbegin(), small.rend(), [&](auto d) { return fits_in(*row, d); });
      move(small, std::next(last).base(), *row);
    }
    std::vector<std::uint32_t> rest = medium;
    rest.insert(rest.end(), small.begin(), small.end());
    rest.insert(rest.end(), tiny.begin(), tiny.end());
    descending(rest);
    for (auto& row : rows) {
      for (;;) {
        const auto fits = std::ranges::find_if(rest, [&](auto d) { return fits_in(row, d); });
        if (fits == rest.end()) break;
        move(rest, fits, row);
      }
    }
    rows_of_documents last;
    for (const std::uint32_t d : rest) {
      std::vector<std::uint32_t> row;
      if (!last.empty() && fits_in(last.front(), d)) {
        row = last.front();
        last.erase(last.begin());
      }
      row.push_back(d);
      const auto after = std::ranges::find_if(last, [&](const auto& each) {
        return room(each) < room(row);  // each has more tokens
      });
      last.insert(after, row);
    }
    rows.insert(rows.end(), last.begin(), last.end());
    return rows;
  }

 private:
  void ascending(std::vector<std::uint32_t>& documents) const {
    std::ranges::stable_sort(documents, {}, [this](auto d) { return lengths_[d]; });
  }
  void descending(std::vector<std::uint32_t>& documents) const {
    std::ranges::stable_sort(documents, {}, [this](auto d) { return -lengths_[d]; });
  }
  std::int64_t room(const std::vector<std::uint32_t>& row) const {
    std::int64_t left = seq_len_;
    for (const std::uint32_t d : row) left -= lengths_[d];
    return left;
  }
  bool fits_in(const std::vector<std::uint32_t>& row, std::uint32_t d) const {
    return lengths_[d] <= room(row);
  }
  static void move(std::vector<std::uint32_t>& from, std::vector<std::uint32_t>::iterator at,
                   std::vector<std::uint32_t>& row) {
    row.push_back(*at);
    from.erase(at);
  }

  std::int64_t seq_len_;
  const std::vector<std::int64_t>& lengths_;
};

rows_of_documents naive_rows(const row_plan_options& options,
                             const std::vector<std::int64_t>& lengths) {
  if (options.algorithm == packing_algorithm::one_per_row) {
    rows_of_documents rows;
    for (std::uint32_t d = 0; d < lengths.size(); ++d) {
      if (lengths[d] != 0 && lengths[d] <= options.seq_len) rows.push_back({d});
    }
    return rows;
  }
  return options.algorithm == packing_algorithm::modified_first_fit_decreasing
             ? naive_modified(options.seq_len, lengths).pack()
             : naive_first_fit(options, lengths);
}

constexpr packing_algorithm planned[] = {
    packing_algorithm::first_fit_decreasing, packing_algorithm::first_fit_shuffle,
    packing_algorithm::modified_first_fit_decreasing, packing_algorithm::one_per_row};

TEST(RowPlan, HasTheRowsOfANaiveModel) {
  std::mt19937_64 random(test::seed(21));
  for (int round = 0; round < 600; ++round) {
    row_plan_options options;
    options.seq_len = static_cast<std::int64_t>(1 + random() % (round % 3 == 0 ? 5000 : 40));
    options.seed = static_cast<std::uint32_t>(random() % 4);
    // Short lengths, lengths of all sizes, or few different ones; some are overlong, some are 0.
    const std::uint64_t kind = random() % 3;
    const auto most = static_cast<std::uint64_t>(options.seq_len) + (random() % 4 == 0 ? 3 : 1);
    std::vector<std::int64_t> lengths(random() % 300);
    for (auto& each : lengths) {
      each = static_cast<std::int64_t>(kind == 0   ? random() % (1 + random() % most)
                                       : kind == 1 ? random() % most
                                                   : most * (random() % 7) / 7);
    }
    for (const packing_algorithm algorithm : planned) {
      options.algorithm = algorithm;
      const row_plan plan = plan_of(options, lengths);
      ASSERT_EQ(rows_of(plan), naive_rows(options, lengths))
          << name(algorithm) << " seq_len " << options.seq_len << " round " << round;
      std::vector<std::uint32_t> expected(lengths.size(), row_plan::no_row);
      for (std::int64_t row = 0; row < plan.row_count(); ++row) {
        for (const std::uint32_t d : plan.documents_of(row)) {
          expected[d] = static_cast<std::uint32_t>(row);
        }
      }
      std::int64_t overlong = 0;
      for (std::size_t d = 0; d < lengths.size(); ++d) {
        ASSERT_EQ(plan.row_of(static_cast<std::int64_t>(d)), expected[d]);
        const bool is_overlong = lengths[d] > options.seq_len;
        if (is_overlong && overlong++ == 0) {
          EXPECT_EQ(plan.first_overlong(), static_cast<std::int64_t>(d));
          EXPECT_EQ(plan.first_overlong_length(), lengths[d]);
        }
        ASSERT_EQ(expected[d] == row_plan::no_row, is_overlong || lengths[d] == 0);
      }
      ASSERT_EQ(plan.overlong(), overlong);
    }
  }
}

// Rows of megatron-bridge 0.6.2 (`create_packing_strategy` and `fill_packing_strategy`, seed 7) and
// of `pack_samples` in Megatron-LM's pull request 5017, for these lengths.
TEST(RowPlan, HasTheRowsOfTheReferences) {
  const std::vector<std::int64_t> lengths = {5, 3, 8, 2, 2, 5, 10, 1, 4, 4, 3, 6, 2, 9, 1, 3};
  const auto rows = [&](packing_algorithm algorithm) {
    return rows_of(plan_of({algorithm, 10, 7}, lengths));
  };
  EXPECT_EQ(
      rows(packing_algorithm::first_fit_decreasing),
      (rows_of_documents{{6}, {13, 14}, {2, 3}, {11, 9}, {5, 0}, {8, 15, 10}, {1, 4, 12, 7}}));
  EXPECT_EQ(
      rows(packing_algorithm::first_fit_shuffle),
      (rows_of_documents{{9, 1, 12, 7}, {0, 14, 10}, {11, 3, 4}, {13}, {2}, {5, 15}, {8}, {6}}));
  EXPECT_EQ(
      rows(packing_algorithm::modified_first_fit_decreasing),
      (rows_of_documents{{6}, {13, 7}, {2, 3}, {11, 8}, {15, 4, 12, 14}, {0, 5}, {9, 1, 10}}));
}

TEST(RowPlan, PairsSmallDocuments) {
  // rows of 60: large 31 or more, medium 21 or more, small 11 or more
  const std::vector<std::int64_t> lengths = {33, 12, 13, 15, 15, 35, 21, 3};
  EXPECT_THAT(rows_of(plan_of({packing_algorithm::modified_first_fit_decreasing, 60, 0}, lengths)),
              ElementsAre(ElementsAre(5, 6, 7), ElementsAre(0, 1, 4), ElementsAre(3, 2)));
}

TEST(RowPlan, OfNothingHasNoRows) {
  for (const packing_algorithm algorithm : planned) {
    EXPECT_EQ(plan_of({algorithm, 8, 0}, {}).row_count(), 0);
    EXPECT_EQ(plan_of({algorithm, 8, 0}, {0, 0}).row_count(), 0);
    EXPECT_EQ(plan_of({algorithm, 8, 0}, {9, 0}).row_count(), 0);
  }
}

TEST(RowPlan, RefusesWhatItCannotPack) {
  const auto refusal = [](std::int64_t seq_len, std::int64_t documents) -> std::string {
    try {
      (void)row_plan({.seq_len = seq_len}, documents,
                     [](std::int64_t, std::int64_t, std::vector<std::int64_t>&) {});
    } catch (const config_error& e) {
      return e.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refusal(0, 1), HasSubstr("seq_len is 0, expected 1 to 16777216"));
  EXPECT_THAT(refusal(8, 0xFFFFFFFF),
              HasSubstr("first_fit_decreasing packs all documents at once, but 4294967295 are "
                        "given, expected at most 4294967294"));
}

// A dataset that is replaced while it is packed must not lead to writes outside the arrays.
TEST(RowPlan, NoticesLengthsThatChange) {
  for (const packing_algorithm algorithm : planned) {
    for (const std::vector<std::int64_t>& later :
         {std::vector<std::int64_t>{3, 3, 4}, {3, 4, 9}, {0, 4, 4}}) {
      int calls = 0;
      const auto lengths = [&](std::int64_t, std::int64_t, std::vector<std::int64_t>& out) {
        out = ++calls == 1 ? std::vector<std::int64_t>{3, 4, 4} : later;
      };
      EXPECT_THROW(row_plan({algorithm, 8, 0}, 3, lengths), config_error);
    }
  }
}

TEST(LevelBitmap, FindsTheNextMembers) {
  std::mt19937_64 random(test::seed(22));
  for (const std::size_t most : {0UL, 1UL, 63UL, 64UL, 4095UL, 4096UL, 300'000UL}) {
    level_bitmap set(most);
    std::vector<bool> expected(most + 1);
    for (int i = 0; i < 3000; ++i) {
      const std::size_t at = random() % (most + 1);
      if (random() % 3 != 0) {
        set.insert(at);
        expected[at] = true;
      } else {
        set.erase(at);
        expected[at] = false;
      }
      if (i % 50 != 0) continue;
      const std::size_t from = random() % (most + 1);
      std::size_t up = from;
      while (up <= most && !expected[up]) ++up;
      EXPECT_EQ(set.at_least(from), up > most ? level_bitmap::none : up);
      std::size_t down = from;
      while (down > 0 && !expected[down]) --down;
      EXPECT_EQ(set.at_most(from), expected[down] ? down : level_bitmap::none);
      EXPECT_EQ(set.has(from), expected[from]);
    }
    EXPECT_EQ(set.at_least(most + 1), level_bitmap::none);
  }
}

}  // namespace
}  // namespace millrace::dataset
