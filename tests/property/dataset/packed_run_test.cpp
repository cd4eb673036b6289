// SPDX-License-Identifier: Apache-2.0
//
// Tests whole runs over packed documents, including edits. A run that resumes from any state must
// serve the same samples as a run that never stopped. The samples must not depend on the number of
// ranks.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/dataset/detail/packing/packed_rows.hpp>
#include <millrace/dataset/detail/packing/packed_sample.hpp>
#include <millrace/dataset/detail/run/edited_stream.hpp>
#include <millrace/dataset/state.hpp>

#include "support/paths.hpp"
#include "support/seed.hpp"
#include "unit/dataset/write_dataset.hpp"

namespace millrace::dataset {
namespace {

constexpr std::int64_t global_batch = 12;
constexpr std::int64_t seq_len = 16;
constexpr std::int64_t run_steps = 30;

/// The random order of the rows in one epoch.
class drawn {
 public:
  drawn(std::int64_t rows, std::uint64_t seed) {
    for (std::int64_t i = 0; i < rows; ++i) to_.push_back(i);
    std::ranges::shuffle(to_, std::mt19937_64(seed));
  }
  std::int64_t operator()(std::int64_t i) const { return to_[static_cast<std::size_t>(i)]; }
  std::int64_t inverse(std::int64_t row) const { return std::ranges::find(to_, row) - to_.begin(); }

 private:
  std::vector<std::int64_t> to_;
};

using sample = std::vector<std::uint16_t>;  // the text of the sample

/// One process of a training run. It knows only the dataset and a run state. The state contains the
/// options.
class process {
 public:
  process(const indexed_dataset& data, const run_state& state)
      : data_(data),
        columns_(data),
        rows_(columns_, {.seq_len = state.seq_len, .pad_documents_to = state.pad_documents_to}),
        order_(rows_.row_count(),
               [rows = rows_.row_count(), seed = state.seed](std::int64_t epoch) {
                 return drawn(rows, seed * 1000 + static_cast<std::uint64_t>(epoch));
               }),
        edits_(
            state.edits, [](std::int64_t step) { return step * global_batch; },
            [&](const edit& e) { return positions_of(e); }),
        consumed_(state.consumed_samples) {}

  /// Returns the text of the n-th sample that the run serves.
  sample served(std::int64_t n) const {
    std::vector<packed_part> parts;
    rows_.row(order_[edits_[n]].row, parts);
    sample text(static_cast<std::size_t>(seq_len));
    std::vector<piece> pieces;
    gather_packed<std::uint16_t>(data_, parts, rows_.options().pad_documents_to, text, pieces);
    return text;
  }

  /// Returns the samples that Megatron's sampler would give to one rank in the next step.
  std::vector<sample> step_of(std::int64_t rank, std::int64_t ranks, std::int64_t micro) const {
    std::vector<sample> share;
    for (std::int64_t first = consumed_; first < consumed_ + global_batch; first += micro * ranks) {
      for (std::int64_t i = 0; i < micro; ++i) share.push_back(served(first + rank * micro + i));
    }
    return share;
  }

  const edited_stream& edits() const { return edits_; }

 private:
  std::vector<position_range> positions_of(const edit& e) const {
    std::vector<position_range> found;
    for (std::int64_t d = e.first; d < e.last; ++d) {
      for (const std::int64_t row : rows_.rows_of(d)) {
        for (std::int64_t epoch = 0; epoch * rows_.row_count() < 3 * run_steps * global_batch;
             ++epoch) {
          const std::int64_t k = order_.position({epoch, row});
          found.push_back({k, k + 1});
        }
      }
    }
    return found;
  }

  const indexed_dataset& data_;
  index_columns columns_;
  packed_rows rows_;
  packed_order<std::function<drawn(std::int64_t)>> order_;
  edited_stream edits_;
  std::int64_t consumed_;
};

class PackedRun : public testing::Test {
 protected:
  PackedRun() {
    std::mt19937_64 random(test::seed(8));
    test::documents_of<std::uint16_t> documents(120);
    std::uint16_t token = 1;
    for (auto& document : documents) {
      document.resize(1 + random() % 2);
      for (auto& sequence : document) {
        sequence.resize(random() % 15);
        for (auto& t : sequence) t = token++;
      }
    }
    test::write_dataset<std::uint16_t>(folder_ / "data", documents);
    data_ = std::make_unique<indexed_dataset>(folder_ / "data");
    state_.seed = 5;
    state_.seq_len = seq_len;
    state_.packing = "best_fit";
    state_.pad_documents_to = 2;
    state_.global_batch = global_batch;
    state_.edits = {{.first = 20, .last = 33, .why = "spike"},
                    {.kind = edit_kind::replay,
                     .unit = edit_unit::steps,
                     .first = 1,
                     .last = 3,
                     .at = 6,
                     .why = "once more"},
                    {.kind = edit_kind::block,
                     .unit = edit_unit::documents,
                     .first = 7,
                     .last = 9,
                     .source = "data",
                     .why = "leaked"}};
  }

