// SPDX-License-Identifier: Apache-2.0
//
// Compares what four implementations serve or predict, row by row and for every rank:
// - `batch_loader`, which serves the rows
// - `batch_reader`, which reads single batches in any order
// - `run_places`, the code of `inspect_dataset where`, which maps steps, ranks and slots to
//   documents and back
// - a model of Megatron's samplers
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/dataset/detail/run/edited_stream.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/dataset/run.hpp>
#include <millrace/dataset/sampler.hpp>
#include <millrace/dataset/where.hpp>
#include <millrace/loader/batch.hpp>
#include <millrace/loader/batch_loader.hpp>
#include <millrace/loader/options.hpp>

#include "support/draw_served_case.hpp"
#include "support/megatron_samplers.hpp"
#include "support/seed.hpp"
#include "support/served_case.hpp"
#include "unit/dataset/run/naive_stream.hpp"

namespace millrace::loader {
namespace {

using test::case_batch;
using test::case_order;
using test::case_row;
using test::served_case;
using served_ranks = std::vector<std::vector<case_batch>>;  // index: rank

constexpr std::int64_t no_end = std::numeric_limits<std::int64_t>::max();

/// Creates a sampler with the same options as the loaders of the case. So `where` assigns samples
/// to ranks as the loaders do.
dataset::sampler sampler_of_case(const served_case& c, const dataset::run& order,
                                 const std::vector<std::filesystem::path>& prefixes,
                                 const std::vector<dataset::edit>& edits) {
  std::shared_ptr<const dataset::edited_stream> stream;
  if (!edits.empty()) {
    stream = std::make_shared<const dataset::edited_stream>(
        dataset::edited_positions(order, edits, test::steps_of(c)));
  }
  return {order.end(), sampler_of(test::options_of(c, prefixes, 0)), stream};
}

bool starts_inside_micro_batch(const served_case& c) {
  return c.consumed_samples % c.width() != 0;
}

/// Returns true for a cyclic run without data sharding if ranks have unequal numbers of batches per
/// epoch and the run starts after the first epoch. In an uninterrupted run, ranks with one more
/// batch per epoch get ahead of the others. After such a start, no rank is ahead at first.
bool restarts_uneven_cyclic(const served_case& c, std::int64_t samples) {
  if (c.sampler != sampler_type::cyclic || c.data_sharding) return false;
  const std::int64_t active = samples - samples % c.width();
  const bool uneven = samples / c.batch_size * c.batch_size != active;
  return uneven && c.consumed_samples >= active;
}

// --- rows -----------------------------------------------------------------------------------

/// A dataset that is opened with `indexed_dataset`. The loader uses other code to read the datasets
/// of a run.
struct opened_source {
  explicit opened_source(const std::filesystem::path& prefix) : data(prefix) {
    document_of.resize(static_cast<std::size_t>(data.sequence_count()), -1);
    for (std::int64_t d = 0; d < data.document_count(); ++d) {
      const dataset::document_range sequences = data.document(d);
      for (std::int64_t s = sequences.first; s < sequences.last; ++s) {
        document_of[static_cast<std::size_t>(s)] = d;
      }
    }
  }
  dataset::indexed_dataset data;
  std::vector<std::int64_t> document_of;  // index: sequence
};

/// The row that must result from the pieces that `where` lists.
struct expected_row {
  std::vector<std::int64_t> text;
  std::vector<std::int32_t> boundaries = {0};
  std::vector<std::int32_t> document_ends = {0};
};

expected_row row_from(const served_case& c, const opened_source& source,
                      const dataset::served_sample& served, std::size_t text_len) {
  expected_row row;
  row.text.resize(text_len);
  const auto length = static_cast<std::int32_t>(c.seq_len);
  const dataset::document_piece* before = nullptr;
  for (const dataset::document_piece& each : served.pieces) {
    const dataset::piece& p = each.tokens;
    EXPECT_EQ(each.document, source.document_of[static_cast<std::size_t>(p.sequence)]);
    const dataset::token_view tokens = source.data.sequence(p.sequence, p.first, p.tokens);
    for (std::int64_t t = 0; t < p.tokens; ++t) {
      const auto at = static_cast<std::size_t>(each.at + t);
      if (at < row.text.size()) row.text[at] = tokens[t];
      EXPECT_LT(at, row.text.size());
    }
    bool joined = false;
    if (before != nullptr) {
      const dataset::piece& last = before->tokens;
      joined = each.document == before->document &&
               (p.sequence == last.sequence ? p.first == last.first + last.tokens
                                            : p.sequence > last.sequence);
    }
    const auto begin = static_cast<std::int32_t>(each.at);
    const auto end = static_cast<std::int32_t>(each.at + p.tokens);
    if (before != nullptr && !joined && begin < length) row.boundaries.push_back(begin);
    if (before != nullptr && joined) {
      row.document_ends.back() = end;
    } else {
      row.document_ends.push_back(end);
    }
    before = &each;
  }
  row.boundaries.push_back(length);
  return row;
}

std::vector<std::int32_t> without_repeats(std::vector<std::int32_t> boundaries) {
  boundaries.erase(std::unique(boundaries.begin(), boundaries.end()), boundaries.end());
  return boundaries;
}

/// Returns the document boundaries of a row by Megatron's rules. Every sequence counts as a
/// document, even an empty one, which `where` does not list. The last document includes the
/// padding. If the row has only the first token of a document, as its extra token, this document is
/// left out.
std::vector<std::int32_t> megatron_boundaries(const std::vector<dataset::piece>& pieces,
                                              std::int64_t seq_len, bool extra_token) {
  std::int64_t limit = extra_token ? -1 : 0;
  for (const dataset::piece& p : pieces) limit += p.tokens;
  for (const bool with_empty : {true, false}) {
    std::vector<std::int32_t> boundaries = {0};
    std::int64_t at = 0;
    for (const dataset::piece& p : pieces) {
      at += p.tokens;
      const auto end = static_cast<std::int32_t>(std::min(at, limit));
      if (end != boundaries.back() || (with_empty && p.tokens == 0)) boundaries.push_back(end);
    }
    if (boundaries.back() < seq_len) {
      if (boundaries.size() == 1) boundaries.push_back(0);
      boundaries.back() = static_cast<std::int32_t>(seq_len);
    }
    if (std::ssize(boundaries) <= seq_len + 1) return boundaries;
  }
  return {};
}

std::string pieces_text(const dataset::served_sample& served) {
  std::string text = "pieces (at, document, sequence, first, tokens)";
  for (const dataset::document_piece& each : served.pieces) {
    text += " (" + std::to_string(each.at);
    for (const std::int64_t n :
         {each.document, each.tokens.sequence, each.tokens.first, each.tokens.tokens}) {
      text += ", " + std::to_string(n);
    }
    text += ")";
  }
  return text;
}

/// Compares the three implementations for one case.
class compared_case {
 public:
  compared_case(const served_case& c, const served_ranks& ranks,
                const std::vector<std::filesystem::path>& prefixes,
                const std::vector<dataset::edit>& edits, const dataset::run& order)
      : case_(c),
        ranks_(ranks),
        prefixes_(prefixes),
        edits_(edits),
        order_(order),
        sampler_(sampler_of_case(c, order, prefixes, edits)),
        where_(order, sampler_) {
    for (const auto& prefix : prefixes) {
      sources_.push_back(std::make_unique<opened_source>(prefix));
    }
  }

