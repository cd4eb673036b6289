// SPDX-License-Identifier: Apache-2.0
//
// Compares the rows that a loader serves to a context-parallel rank with parts of whole rows.
// Functions of `dataset` make the whole rows, and a naive loop cuts out the rank's part.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <random>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/dataset/packed_run.hpp>
#include <millrace/dataset/state.hpp>
#include <millrace/loader/batch_loader.hpp>
#include <millrace/loader/loader_report.hpp>

#include "support/config_refusal.hpp"
#include "support/context_places.hpp"
#include "support/loader_runs.hpp"
#include "support/paths.hpp"
#include "support/seed.hpp"

namespace millrace::loader {
namespace {

using testing::HasSubstr;

constexpr std::int64_t eod = 7;

/// Writes a dataset whose ids are all below 40, so that many tokens are `eod`.
template <class Token>
std::filesystem::path store_with_eods(const std::filesystem::path& prefix,
                                      std::mt19937_64& random) {
  test::documents_of<Token> documents;
  for (int d = 0; d < 50; ++d) {
    auto& document = documents.emplace_back();
    for (auto s = 1 + random() % 3; s > 0; --s) {
      auto& sequence = document.emplace_back();
      for (auto t = random() % 30; t > 0; --t)
        sequence.push_back(static_cast<Token>(random() % 40));
    }
  }
  documents.push_back({{1, 2, 3, 4}});
  test::write_dataset<Token>(prefix, documents);
  return prefix;
}

template <class T>
std::vector<T> at_places(const std::vector<T>& whole, const std::vector<std::int64_t>& places) {
  std::vector<T> part;
  part.reserve(places.size());
  for (const std::int64_t place : places) part.push_back(whole[static_cast<std::size_t>(place)]);
  return part;
}

struct context_case {
  test::run_request request;
  std::int64_t cp = 2;
  bool wide = false;
  loader_options options;
};

context_case draw_case(std::mt19937_64& random) {
  const auto choose = [&](std::int64_t count) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(count));
  };
  context_case c;
  c.cp = 2 + choose(3);
  c.wide = choose(2) == 0;
  c.request.kind = static_cast<test::run_kind>(choose(3));
  c.request.blend = choose(2) == 0;
  c.request.seq_len = 2 * c.cp * (1 + choose(9));
  c.request.pad_documents_to = 2 * c.cp;
  c.request.samples = 48;
  c.options.batch_size = 1 + choose(3);
  c.options.threads = 1 + choose(2);
  c.options.fields = test::all_fields;
  c.options.fields.cu_seqlens = c.request.kind == test::run_kind::packed;
  c.options.fields.cu_seqlens_padded = c.options.fields.cu_seqlens && choose(2) == 0;
  c.options.boundaries = true;
  c.options.context_parallel = c.cp;
  c.options.field_rules.eod = choose(4) == 0 ? dataset::no_token : eod;
  c.options.field_rules.reset_position_ids = choose(2) == 0;
  c.options.field_rules.eod_mask_loss = choose(2) == 0;
  c.options.positions_at_boundaries = choose(3) == 0;
  const std::int64_t pads[] = {-1, -1, eod, 11};
  c.options.field_rules.pad = pads[choose(4)];
  return c;
}

std::vector<std::filesystem::path> store_case(const context_case& c,
                                              const test::temp_folder& folder,
                                              std::mt19937_64& random) {
  std::vector<std::filesystem::path> prefixes;
  for (const char* name : {"a", "b", "c"}) {
    prefixes.push_back(c.wide ? store_with_eods<std::int32_t>(folder / name, random)
                              : store_with_eods<std::uint16_t>(folder / name, random));
  }
  return prefixes;
}

/// Returns the whole row at a position, with all its fields.
test::served_row whole_row(const context_case& c, const test::any_run& run, std::int64_t position) {
  test::served_row row = test::row_at(run, position, c.options.field_rules);
  if (c.options.positions_at_boundaries) {
    dataset::fill_position_ids<std::int64_t>(row.boundaries, row.position_ids);
  }
  return row;
}

/// Returns the ends of the pieces that are divided among the ranks. A packed row has one piece per
/// document. Any other row is a single piece.
std::vector<std::int64_t> cut_ends(const context_case& c, const test::served_row& row) {
  if (c.request.kind != test::run_kind::packed) return {c.request.seq_len};
  return {row.boundaries.begin() + 1, row.boundaries.end()};
}

