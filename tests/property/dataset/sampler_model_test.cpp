// SPDX-License-Identifier: Apache-2.0
//
// Compares the sampler with a model that mirrors Megatron's loops. Covers lookups in both
// directions, ranks, batch-size ramp-ups, edits and restarts. loader/planted_sampler_bugs.py plants
// bugs in the sampler and rebuilds this test.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/dataset/detail/run/edited_stream.hpp>
#include <millrace/dataset/sampler.hpp>
#include <millrace/error.hpp>

#include "support/megatron_samplers.hpp"
#include "support/seed.hpp"
#include "unit/dataset/run/naive_stream.hpp"

namespace millrace::dataset {
namespace {

using numbers = std::vector<std::int64_t>;

struct drawn_case {
  sampler_options options;
  std::int64_t end = 0;
  std::vector<edit> edits;
  std::map<std::int64_t, numbers> blocked;  // positions by document; one document per edit
};

class drawer {
 public:
  explicit drawer(std::uint64_t seed) : random_(seed) {}

  std::int64_t from_to(std::int64_t least, std::int64_t most) {
    return least +
           static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(most - least + 1));
  }
  bool one_in(std::int64_t n) { return from_to(1, n) == 1; }

  drawn_case draw() {
    drawn_case c;
    sampler_options& o = c.options;
    const std::int64_t kind = from_to(0, 9);
    o.type = kind < 6   ? sampler_type::single
             : kind < 9 ? sampler_type::cyclic
                        : sampler_type::full_validation;
    o.batch_size = o.type == sampler_type::full_validation ? 1 : from_to(1, 4);
    o.world_size = from_to(1, 4);
    if (!one_in(3)) o.global_batch_size = o.width() * from_to(1, 5);
    c.end = from_to(o.width(), 70);
    if (o.type == sampler_type::single) {
      o.drop_last = one_in(2);
      draw_rampup(o);
      if (one_in(8)) c.end = sampler::unbounded;
      if (one_in(2)) draw_edits(c);
    }
    if (o.type == sampler_type::cyclic) o.data_sharding = one_in(2);
    return c;
  }

 private:
  void draw_rampup(sampler_options& o) {
    const std::int64_t most = o.samples_of_step() / o.width();
    if (most == 1 || !one_in(2)) return;
    const std::int64_t start = from_to(1, most - 1);
    o.rampup = {start * o.width(), (one_in(2) ? 1 : most - start) * o.width(), from_to(1, 90)};
  }

  void draw_edits(drawn_case& c) {
    const std::int64_t end = std::min<std::int64_t>(c.end, 60);
    for (std::int64_t n = from_to(1, 4); n > 0; --n) {
      edit e;
      if (one_in(4)) {
        e.kind = edit_kind::block;
        e.unit = edit_unit::documents;
        e.first = std::ssize(c.edits);
        e.last = e.first + 1;
        e.source = "data";
        numbers& of = c.blocked[e.first];
        for (std::int64_t p = 0; p < end; ++p) {
          if (one_in(9)) of.push_back(p);
        }
      } else {
        e.kind = one_in(2) ? edit_kind::skip : edit_kind::replay;
        e.unit = one_in(3) ? edit_unit::steps : edit_unit::samples;
        const bool steps = e.unit == edit_unit::steps;
        const std::int64_t most = steps ? 4 : end;
        e.first = from_to(0, most);
        e.last = e.first + (one_in(8) ? 0 : from_to(1, steps ? 2 : 12));
        if (e.kind == edit_kind::replay) e.at = e.last + from_to(0, most / 2);
      }
      if (one_in(4)) e.since = from_to(0, end);
      e.why = "reason " + std::to_string(c.edits.size());
      c.edits.push_back(e);
    }
  }

  std::mt19937_64 random_;
};

std::int64_t step_size(const sampler_options& o, std::int64_t consumed) {
  return test::megatron_global_batch(consumed, o.samples_of_step(), o.rampup);
}

std::int64_t first_sample_of(const sampler_options& o, std::int64_t step) {
  std::int64_t consumed = 0;
  for (; step > 0; --step) consumed += step_size(o, consumed);
  return consumed;
}

/// A served row, according to the model.
struct model_row {
  std::int64_t sample;
  std::int64_t position;
  slot_place slot;
  std::int64_t pass;
};

/// What Megatron's loops would serve in a run. Each rank gets at most `most_batches` micro-batches.
struct model {
  static constexpr std::int64_t most_batches = 30;

