// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/diff.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/dataset/instant_run.hpp>
#include <millrace/dataset/run.hpp>
#include <millrace/dataset/sampler.hpp>

#include "support/paths.hpp"
#include "support/seed.hpp"
#include "unit/dataset/write_dataset.hpp"

namespace millrace::dataset {
namespace {

using diffed_document = std::vector<std::vector<std::int32_t>>;
using diffed_documents = std::vector<diffed_document>;

/// What differs, by comparing everything with everything.
dataset_difference naive_diff(const diffed_documents& a, const diffed_documents& b) {
  dataset_difference found;
  std::int64_t sequence = 0;
  bool same_lengths = a.size() == b.size();
  place_counts counts;
  for (std::size_t d = 0; d < std::max(a.size(), b.size()); ++d) {
    if (d >= a.size() || d >= b.size()) {
      if (!found.first) {
        found.first = {.kind = difference_kind::document_count,
                       .document = static_cast<std::int64_t>(d),
                       .sequence = sequence,
                       .a = std::ssize(a),
                       .b = std::ssize(b),
                       .a_offset = 26,
                       .b_offset = 26};
      }
      break;
    }
    const diffed_document& x = a[d];
    const diffed_document& y = b[d];
    bool is_same = x.size() == y.size();
    std::int64_t before = 0;
    for (std::size_t s = 0; s < std::min(x.size(), y.size()); ++s) {
      bool sequence_differs = false;
      for (std::size_t t = 0; t < std::min(x[s].size(), y[s].size()); ++t) {
        if (x[s][t] == y[s][t]) continue;
        ++counts.tokens;
        sequence_differs = true;
        is_same = false;
        if (found.first) continue;
        found.first = {.kind = difference_kind::token,
                       .document = static_cast<std::int64_t>(d),
                       .sequence = sequence + static_cast<std::int64_t>(s),
                       .token = static_cast<std::int64_t>(t),
                       .document_token = before + static_cast<std::int64_t>(t),
                       .a = x[s][t],
                       .b = y[s][t]};
      }
      if (sequence_differs) ++counts.sequences;
      if (x[s].size() != y[s].size()) {
        same_lengths = is_same = false;
        const auto shorter = static_cast<std::int64_t>(std::min(x[s].size(), y[s].size()));
        if (!found.first) {
          found.first = {.kind = difference_kind::sequence_length,
                         .document = static_cast<std::int64_t>(d),
                         .sequence = sequence + static_cast<std::int64_t>(s),
                         .token = shorter,
                         .document_token = before + shorter,
                         .a = std::ssize(x[s]),
                         .b = std::ssize(y[s])};
        }
      }
      before += std::ssize(x[s]);
    }
    if (x.size() != y.size()) {
      same_lengths = false;
      if (!found.first) {
        found.first = {.kind = difference_kind::sequence_count,
                       .document = static_cast<std::int64_t>(d),
                       .sequence = sequence + std::min(std::ssize(x), std::ssize(y)),
                       .document_token = before,
                       .a = std::ssize(x),
                       .b = std::ssize(y)};
      }
    }
    if (!is_same) ++counts.documents;
    sequence += std::ssize(x);
  }
  found.in_place.reset();
  if (same_lengths) found.in_place = counts;

  std::map<diffed_document, std::pair<std::int64_t, std::int64_t>> copies;
  for (const diffed_document& each : a) ++copies[each].first;
  for (const diffed_document& each : b) ++copies[each].second;
  for (const auto& [each, count] : copies) {
    found.common += std::min(count.first, count.second);
  }
  found.only_in_a = std::ssize(a) - found.common;
  found.only_in_b = std::ssize(b) - found.common;
  // The longest common subsequence does not move.
  std::vector<std::vector<std::int64_t>> best(a.size() + 1,
                                              std::vector<std::int64_t>(b.size() + 1));
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      best[i][j] =
          a[i - 1] == b[j - 1] ? best[i - 1][j - 1] + 1 : std::max(best[i - 1][j], best[i][j - 1]);
    }
  }
  found.moved = found.common - best[a.size()][b.size()];
  return found;
}

/// Random documents and random changes to them.
class Changes {
 public:
  explicit Changes(std::uint64_t seed) : random_(seed) {}