/// Returns how many tokens of a row a rank needs: its inputs and their labels. If position ids
/// restart after eods, the rank also needs every earlier token of the same document. (A row that is
/// not packed counts as one document.)
std::size_t tokens_needed(const context_case& c, const test::served_row& row,
                          const std::vector<std::int64_t>& places) {
  const std::vector<std::int64_t> ends = cut_ends(c, row);
  const bool by_value = c.options.field_rules.reset_position_ids &&
                        c.options.field_rules.eod != dataset::no_token &&
                        !c.options.positions_at_boundaries;
  std::set<std::int64_t> needed;
  for (const std::int64_t place : places) {
    std::size_t d = 0;
    while (place >= ends[d]) ++d;
    const std::int64_t begin = d == 0 ? 0 : ends[d - 1];
    const std::int64_t real = row.document_ends.empty() ? row.real : row.document_ends[d + 1];
    for (std::int64_t i = by_value ? begin : place; i <= place + 1 && i < real; ++i) {
      needed.insert(i);
    }
  }
  return needed.size();
}

void expect_rank(const context_case& c, const test::any_run& run) {
  const std::unique_ptr<batch_loader> loader = test::loader_of(run, c.options);
  const std::int64_t length = c.request.seq_len / c.cp;
  std::size_t needed = 0;
  std::int64_t rows = 0;
  while (const auto batch = loader->next()) {
    std::vector<std::int32_t> joined = {0};
    std::vector<std::int32_t> unpadded = {0};
    std::int32_t longest = 0;
    for (std::int64_t r = 0; r < batch->layout().rows(); ++r, ++rows) {
      const std::int64_t position = batch->positions()[static_cast<std::size_t>(r)];
      SCOPED_TRACE(testing::Message() << "row " << r << ", position " << position);
      const test::served_row whole = whole_row(c, run, position);
      const auto places = test::places_of_rank(cut_ends(c, whole), c.cp, c.options.cp_rank);
      const test::served_row found = test::row_of(*batch, r);
      ASSERT_EQ(std::ssize(places), length);
      EXPECT_EQ(found.text, at_places(whole.text, places));
      EXPECT_EQ(found.tokens, at_places(whole.tokens, places));
      EXPECT_EQ(found.labels, at_places(whole.labels, places));
      EXPECT_EQ(found.loss_mask, at_places(whole.loss_mask, places));
      EXPECT_EQ(found.position_ids, at_places(whole.position_ids, places));
      EXPECT_EQ(found.boundaries, whole.boundaries);
      EXPECT_EQ(found.document_ends, whole.document_ends);
      if (testing::Test::HasFailure()) return;
      needed += tokens_needed(c, whole, places);
      for (std::size_t i = 1; i < whole.boundaries.size(); ++i) {
        joined.push_back(static_cast<std::int32_t>(r * c.request.seq_len) + whole.boundaries[i]);
        longest = std::max(longest, whole.boundaries[i] - whole.boundaries[i - 1]);
        if (whole.document_ends.empty()) continue;
        unpadded.push_back(unpadded.back() + whole.document_ends[i] - whole.boundaries[i - 1]);
      }
    }
    if (!c.options.fields.cu_seqlens) continue;
    const std::vector found(batch->cu_seqlens().begin(), batch->cu_seqlens().end());
    if (c.options.fields.cu_seqlens_padded) {
      EXPECT_EQ(found, unpadded);
      EXPECT_THAT(batch->cu_seqlens_padded(), testing::ElementsAreArray(joined));
    } else {
      EXPECT_EQ(found, joined);
    }
    EXPECT_EQ(batch->max_seqlen(), longest);
  }
  EXPECT_GT(rows, 0);
  EXPECT_EQ(loader->observe().times.bytes, needed * (c.wide ? 4 : 2)) << "bytes read";
}

TEST(ContextParallelLoader, ServesEachRankItsPartOfTheWholeRows) {
  std::mt19937_64 random(test::seed(1));
  for (int round = 0; round < 150; ++round) {
    context_case c = draw_case(random);
    const test::temp_folder folder{test::quick_folder()};
    const test::any_run run = test::run_of(c.request, store_case(c, folder, random));
    for (c.options.cp_rank = 0; c.options.cp_rank < c.cp; ++c.options.cp_rank) {
      const dataset::field_options& rules = c.options.field_rules;
      SCOPED_TRACE(testing::Message()
                   << "round " << round << ": " << test::name_of(c.request.kind) << ", seq_len "
                   << c.request.seq_len << ", rank " << c.options.cp_rank << " of " << c.cp
                   << (c.wide ? ", int32" : ", uint16") << ", eod " << rules.eod << ", pad "
                   << rules.pad << ", reset " << rules.reset_position_ids << ", at boundaries "
                   << c.options.positions_at_boundaries);
      expect_rank(c, run);
      if (testing::Test::HasFailure()) return;
    }
  }
}