  explicit model(const drawn_case& c) : options(c.options) {
    const std::int64_t consumed = options.consumed_samples;
    const std::int64_t most = consumed + most_batches * options.width();
    total = c.end == sampler::unbounded ? most : c.end;
    if (!c.edits.empty()) {
      stream = edited(c, c.end == sampler::unbounded ? most + 1 : c.end + 800);
      total = std::min(most, std::ssize(*stream));
      if (c.end != sampler::unbounded) total = std::ssize(*stream);
    }
    for (std::int64_t rank = 0; rank < options.world_size; ++rank) add_rank(c, rank);
    std::ranges::sort(rows, {}, &model_row::sample);
  }

  /// Returns the positions of the first `count` served samples. Applies the edits to one sample at
  /// a time.
  numbers edited(const drawn_case& c, std::int64_t count) const {
    std::vector<edit> plain = c.edits;
    for (edit& e : plain) {
      if (e.unit != edit_unit::steps) continue;
      e.unit = edit_unit::samples;
      for (std::int64_t* n : {&e.first, &e.last, &e.at}) *n = first_sample_of(options, *n);
    }
    numbers positions = test::naive_stream(plain, static_cast<std::size_t>(count), 1, c.blocked);
    positions.erase(std::ranges::find_if(positions, [&](std::int64_t p) { return p >= c.end; }),
                    positions.end());
    return positions;
  }

  void add_rank(const drawn_case& c, std::int64_t rank) {
    const sampler_options& o = options;
    const bool is_single = o.type == sampler_type::single;
    std::vector<test::index_batch> yielded;
    numbers epochs;
    if (o.type == sampler_type::single) {
      yielded = test::megatron_single(total, o.consumed_samples, o.batch_size, o.world_size, rank,
                                      o.drop_last);
    } else if (o.type == sampler_type::cyclic) {
      yielded = test::megatron_cyclic(c.end, o.consumed_samples, o.batch_size, o.world_size, rank,
                                      o.data_sharding, most_batches, &epochs);
    } else {
      yielded = test::megatron_full_validation(c.end, o.world_size, rank);
      yielded.erase(yielded.begin(), yielded.begin() + o.consumed_samples / o.world_size);
    }
    batches = std::ssize(yielded);
    // Follows the training loop: Megatron's calculator determines the number of micro-batches of
    // each step.
    std::int64_t step = 0;
    std::int64_t first = 0;
    for (std::size_t t = 0; t < yielded.size(); ++t) {
      const std::int64_t sample = o.consumed_samples + static_cast<std::int64_t>(t) * o.width();
      while (sample - first >= step_size(o, first)) {
        first += step_size(o, first);
        ++step;
      }
      const std::int64_t micro_batch = (sample - first) / o.width();
      for (std::size_t row = 0; row < yielded[t].size(); ++row) {
        const auto r = static_cast<std::int64_t>(row);
        std::int64_t position = yielded[t][row];
        if (stream) position = (*stream)[static_cast<std::size_t>(position)];
        rows.push_back({sample + rank * o.batch_size + r,
                        position,
                        {step, rank, micro_batch * o.batch_size + r},
                        epochs.empty() ? 0 : epochs[t]});
      }
      std::int64_t micro_batches = step_size(o, first) / o.width();
      if (!o.drop_last && c.end != sampler::unbounded) {
        micro_batches = std::min(micro_batches, (total - first + o.width() - 1) / o.width());
      }
      numbers_of[{static_cast<std::int64_t>(t), rank}] = {
          step, micro_batch, micro_batches,
          sample +
              (is_single ? std::min(rank * o.batch_size, total - sample) : rank * o.batch_size),
          is_single ? std::min(sample + o.width(), total) : sample + o.width()};
      positions_of[{static_cast<std::int64_t>(t), rank}] = yielded[t];
      if (stream) {
        for (std::int64_t& n : positions_of[{static_cast<std::int64_t>(t), rank}]) {
          n = (*stream)[static_cast<std::size_t>(n)];
        }
      }
    }
  }