  void compare() {
    compare_with_megatron();
    if (testing::Test::HasFatalFailure()) return;
    compare_forward();
    compare_backward();
  }

  std::int64_t rows() const { return rows_; }
  std::int64_t places() const { return places_; }

 private:
  using number_list = std::vector<std::int64_t>;

  std::vector<dataset::piece> pieces_at(std::int64_t position) const {
    std::vector<dataset::piece> pieces;
    (void)order_.pieces(order_.at(position), pieces);
    return pieces;
  }
  std::int64_t slot_of(const case_row& row) const {
    return row.micro_batch * case_.batch_size + row.row;
  }
  /// Returns the index after the last served sample. The run may have more samples, because the
  /// case limits the number of batches, or `drop_last` drops the rest.
  std::int64_t served_end() const {
    std::int64_t samples = 0;
    for (const auto& batches : ranks_) {
      for (const case_batch& batch : batches) samples += std::ssize(batch.rows);
    }
    return case_.consumed_samples + samples;
  }

  // --- Megatron ---

  /// Returns the position of each served sample. Computes the positions by skipping and replaying
  /// samples one at a time. Returns nullopt if there are no edits.
  std::optional<number_list> naive_positions(std::int64_t wanted) const {
    if (edits_.empty()) return std::nullopt;
    std::vector<dataset::edit> plain = edits_;
    std::map<std::int64_t, number_list> blocked;  // each block edit has its own document number
    std::int64_t replayed = 0;
    for (std::size_t i = 0; i < plain.size(); ++i) {
      dataset::edit& e = plain[i];
      if (e.kind == dataset::edit_kind::block) {
        const auto number = static_cast<std::int64_t>(i);
        blocked[number] = positions_of_documents(e);
        e.first = number;
        e.last = number + 1;
      } else if (e.unit == dataset::edit_unit::steps) {
        e.unit = dataset::edit_unit::samples;
        for (std::int64_t* n : {&e.first, &e.last, &e.at}) *n = first_sample_of(*n);
      }
      if (e.kind == dataset::edit_kind::replay) replayed += e.last - e.first;
    }
    const bool ends = order_.end() != no_end;
    const std::int64_t count = ends ? order_.end() + replayed + 1 : wanted;
    number_list stream = test::naive_stream(plain, static_cast<std::size_t>(count), 1, blocked);
    const auto over = std::ranges::find_if(
        stream, [&](std::int64_t position) { return position >= order_.end(); });
    stream.erase(over, stream.end());
    return stream;
  }