// The option `positions_at_boundaries` also works without context parallelism.
TEST(ContextParallelLoader, IsNotNeededForPositionsAtBoundaries) {
  std::mt19937_64 random(test::seed(2));
  for (int round = 0; round < 20; ++round) {
    context_case c = draw_case(random);
    c.options.positions_at_boundaries = true;
    c.options.boundaries = false;
    c.options.fields.cu_seqlens = c.options.fields.cu_seqlens_padded = false;
    c.options.context_parallel = 1;
    const test::temp_folder folder{test::quick_folder()};
    const test::any_run run = test::run_of(c.request, store_case(c, folder, random));
    const std::unique_ptr<batch_loader> loader = test::loader_of(run, c.options);
    while (const auto batch = loader->next()) {
      for (std::int64_t r = 0; r < batch->layout().rows(); ++r) {
        const std::int64_t position = batch->positions()[static_cast<std::size_t>(r)];
        EXPECT_EQ(test::row_of(*batch, r).position_ids, whole_row(c, run, position).position_ids);
      }
    }
  }
}

// Context parallelism changes neither the samples of a data-parallel rank nor the state. So a run
// can be resumed with another degree of context parallelism.
TEST(ContextParallelLoader, ResumesFromAStateOfWholeRows) {
  std::mt19937_64 random(test::seed(3));
  for (const test::run_kind kind :
       {test::run_kind::megatron, test::run_kind::instant, test::run_kind::packed}) {
    context_case c = draw_case(random);
    c.request.kind = kind;
    c.request.seq_len = 24;
    c.request.pad_documents_to = 4;
    c.options.batch_size = 2;
    c.options.positions_at_boundaries = false;
    c.options.fields = {};
    const test::temp_folder folder{test::quick_folder()};
    const test::any_run run = test::run_of(c.request, store_case(c, folder, random));
    loader_options whole = c.options;
    whole.context_parallel = 1;
    const auto first = test::loader_of(run, whole);
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(first->next().has_value());
    const std::string state = dataset::write_state(first->state());

    c.options.context_parallel = 2;
    c.options.cp_rank = 1;
    const auto second = test::loader_of(run, c.options);
    second->load_state(state);
    EXPECT_EQ(dataset::write_state(second->state()), state);
    while (const auto expected = first->next()) {
      const auto found = second->next();
      ASSERT_TRUE(found.has_value());
      EXPECT_EQ(found->first_sample(), expected->first_sample());
      EXPECT_TRUE(std::ranges::equal(found->positions(), expected->positions()));
    }
    EXPECT_FALSE(second->next().has_value());
    EXPECT_EQ(dataset::write_state(second->state()), dataset::write_state(first->state()));
  }
}

class RefusedContext : public testing::Test {
 protected:
  std::string refusal(test::run_request request, const loader_options& options) const {
    const test::any_run run = test::run_of(request, prefixes_);
    return test::config_refusal([&] { (void)test::loader_of(run, options); });
  }

  test::temp_folder folder_{test::quick_folder()};
  std::vector<std::filesystem::path> prefixes_ = test::store_three(folder_, 7);
};

// Transformer Engine needs documents whose length is a multiple of 2 * CP tokens (CP: context
// parallelism).
TEST_F(RefusedContext, IsOneThatPackedDocumentsAreNotPaddedFor) {
  loader_options options;
  options.context_parallel = 2;
  EXPECT_THAT(refusal({.kind = test::run_kind::packed, .pad_documents_to = 1}, options),
              HasSubstr("pad_documents_to is 1, expected a multiple of 4: cu_seqlens with context "
                        "parallelism of 2 need packed documents whose shares the ranks can "
                        "divide"));
  EXPECT_THAT(refusal({.kind = test::run_kind::packed, .pad_documents_to = 2}, options),
              HasSubstr("pad_documents_to is 2, expected a multiple of 4"));
  options.context_parallel = 1;
  EXPECT_EQ(refusal({.kind = test::run_kind::packed, .pad_documents_to = 1}, options), "accepted");
}