  sampler_options options;
  std::int64_t total = 0;
  std::int64_t batches = 0;  // micro-batches of each rank
  std::optional<numbers> stream;
  std::vector<model_row> rows;
  std::map<std::pair<std::int64_t, std::int64_t>, batch_number> numbers_of;  // by micro-batch, rank
  std::map<std::pair<std::int64_t, std::int64_t>, numbers> positions_of;
};

std::shared_ptr<const edited_stream> stream_of(const drawn_case& c) {
  if (c.edits.empty()) return nullptr;
  const batch_steps steps(c.options.samples_of_step(), c.options.rampup);
  return std::make_shared<const edited_stream>(
      c.edits, [&](std::int64_t step) { return steps.first_position(step); },
      [&](const edit& e) {
        std::vector<position_range> ranges;
        for (const std::int64_t p : c.blocked.at(e.first)) ranges.push_back({p, p + 1});
        return ranges;
      });
}

std::set<std::int64_t> set_of(const std::vector<position_range>& ranges) {
  std::set<std::int64_t> all;
  for (const position_range& each : ranges) {
    for (std::int64_t p = each.first; p < each.last; ++p) {
      EXPECT_TRUE(all.insert(p).second) << "position " << p << " twice";
    }
  }
  return all;
}

std::multiset<std::int64_t> all_of(const std::vector<explained_positions>& ranges) {
  std::multiset<std::int64_t> all;
  for (const explained_positions& each : ranges) {
    for (std::int64_t p = each.positions.first; p < each.positions.last; ++p) all.insert(p);
  }
  return all;
}

class compared {
 public:
  compared(const drawn_case& c, const sampler& ranks) : case_(c), ranks_(ranks), model_(c) {}

  void compare(drawer& random) {
    compare_batches();
    compare_rows();
    compare_back(random);
    compare_steps();
    if (model_.rows.empty() || case_.end == sampler::unbounded) return;
    compare_turns(random);
  }
  std::size_t rows() const { return model_.rows.size(); }

 private:
  bool is_endless() const {
    return case_.end == sampler::unbounded || case_.options.type == sampler_type::cyclic;
  }
  /// Returns an end index. The model contains all samples with smaller indices.
  std::int64_t known_end() const {
    return model_.rows.empty() ? case_.options.consumed_samples : model_.rows.back().sample + 1;
  }

  void compare_batches() const {
    if (!is_endless()) {
      ASSERT_EQ(ranks_.count(), model_.batches);
      ASSERT_EQ(ranks_.end_sample(), known_end());
    } else {
      ASSERT_EQ(ranks_.count(), sampler::unbounded);
    }
    for (const auto& [key, number] : model_.numbers_of) {
      numbers positions = {77};
      const batch_number found = ranks_.batch(key.first, key.second, positions);
      SCOPED_TRACE(testing::Message() << "micro-batch " << key.first << ", rank " << key.second);
      ASSERT_EQ(positions, model_.positions_of.at(key));
      ASSERT_EQ(found.step, number.step);
      ASSERT_EQ(found.micro_batch, number.micro_batch);
      if (case_.options.type == sampler_type::single) {
        ASSERT_EQ(found.micro_batches, number.micro_batches);
      }
      ASSERT_EQ(found.first_sample, number.first_sample);
      ASSERT_EQ(found.consumed, number.consumed);
    }
  }

  void compare_rows() const {
    for (const model_row& row : model_.rows) {
      SCOPED_TRACE(testing::Message() << "sample " << row.sample);
      ASSERT_EQ(ranks_.slot_of(row.sample), row.slot);
      ASSERT_EQ(ranks_.sample_of(row.slot), row.sample);
      ASSERT_EQ(ranks_.position_of(row.sample), row.position);
      ASSERT_EQ(ranks_.pass_of(row.sample), row.pass);
    }
  }

  void compare_back(drawer& random) const {
    const std::int64_t from = case_.options.consumed_samples;
    for (const std::int64_t before : {known_end(), random.from_to(from, known_end())}) {
      std::map<std::int64_t, std::vector<served_place>> by_position;
      std::int64_t furthest = 0;
      for (const model_row& row : model_.rows) {
        if (row.sample >= before) continue;
        by_position[row.position].push_back({row.sample, row.position, row.slot, row.pass});
        furthest = std::max(furthest, row.position + 1);
      }
      const std::int64_t end = std::min<std::int64_t>(case_.end, 200);
      numbers all;
      std::vector<served_place> all_places;
      for (std::int64_t p = 0; p < end; ++p) {
        ASSERT_EQ(ranks_.all_served(numbers{p}, before), by_position[p]) << "position " << p;
        if (!random.one_in(3)) continue;
        all.push_back(p);
        for (const served_place& each : by_position[p]) all_places.push_back(each);
      }
      std::ranges::sort(all_places, {}, &served_place::sample);
      ASSERT_EQ(ranks_.all_served(all, before), all_places);
      ASSERT_GE(ranks_.reached(before), furthest);
      if (case_.options.type == sampler_type::single && from == 0) {
        ASSERT_EQ(ranks_.reached(before), furthest);
      }
    }
  }