  number_list positions_of_documents(const dataset::edit& e) const {
    number_list positions;
    for (std::int64_t n = 0; n < order_.end(); ++n) {
      const auto source = static_cast<std::size_t>(order_.at(n).source);
      if (prefixes_[source] != e.source) continue;
      const auto pieces = pieces_at(n);
      const bool holds = std::ranges::any_of(pieces, [&](const dataset::piece& p) {
        const std::int64_t d = sources_[source]->document_of[static_cast<std::size_t>(p.sequence)];
        return p.tokens > 0 && e.first <= d && d < e.last;
      });
      if (holds) positions.push_back(n);
    }
    return positions;
  }

  std::int64_t samples_of_step_at(std::int64_t consumed) const {
    return test::megatron_global_batch(consumed, case_.step_samples(), case_.rampup);
  }
  std::int64_t first_sample_of(std::int64_t step) const {
    std::int64_t consumed = 0;
    for (; step > 0; --step) consumed += samples_of_step_at(consumed);
    return consumed;
  }

  void compare_with_megatron() const {
    const served_case& c = case_;
    const std::int64_t most = c.consumed_samples + c.most_batches * c.width();
    const std::optional<number_list> stream = naive_positions(most);
    std::int64_t total = order_.end();
    if (stream) total = std::ssize(*stream);
    if (order_.end() == no_end) total = most;
    for (std::int64_t rank = 0; rank < c.world_size; ++rank) {
      SCOPED_TRACE(testing::Message() << "rank " << rank);
      std::vector<test::index_batch> expected;
      if (c.sampler == sampler_type::single) {
        expected = test::megatron_single(total, c.consumed_samples, c.batch_size, c.world_size,
                                         rank, c.drop_last);
      } else if (c.sampler == sampler_type::cyclic) {
        expected =
            test::megatron_cyclic(total, c.consumed_samples, c.batch_size, c.world_size, rank,
                                  c.data_sharding, static_cast<std::size_t>(c.most_batches));
      } else {
        expected = test::megatron_full_validation(total, c.world_size, rank);
        expected.erase(expected.begin(), expected.begin() + c.consumed_samples / c.world_size);
      }
      if (std::ssize(expected) > c.most_batches) {
        expected.resize(static_cast<std::size_t>(c.most_batches));
      }
      const auto& served = ranks_[static_cast<std::size_t>(rank)];
      ASSERT_EQ(served.size(), expected.size()) << "micro-batches";
      for (std::size_t t = 0; t < served.size(); ++t) {
        for (std::int64_t& n : expected[t]) {
          if (stream) n = (*stream)[static_cast<std::size_t>(n)];
        }
        number_list found;
        for (const case_row& row : served[t].rows) found.push_back(row.position);
        ASSERT_EQ(found, expected[t]) << "micro-batch " << t;
      }
      compare_steps(served, total);
      compare_hybrid(served, total, rank);
    }
  }