TEST_F(RefusedContext, IsOneWithBoundariesOfRowsThatAreNotPacked) {
  loader_options options;
  options.context_parallel = 2;
  options.fields.cu_seqlens = true;
  EXPECT_EQ(refusal({}, options),
            "fields.cu_seqlens is true with a context_parallel of 2, but the rows are not packed: "
            "attention kernels need documents that are padded to a multiple of 4 tokens. Set "
            "fields.cu_seqlens to false, or use a packed_run with pad_documents_to");
  options = {};
  options.fields.cu_seqlens_padded = true;
  EXPECT_EQ(refusal({}, options),
            "fields.cu_seqlens_padded is true, but the rows are not packed: their documents have "
            "no padding. Use fields.cu_seqlens alone, or a packed_run");
}

TEST_F(RefusedContext, IsOneThatDoesNotDivideARow) {
  loader_options options;
  options.context_parallel = 3;
  EXPECT_THAT(refusal({.seq_len = 16}, options),
              HasSubstr("seq_len is 16, expected a multiple of 6, twice the context parallelism"));
  options.cp_rank = 3;
  EXPECT_THAT(refusal({.seq_len = 12}, options),
              HasSubstr("cp_rank is 3, expected 0 to context_parallel - 1, which is 2"));
  options.context_parallel = 0;
  EXPECT_THAT(refusal({}, options), HasSubstr("context_parallel is 0, expected 1 to 1048576"));
}

/// A user-defined run that changes the boundaries of packed rows.
class replanned_run : public dataset::packed_run {
 public:
  using change = void (*)(dataset::sample_text&);
  replanned_run(dataset::packed_run of, change how) : packed_run(std::move(of)), how_(how) {}
  void text_of(std::int64_t position, bool boundaries, dataset::sample_text& out) const override {
    packed_run::text_of(position, boundaries, out);
    how_(out);
  }

 private:
  change how_;
};

TEST_F(RefusedContext, IsOneWhoseRowsAreNotWhatTheRunSaid) {
  const test::any_run run =
      test::run_of({.kind = test::run_kind::packed, .pad_documents_to = 4}, prefixes_);
  const auto with = [&](replanned_run::change how) {
    loader_options options;
    options.context_parallel = 2;
    batch_loader loader(
        std::make_shared<const replanned_run>(std::get<dataset::packed_run>(run), how), options);
    return test::config_refusal([&] { (void)loader.next(); });
  };
  EXPECT_THAT(with([](dataset::sample_text& row) {
                row.boundaries = {0, 6, 16};
                row.document_ends = {0, 6, 16};
              }),
              HasSubstr("has a document of 6 tokens with its padding, expected a multiple of 4"));
  EXPECT_THAT(with([](dataset::sample_text& row) { row.boundaries.back() = 1 << 20; }),
              HasSubstr("expected as many of each, in order, from 0 to 16"));
  EXPECT_THAT(with([](dataset::sample_text& row) { row.document_ends.pop_back(); }),
              HasSubstr("document ends, expected as many of each"));
}

// A batch is copied to a device, so it must hold little more than the rank's own tokens.
TEST(ContextParallelLoader, HasLittleMoreThanItsTokensInABatch) {
  const test::temp_folder folder{test::quick_folder()};
  test::documents_of<std::uint16_t> documents(1);
  documents[0].push_back(std::vector<std::uint16_t>(4096 * 8 + 1, 5));
  test::write_dataset<std::uint16_t>(folder / "data", documents);
  const dataset::indexed_dataset data(folder / "data");
  for (const std::int64_t cp : {2, 4, 8}) {
    loader_options options = {.batch_size = 8, .seq_len = 4096, .context_parallel = cp};
    options.fields = no_host_fields;
    options.field_rules.reset_position_ids = true;
    options.field_rules.eod = 9;
    batch_loader loader(data, options);
    const auto batch = loader.next();
    const double tokens = 8.0 * 4096 / static_cast<double>(cp);
    EXPECT_LE(static_cast<double>(batch->bytes().size()) / tokens, cp == 2   ? 2.04
                                                                   : cp == 4 ? 2.08
                                                                             : 2.15)
        << cp;
  }
}

}  // namespace
}  // namespace millrace::loader