  /// Compares slots and whole steps with the model. A slot is the index of a row among the rows of
  /// a rank in a step. A step is whole if all its slots are served.
  void compare_steps() const {
    std::map<std::int64_t, std::int64_t> served;  // by step
    std::map<std::int64_t, std::int64_t> first;
    for (const model_row& row : model_.rows) {
      ++served[row.slot.step];
      const auto [found, is_new] = first.emplace(row.slot.step, row.sample);
      if (!is_new) found->second = std::min(found->second, row.sample);
    }
    const std::int64_t end = ranks_.end_of_whole_steps(known_end());
    for (const auto& [step, rows] : served) {
      SCOPED_TRACE(testing::Message() << "step " << step);
      const std::int64_t size = step_size(case_.options, first_sample_of(case_.options, step));
      ASSERT_EQ(ranks_.slots(step), size / case_.options.world_size);
      ASSERT_EQ(ranks_.first_whole_step() <= step && step < end, rows == size);
      if (rows == size) {
        ASSERT_EQ(ranks_.first_sample_of(step), first[step]);
      }
      for (std::int64_t rank = 0; rank < case_.options.world_size; ++rank) {
        for (std::int64_t slot = 0; slot < ranks_.slots(step); ++slot) {
          const slot_place place{step, rank, slot};
          const bool is_there = std::ranges::any_of(
              model_.rows, [&](const model_row& row) { return row.slot == place; });
          if (is_there || is_endless()) continue;
          ASSERT_THROW((void)ranks_.sample_of(place), config_error);
        }
      }
    }
  }

  void compare_turns(drawer& random) const {
    const std::int64_t from = case_.options.consumed_samples;
    const std::int64_t begin = random.from_to(from, known_end());
    const std::int64_t end = random.from_to(begin, known_end());
    SCOPED_TRACE(testing::Message() << "samples " << begin << " to " << end);
    const auto turns = ranks_.turns(begin, end);
    std::map<std::int64_t, std::set<std::int64_t>> here;  // by pass
    std::multiset<std::int64_t> again;
    for (const model_row& row : model_.rows) {
      if (row.sample < begin || end <= row.sample) continue;
      if (is_first(row)) {
        here[row.pass].insert(row.position);
      } else {
        again.insert(row.position);
      }
    }
    for (const auto& [pass, positions] : here) ASSERT_TRUE(turns.contains(pass)) << pass;
    for (const auto& [pass, found] : turns) {
      SCOPED_TRACE(testing::Message() << "pass " << pass);
      ASSERT_EQ(set_of(found.here), here[pass]);
      if (pass == 0 && case_.options.type != sampler_type::cyclic) {
        ASSERT_EQ(all_of(found.again), again);
      }
      ASSERT_EQ(all_of(found.dropped), dropped(pass, found));
      for (const explained_positions& each : found.dropped) {
        ASSERT_TRUE(each.why.starts_with("edit ") || each.why.starts_with("cyclic: "));
      }
    }
    if (model_.stream) compare_between(begin, end, all_of(turns.at(0).dropped));
  }

  bool is_first(const model_row& row) const {
    if (case_.options.type == sampler_type::full_validation) return row.sample < case_.end;
    if (!model_.stream) return true;
    const auto first = std::ranges::find(*model_.stream, row.position) - model_.stream->begin();
    return first == row.sample;
  }

  /// Returns the positions of a pass (an epoch of the sampler) that are never served. The model is
  /// complete for a pass if the run began before this pass and the model also has samples of later
  /// passes. If the model is not complete, returns the dropped positions in `found`.
  std::multiset<std::int64_t> dropped(std::int64_t pass, const position_turns& found) const {
    std::multiset<std::int64_t> all;
    if (case_.options.type == sampler_type::full_validation) return all;
    if (case_.options.type == sampler_type::single) {
      if (!model_.stream) return all;
      for (std::int64_t p = 0; p < case_.end; ++p) {
        if (std::ranges::find(*model_.stream, p) == model_.stream->end()) all.insert(p);
      }
      return all;
    }
    const std::int64_t last = model_.rows.back().pass;
    std::set<std::int64_t> served;
    for (const model_row& row : model_.rows) {
      if (row.pass == pass) served.insert(row.position);
    }
    for (std::int64_t p = 0; p < case_.end; ++p) {
      if (!served.contains(p)) all.insert(p);
    }
    const bool is_first = pass == model_.rows.front().pass;
    const bool is_whole = pass + 3 < last && (!is_first || case_.options.consumed_samples == 0);
    if (is_whole) return all;
    // The model is not complete for this pass. So only test that no dropped position was served.
    for (const std::int64_t p : all_of(found.dropped)) EXPECT_TRUE(all.contains(p)) << p;
    return all_of(found.dropped);
  }