  /// Compares the steps with the training loop, in which Megatron's calculator determines the
  /// number of micro-batches of each step.
  void compare_steps(const std::vector<case_batch>& served, std::int64_t total) const {
    std::int64_t step = 0;
    std::int64_t first = 0;
    for (std::size_t t = 0; t < served.size(); ++t) {
      const std::int64_t sample =
          case_.consumed_samples + static_cast<std::int64_t>(t) * case_.width();
      while (sample - first >= samples_of_step_at(first)) {
        first += samples_of_step_at(first);
        ++step;
      }
      std::int64_t micro_batches = samples_of_step_at(first) / case_.width();
      if (!case_.drop_last && order_.end() != no_end) {
        const std::int64_t left = (total - first + case_.width() - 1) / case_.width();
        micro_batches = std::min(micro_batches, left);
      }
      ASSERT_EQ(served[t].step, step) << "micro-batch " << t;
      ASSERT_EQ(served[t].micro_batch, (sample - first) / case_.width()) << "micro-batch " << t;
      ASSERT_EQ(served[t].micro_batches, micro_batches) << "micro-batch " << t;
    }
  }

  /// Compares the rows with Megatron's loop for hybrid context parallelism. In that loop, a rank
  /// takes all its micro-batches of a step at once.
  void compare_hybrid(const std::vector<case_batch>& served, std::int64_t total,
                      std::int64_t rank) const {
    const served_case& c = case_;
    if (c.sampler != sampler_type::single || c.rampup || !c.drop_last ||
        c.consumed_samples % c.step_samples() != 0) {
      return;
    }
    const auto steps = test::megatron_hybrid(total, c.consumed_samples, c.batch_size,
                                             c.step_samples(), c.world_size, rank);
    std::map<std::int64_t, number_list> of_step;
    for (const case_batch& batch : served) {
      for (const case_row& row : batch.rows) of_step[batch.step].push_back(row.sample);
    }
    const auto slots = static_cast<std::size_t>(c.step_samples() / c.world_size);
    for (std::size_t t = 0; t < steps.size(); ++t) {
      const number_list& found =
          of_step[c.consumed_samples / c.step_samples() + static_cast<std::int64_t>(t)];
      if (found.size() < slots && std::ssize(served) == c.most_batches) break;
      ASSERT_EQ(found, steps[t]) << "step list " << t;
    }
  }

  // --- where ---