  std::vector<sample> whole_run() const {
    const process run(*data_, state_);
    std::vector<sample> all;
    for (std::int64_t n = 0; n < run_steps * global_batch; ++n) all.push_back(run.served(n));
    return all;
  }

  test::temp_folder folder_;
  std::unique_ptr<indexed_dataset> data_;
  run_state state_;
};

TEST_F(PackedRun, GoesOnFromEveryStateAsIfItHadNotStopped) {
  const auto expected = whole_run();
  for (std::int64_t k = 0; k < run_steps * global_batch; ++k) {
    run_state saved = state_;
    saved.consumed_samples = k;
    const run_state loaded = parse_state(write_state(saved));
    require_same(loaded, state_);
    const process resumed(*data_, loaded);  // gets only the saved state and the dataset
    for (std::int64_t n = k; n < std::min<std::int64_t>(k + 3, run_steps * global_batch); ++n) {
      ASSERT_EQ(resumed.served(n), expected[static_cast<std::size_t>(n)]) << "from " << k;
    }
  }
}

TEST_F(PackedRun, IsTheSameHoweverManyRanksShareIt) {
  const auto expected = whole_run();
  std::mt19937_64 random(test::seed(9));
  // Every step has another number of ranks and another micro-batch size, because both may change
  // when a run restarts.
  constexpr std::pair<std::int64_t, std::int64_t> layouts[] = {{1, 1}, {1, 12}, {2, 3}, {3, 2},
                                                               {3, 4}, {4, 1},  {6, 2}, {12, 1}};
  for (std::int64_t step = 0; step < run_steps; ++step) {
    const auto [ranks, micro] = layouts[random() % std::size(layouts)];
    run_state saved = state_;
    saved.consumed_samples = step * global_batch;
    std::multiset<sample> of_step;
    std::set<std::string> states;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      states.insert(write_state(saved));
      const process run(*data_, parse_state(*states.begin()));
      for (sample& s : run.step_of(rank, ranks, micro)) of_step.insert(std::move(s));
    }
    EXPECT_EQ(states.size(), 1U);
    const auto first = expected.begin() + step * global_batch;
    ASSERT_EQ(of_step, std::multiset<sample>(first, first + global_batch)) << "step " << step;
  }
}

TEST_F(PackedRun, MovesNothingThatWasServedWhenEditsAreAdded) {
  const auto expected = whole_run();
  const process before(*data_, state_);
  for (const std::int64_t k : {0, 5, 25, 50, 80, 101, 200}) {
    run_state saved = state_;
    saved.consumed_samples = k;
    run_state now = saved;
    now.edits.push_back({.kind = edit_kind::block,
                         .unit = edit_unit::documents,
                         .first = 30,
                         .last = 34,
                         .since = k,
                         .source = "data",
                         .why = "leaked, too"});
    const process after(*data_, now);
    require_same(saved, now, {.saved_stream = &before.edits(), .new_stream = &after.edits()});
    require_same(saved, now);
    for (std::int64_t n = 0; n < k; ++n) {
      ASSERT_EQ(after.served(n), expected[static_cast<std::size_t>(n)]);
    }
    // From sample k on, no blocked document is served. The other documents keep their order.
    std::set<std::uint16_t> blocked;
    for (std::int64_t d = 30; d < 34; ++d) {
      for (std::int64_t i = 0; i < data_->document_tokens(d).size(); ++i) {
        blocked.insert(static_cast<std::uint16_t>(data_->document_tokens(d)[i]));
      }
    }
    ASSERT_FALSE(blocked.empty());
    std::int64_t n = k;
    for (auto s = static_cast<std::size_t>(k); s < expected.size(); ++s) {
      const bool has =
          std::ranges::any_of(expected[s], [&](std::uint16_t t) { return blocked.contains(t); });
      if (has) continue;
      ASSERT_EQ(after.served(n++), expected[s]) << "from " << k;
    }
    EXPECT_LT(n, run_steps * global_batch);
  }
}

}  // namespace
}  // namespace millrace::dataset