  /// Tests `dropped_between(begin, end)`, which must return the dropped positions between two
  /// limits. The lower limit is the highest position that samples before `begin` serve. The upper
  /// limit is the position of the first sample at or after `end` that is not a replay.
  void compare_between(std::int64_t begin, std::int64_t end,
                       const std::multiset<std::int64_t>& dropped) const {
    const numbers& stream = *model_.stream;
    std::int64_t from = 0;
    for (std::int64_t n = 0; n < begin; ++n) {
      from = std::max(from, stream[static_cast<std::size_t>(n)] + 1);
    }
    std::int64_t to = case_.end;
    for (std::int64_t n = end; n < std::ssize(stream); ++n) {
      const std::int64_t p = stream[static_cast<std::size_t>(n)];
      if (std::ranges::find(stream, p) - stream.begin() != n) continue;
      to = p;
      break;
    }
    std::multiset<std::int64_t> expected;
    for (const std::int64_t p : dropped) {
      if (from <= p && p < to) expected.insert(p);
    }
    std::multiset<std::int64_t> found;
    for (const position_range& each : ranks_.dropped_between(begin, end)) {
      for (std::int64_t p = each.first; p < each.last; ++p) found.insert(p);
    }
    ASSERT_EQ(found, expected);
  }

  const drawn_case& case_;
  const sampler& ranks_;
  model model_;
};

/// Draws the first sample of a run. It may be inside a step or a pass, or at a point where the
/// number of ranks changed.
std::int64_t draw_start(drawer& random, const drawn_case& c) {
  const sampler_options& o = c.options;
  if (!random.one_in(2)) return 0;
  if (o.type == sampler_type::cyclic) {
    return random.from_to(0, 3 * (c.end / o.width())) * o.width();
  }
  if (o.type == sampler_type::full_validation) {
    return random.from_to(0, (c.end - 1) / o.world_size) * o.world_size;
  }
  const bool may_be_anywhere = o.global_batch_size == 0 && !o.rampup;
  const std::int64_t unit = may_be_anywhere && random.one_in(2) ? 1 : o.width();
  return random.from_to(0, std::min<std::int64_t>(c.end, 60) / unit) * unit;
}

TEST(SamplerModel, AgreesForwardAndBack) {
  constexpr int cases = 1200;
  const std::uint64_t first_seed = test::seed(400);
  std::size_t rows = 0;
  std::map<std::string, int> seen;
  for (int i = 0; i < cases; ++i) {
    const std::uint64_t seed = first_seed + static_cast<std::uint64_t>(i);
    drawer random(seed);
    drawn_case c = random.draw();
    sampler_options& o = c.options;
    o.consumed_samples = draw_start(random, c);
    std::optional<sampler> ranks;
    try {
      ranks.emplace(c.end, o, stream_of(c));
    } catch (const config_error&) {  // e.g. an edit was added after its replay had ended
      for (edit& e : c.edits) e.since = 0;
      o.consumed_samples = 0;
      ranks.emplace(c.end, o, stream_of(c));
    }
    SCOPED_TRACE(testing::Message()
                 << "MILLRACE_SEED=" << seed << ": " << name(o.type) << ", " << c.end
                 << " positions, " << o.world_size << " ranks of " << o.batch_size
                 << " rows, global batch " << o.global_batch_size << ", consumed "
                 << o.consumed_samples << ", " << c.edits.size() << " edits");
    compared each(c, *ranks);
    each.compare(random);
    if (testing::Test::HasFailure()) return;
    rows += each.rows();
    ++seen[name(o.type)];
    if (o.rampup) ++seen["ramp-up"];
    if (!o.drop_last) ++seen["no drop_last"];
    if (o.consumed_samples > 0) ++seen["later start"];
    if (o.consumed_samples % o.width() != 0) ++seen["start inside a micro-batch"];
    if (c.end == sampler::unbounded) ++seen["no end"];
    if (!o.data_sharding && o.consumed_samples >= c.end) ++seen["unsharded, in a later pass"];
    if (!c.edits.empty()) ++seen["edits"];
  }
  std::cout << rows << " rows;";
  for (const auto& [what, count] : seen) std::cout << ' ' << what << ": " << count << ';';
  std::cout << '\n';
  for (const char* what :
       {"single", "cyclic", "full_validation", "ramp-up", "no drop_last", "later start",
        "start inside a micro-batch", "no end", "unsharded, in a later pass", "edits"}) {
    EXPECT_GT(seen[what], 10) << what;
  }
}

}  // namespace
}  // namespace millrace::dataset