  std::size_t below(std::size_t end) {
    return std::uniform_int_distribution<std::size_t>(0, end - 1)(random_);
  }

  diffed_document a_document(std::size_t ids) {
    diffed_document made;
    for (std::size_t sequences = below(8) == 0 ? below(4) : 1; sequences > 0; --sequences) {
      auto& sequence = made.emplace_back();
      for (std::size_t size = fixed_ > 0 ? fixed_ : below(6); size > 0; --size) {
        sequence.push_back(static_cast<std::int32_t>(below(ids)));
      }
    }
    return made;
  }

  diffed_documents start() {
    fixed_ = below(2) == 0 ? 0 : 1 + below(4);
    unique_ = below(2) == 0;
    diffed_documents all;
    for (std::size_t count = below(12); count > 0; --count) all.push_back(next_document());
    return all;
  }

  void change(diffed_documents& all) {
    const std::size_t at = all.empty() ? 0 : below(all.size());
    switch (below(7)) {
      case 0:
        if (!all.empty()) all.erase(all.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      case 1:
        all.insert(all.begin() + static_cast<std::ptrdiff_t>(below(all.size() + 1)),
                   next_document());
        break;
      case 2:
        if (!all.empty()) std::swap(all[at], all[below(all.size())]);
        break;
      case 3:
        if (!all.empty() && !unique_) all.push_back(all[at]);
        break;
      case 4:
        if (!all.empty() && !all[at].empty() && !all[at][0].empty()) {
          all[at][0][below(all[at][0].size())] = static_cast<std::int32_t>(100'000 + below(9));
        }
        break;
      case 5:
        if (!all.empty() && !all[at].empty())
          all[at].back().push_back(static_cast<std::int32_t>(7));
        break;
      default:
        if (!all.empty() && all[at].size() > 1) {  // two sequences become one
          auto last = all[at].back();
          all[at].pop_back();
          all[at].back().insert(all[at].back().end(), last.begin(), last.end());
        }
    }
  }

  bool has_unique_documents() const noexcept { return unique_; }

 private:
  diffed_document next_document() {
    diffed_document made = a_document(unique_ ? 50 : 2);
    if (unique_) made.push_back({static_cast<std::int32_t>(1'000 + number_++)});
    return made;
  }

  std::mt19937_64 random_;
  std::size_t fixed_ = 0;
  bool unique_ = false;
  std::size_t number_ = 0;
};

template <class T>
test::documents_of<T> as(const diffed_documents& from) {
  test::documents_of<T> to;
  for (const diffed_document& each : from) {
    auto& made = to.emplace_back();
    for (const auto& sequence : each) made.emplace_back(sequence.begin(), sequence.end());
  }
  return to;
}

indexed_dataset written(const std::filesystem::path& prefix, const diffed_documents& all,
                        bool wide) {
  wide ? test::write_dataset(prefix, as<std::int64_t>(all))
       : test::write_dataset(prefix, as<std::int32_t>(all));
  return indexed_dataset(prefix, {.check = check_level::full});
}

// Documents of random datasets, with random changes, in any type and with any number of threads.
TEST(DiffModel, DatasetsEqualNaiveComparison) {
  const test::temp_folder folder(test::quick_folder());
  std::map<difference_kind, int> met;
  int moved = 0;
  const std::uint64_t seed = test::seed(20);
  for (std::uint64_t n = 0; n < 1'500; ++n) {
    SCOPED_TRACE(testing::Message() << "MILLRACE_SEED=" << seed << ", case " << n);
    Changes changes(seed + n);
    const diffed_documents a = changes.start();
    diffed_documents b = a;
    for (std::size_t count = changes.below(5); count > 0; --count) changes.change(b);
    const indexed_dataset x = written(folder.path() / "a", a, changes.below(2) == 0);
    const indexed_dataset y = written(folder.path() / "b", b, changes.below(2) == 0);
    const diff_options options{.workers = static_cast<int>(1 + changes.below(3)),
                               .most_listed = static_cast<std::int64_t>(changes.below(4)),
                               .block = static_cast<std::int64_t>(1 + changes.below(20)),
                               .progress = {}};
    dataset_difference found = diff_datasets(x, y, options);
    dataset_difference expected = naive_diff(a, b);
    ASSERT_EQ(found.same(), a == b);
    if (found.first) {
      ++met[found.first->kind];
      if (found.first->kind == difference_kind::token) {
        // The bytes hold the values.
        const auto value = [&](const indexed_dataset& data, std::uint64_t byte) {
          return data.stream()[static_cast<std::int64_t>(byte / size_bytes(data.type()))];
        };
        ASSERT_EQ(value(x, found.first->a_offset), found.first->a);
        ASSERT_EQ(value(y, found.first->b_offset), found.first->b);
      }
      if (expected.first) {
        expected.first->a_offset = found.first->a_offset;
        expected.first->b_offset = found.first->b_offset;
      }
    }
    ASSERT_EQ(std::ssize(found.first_only_in_a), std::min(found.only_in_a, options.most_listed));
    ASSERT_EQ(std::ssize(found.first_only_in_b), std::min(found.only_in_b, options.most_listed));
    // Whichever copies are listed, B must lack one: it has fewer of them than A.
    for (const std::int64_t d : found.first_only_in_a) {
      const diffed_document& each = a[static_cast<std::size_t>(d)];
      ASSERT_GT(std::ranges::count(a, each), std::ranges::count(b, each));
    }
    for (const std::int64_t d : found.first_only_in_b) {
      const diffed_document& each = b[static_cast<std::size_t>(d)];
      ASSERT_GT(std::ranges::count(b, each), std::ranges::count(a, each));
    }
    // With copies, the number of moved documents is exact only if one has all documents of the
    // other; else it may be larger.
    ASSERT_GE(found.moved, expected.moved);
    if (!changes.has_unique_documents()) {
      if (found.only_in_a > 0 && found.only_in_b > 0) expected.moved = found.moved;
      if (expected.moved > 0) expected.moved = found.moved;
    }
    moved += expected.moved > 0 ? 1 : 0;
    expected.first_only_in_a = found.first_only_in_a;
    expected.first_only_in_b = found.first_only_in_b;
    ASSERT_EQ(found, expected);
  }
  for (const auto kind : {difference_kind::token, difference_kind::sequence_length,
                          difference_kind::sequence_count, difference_kind::document_count}) {
    EXPECT_GT(met[kind], 5) << name(kind);
  }
  EXPECT_GT(moved, 20);
}

/// The tokens of a served sample.
std::vector<std::int64_t> tokens_of(const run& order, const sampler& ranks,
                                    const indexed_dataset& data, std::int64_t sample) {
  std::vector<piece> pieces;
  (void)order.pieces(order.at(ranks.position_of(sample)), pieces);
  std::vector<std::int64_t> all;
  for (const piece& each : pieces) {
    const token_view ids = data.sequence(each.sequence, each.first, each.tokens);
    for (std::int64_t i = 0; i < ids.size(); ++i) all.push_back(ids[i]);
  }
  return all;
}

// Runs over a dataset whose tokens are all different, so that samples are equal if and only if
// their tokens are.
TEST(DiffModel, RunsEqualComparisonOfTokens) {
  const test::temp_folder folder(test::quick_folder());
  diffed_documents all;
  std::int32_t next = 0;
  for (std::int32_t d = 0; d < 40; ++d) {
    auto& sequence = all.emplace_back().emplace_back();
    for (std::int32_t t = 0; t < 3 + d % 7; ++t) sequence.push_back(next++);
  }
  const indexed_dataset data = written(folder.path() / "data", all, false);
  const std::uint64_t seed = test::seed(20);
  int same = 0;
  int different = 0;
  for (std::uint64_t n = 0; n < 400; ++n) {
    SCOPED_TRACE(testing::Message() << "MILLRACE_SEED=" << seed << ", case " << n);
    Changes draw(seed + n);
    struct side {
      std::int64_t seed, seq_len;
      sampler_options options;
      std::int64_t end;
    };
    side a{1, 4, {}, static_cast<std::int64_t>(20 + draw.below(60))};
    a.options.batch_size = 1;
    a.options.world_size = static_cast<std::int64_t>(1 + draw.below(4));
    a.options.global_batch_size = 12;
    side b = a;
    if (draw.below(3) == 0) b.seed = 2;
    if (draw.below(5) == 0) b.seq_len = 5;
    if (draw.below(2) == 0)
      b.options.world_size = std::int64_t{6} / (1 + std::int64_t(draw.below(2)));
    if (draw.below(4) == 0) b.options.global_batch_size = 24;
    if (draw.below(4) == 0) b.options.consumed_samples = 12;
    if (draw.below(5) == 0) b.end += 3;
    b.options.consumed_samples /= b.options.world_size;
    b.options.consumed_samples *= b.options.world_size;
    const auto order_of = [&](const side& of) {
      instant_options options;
      options.seq_len = of.seq_len;
      options.seed = static_cast<std::uint64_t>(of.seed);
      options.segments = {{.first_step = 0, .sources = {{0, 1.0}}}};
      std::vector<instant_source> sources(1);
      sources[0].prefix = folder.path() / "data";
      return instant_run(sources, options);
    };
    const instant_run x = order_of(a);
    const instant_run y = order_of(b);
    const sampler ranks_x(x.end(), a.options);
    const sampler ranks_y(y.end(), b.options);
    const run_difference found = diff_runs({x, ranks_x, a.end}, {y, ranks_y, b.end},
                                           {.workers = static_cast<int>(1 + draw.below(3)),
                                            .most_listed = 1000,
                                            .block = static_cast<std::int64_t>(1 + draw.below(100)),
                                            .progress = {}});

    run_difference expected;
    expected.first = b.options.consumed_samples;
    expected.end = std::min(a.end, b.end);
    expected.only_in_b = b.end - a.end;
    std::map<std::int64_t, std::vector<std::vector<std::int64_t>>> steps_x;
    std::map<std::int64_t, std::vector<std::vector<std::int64_t>>> steps_y;
    std::vector<std::int64_t> ranks_in_a;
    std::vector<std::int64_t> ranks_in_b;
    std::vector<std::int64_t> samples;
    for (std::int64_t s = expected.first; s < expected.end; ++s) {
      const auto in_x = tokens_of(x, ranks_x, data, s);
      const auto in_y = tokens_of(y, ranks_y, data, s);
      const slot_place at_x = ranks_x.slot_of(s);
      const slot_place at_y = ranks_y.slot_of(s);
      steps_x[at_x.step].push_back(in_x);
      steps_y[at_y.step].push_back(in_y);
      if (in_x == in_y) {
        expected.served_by_other_rank += at_x.rank == at_y.rank ? 0 : 1;
        continue;
      }
      samples.push_back(s);
      ranks_in_a.push_back(at_x.rank);
      ranks_in_b.push_back(at_y.rank);
    }
    const auto ranges_of = [](const std::vector<std::int64_t>& numbers) {
      std::vector<position_range> ranges;
      for (const std::int64_t each : numbers) {
        if (!ranges.empty() && ranges.back().last == each) {
          ++ranges.back().last;
        } else {
          ranges.push_back({each, each + 1});
        }
      }
      return ranges;
    };
    const auto unique = [](std::vector<std::int64_t> numbers) {
      std::ranges::sort(numbers);
      numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
      return numbers;
    };
    expected.samples = std::ssize(samples);
    expected.first_ranges = ranges_of(samples);
    expected.sample_ranges = std::ssize(expected.first_ranges);
    expected.ranks_in_a = unique(ranks_in_a);
    expected.ranks_in_b = unique(ranks_in_b);
    expected.first_step = std::min(steps_x.begin()->first, steps_y.begin()->first);
    expected.end_step = 1 + std::max(steps_x.rbegin()->first, steps_y.rbegin()->first);
    std::vector<std::int64_t> steps;
    for (std::int64_t step = expected.first_step; step < expected.end_step; ++step) {
      auto in_x = steps_x[step];
      auto in_y = steps_y[step];
      if (in_x == in_y) continue;
      steps.push_back(step);
      std::ranges::sort(in_x);
      std::ranges::sort(in_y);
      if (in_x == in_y) ++expected.reordered;
    }
    expected.steps = std::ssize(steps);
    expected.first_step_ranges = ranges_of(steps);
    expected.step_ranges = std::ssize(expected.first_step_ranges);
    ASSERT_EQ(found.ranks_in_a, expected.ranks_in_a);
    ASSERT_EQ(found.steps, expected.steps);
    ASSERT_EQ(found, expected);
    ++(found.same() ? same : different);
  }
  EXPECT_GT(same, 20);
  EXPECT_GT(different, 100);
}

}  // namespace
}  // namespace millrace::dataset