  void compare_forward() {
    for (std::int64_t rank = 0; rank < case_.world_size; ++rank) {
      for (const case_batch& batch : ranks_[static_cast<std::size_t>(rank)]) {
        for (const case_row& row : batch.rows) {
          compare_row(rank, row);
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }

  void compare_row(std::int64_t rank, const case_row& row) {
    const dataset::slot_place slot{row.step, rank, slot_of(row)};
    SCOPED_TRACE(testing::Message() << "step " << slot.step << ", rank " << slot.rank << ", slot "
                                    << slot.slot << ", sample " << row.sample);
    const dataset::served_sample served = where_.at(slot);
    ASSERT_EQ(served.served, row.sample);
    ASSERT_EQ(served.position, row.position);
    ASSERT_EQ(served.sample.source, row.source);
    const opened_source& source = *sources_[static_cast<std::size_t>(row.source)];
    expected_row expected = row_from(case_, source, served, row.text.size());
    if (case_.order == case_order::megatron) {
      expected.boundaries = without_repeats(
          megatron_boundaries(pieces_at(row.position), case_.seq_len, case_.extra_token));
    }
    ASSERT_EQ(row.text, expected.text);
    ASSERT_EQ(without_repeats(row.boundaries), expected.boundaries)
        << pieces_text(served) << ", real " << row.real << ", padding " << served.padding;
    if (case_.order == case_order::packed) {
      ASSERT_EQ(row.document_ends, expected.document_ends);
    }
    ASSERT_EQ(row.real + served.padding, std::ssize(row.text));
    ++rows_;
    for (const dataset::document_piece& each : served.pieces) {
      auto& list = served_places_[{row.source, each.document}];
      if (list.empty() || list.back().served != row.sample) {
        list.push_back({slot, row.sample, row.position, row.source, served.k, each.at});
      }
      list.back().tokens += each.tokens.tokens;
      list.back().label_only = list.back().at >= case_.seq_len;
    }
  }

  /// For every document, served or not, `where` must list exactly the places where the document was
  /// served. If a blend has a dataset several times, the test also asks `where` by prefix. The
  /// answer must then cover all sources that use the dataset.
  void compare_backward() {
    // The test serves only a part of a run that has no end or uses the cyclic sampler.
    const std::int64_t end = sampler_.end_sample() == no_end ? served_end() : no_end;
    std::map<std::pair<std::filesystem::path, std::int64_t>, std::vector<dataset::appearance>>
        by_prefix;
    for (std::size_t s = 0; s < sources_.size(); ++s) {
      for (std::int64_t d = 0; d < sources_[s]->data.document_count(); ++d) {
        SCOPED_TRACE(testing::Message() << "document " << d << " of source " << s);
        auto& expected = served_places_[{static_cast<std::int64_t>(s), d}];
        std::ranges::sort(expected, {}, &dataset::appearance::served);
        places_ += std::ssize(expected);
        expect_same(where_.of(static_cast<std::int64_t>(s), d, end), expected);
        if (testing::Test::HasFatalFailure()) return;
        auto& of_prefix = by_prefix[{prefixes_[s], d}];
        of_prefix.insert(of_prefix.end(), expected.begin(), expected.end());
      }
    }
    if (by_prefix.size() == served_places_.size()) return;  // no dataset occurs twice
    for (auto& [key, expected] : by_prefix) {
      SCOPED_TRACE(testing::Message() << "document " << key.second << " of " << key.first);
      std::ranges::sort(expected, {}, &dataset::appearance::served);
      expect_same(where_.of(key.first, key.second, end), expected);
      if (testing::Test::HasFatalFailure()) return;
    }
  }

  static void expect_same(const std::vector<dataset::appearance>& found,
                          const std::vector<dataset::appearance>& expected) {
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      ASSERT_EQ(found[i], expected[i]) << "sample " << expected[i].served;
    }
  }

  const served_case& case_;
  const served_ranks& ranks_;
  const std::vector<std::filesystem::path>& prefixes_;
  const std::vector<dataset::edit>& edits_;
  const dataset::run& order_;
  dataset::sampler sampler_;
  dataset::run_places where_;
  std::vector<std::unique_ptr<opened_source>> sources_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<dataset::appearance>>
      served_places_;  // keys: source and document
  std::int64_t rows_ = 0;
  std::int64_t places_ = 0;
};

/// Reads the served batches of all ranks in another order, with one reader.
void expect_reader_agrees(const served_case& c, const test::drawn_case& drawn,
                          const served_ranks& ranks) {
  loader_options options = test::options_of(c, drawn.prefixes, 0);
  options.threads = 1;
  batch_reader reader(drawn.run, options);
  std::size_t longest = 0;
  for (const auto& batches : ranks) longest = std::max(longest, batches.size());
  for (std::size_t t = longest; t-- > 0;) {
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      if (t >= ranks[rank].size()) continue;
      const case_batch& served = ranks[rank][t];
      SCOPED_TRACE(testing::Message() << "micro-batch " << t << " of rank " << rank);
      const batch read = reader.at({.step = served.step,
                                    .rank = static_cast<std::int64_t>(rank),
                                    .micro_batch = served.micro_batch});
      ASSERT_TRUE(test::contents_of(read) == served);
    }
  }
}

class ServedRows : public testing::TestWithParam<case_order> {};

TEST_P(ServedRows, AreThoseOfWhereAndOfMegatronsSamplers) {
  constexpr int cases = 200;
  const std::uint64_t first_seed = test::seed(100);
  std::int64_t rows = 0;
  std::int64_t places = 0;
  std::map<std::string, int> seen;
  for (int i = 0; i < cases; ++i) {
    // Each case has its own seed, so that it can be replayed alone.
    const std::uint64_t seed = first_seed + static_cast<std::uint64_t>(i);
    test::split_mix random(seed * 4 + static_cast<std::uint64_t>(GetParam()));
    const auto drawn = test::draw_case(random, GetParam());
    const served_case& c = drawn->config;
    SCOPED_TRACE(testing::Message() << "MILLRACE_SEED=" << seed << ": " << test::case_text(c));
    served_ranks ranks;
    for (std::int64_t rank = 0; rank < c.world_size; ++rank) {
      ranks.push_back(test::serve(c, drawn->run, drawn->prefixes, rank));
    }
    expect_reader_agrees(c, *drawn, ranks);
    const auto edits = test::edits_of(c, drawn->prefixes);
    compared_case compared(c, ranks, drawn->prefixes, edits, *drawn->run);
    compared.compare();
    rows += compared.rows();
    places += compared.places();
    if (restarts_uneven_cyclic(c, drawn->run->end())) ++seen["restarted in uneven epochs"];
    if (HasFailure()) return;
    ++seen[test::case_samplers[static_cast<std::size_t>(c.sampler)]];
    if (c.data.size() > 1) ++seen["several datasets"];
    if (std::ranges::any_of(c.data, [](const auto& each) { return each.same_as >= 0; })) {
      ++seen["a dataset twice"];
    }
    if (c.sampler == sampler_type::full_validation && c.global_batch_size > c.world_size) {
      ++seen["full validation in larger steps"];
    }
    if (c.rampup) ++seen["ramp-up"];
    if (!c.edits.empty()) ++seen["edits"];
    if (!c.drop_last) ++seen["no drop_last"];
    if (c.consumed_samples > 0) ++seen["later start"];
    if (starts_inside_micro_batch(c)) ++seen["start inside a micro-batch"];
    if (c.blend.size() > 1) ++seen["schedule"];
  }
  std::cout << rows << " rows, " << places << " places of documents;";
  for (const auto& [what, count] : seen) std::cout << ' ' << what << ": " << count << ';';
  std::cout << '\n';
  // The random cases must include these kinds, otherwise the test would not cover them.
  EXPECT_GT(rows, 10000);
  for (const char* what : {"single", "cyclic", "full_validation", "ramp-up", "edits",
                           "no drop_last", "later start", "start inside a micro-batch",
                           "restarted in uneven epochs", "full validation in larger steps"}) {
    EXPECT_GT(seen[what], 0) << what;
  }
  if (GetParam() != case_order::stored) {
    EXPECT_GT(seen["a dataset twice"], 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Orders, ServedRows,
                         testing::Values(case_order::stored, case_order::megatron,
                                         case_order::instant, case_order::packed),
                         [](const auto& order) {
                           return std::string(
                               test::case_orders[static_cast<std::size_t>(order.param)]);
                         });

}  // namespace
}  // namespace millrace::loader
