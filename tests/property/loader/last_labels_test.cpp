// SPDX-License-Identifier: Apache-2.0
//
// Compares the rows that a loader serves if the last token of each document is only a label with
// those of a naive loop over the documents. The documents of a row are those of its row plan.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/dataset/detail/run/packed_sources.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/dataset/packed_run.hpp>
#include <millrace/dataset/where.hpp>
#include <millrace/loader/batch_loader.hpp>
#include <millrace/loader/loader_report.hpp>

#include "support/config_refusal.hpp"
#include "support/context_places.hpp"
#include "support/loader_runs.hpp"
#include "support/paths.hpp"
#include "support/seed.hpp"
#include "unit/dataset/odd_mask.hpp"

namespace millrace::loader {
namespace {

struct label_case {
  std::int64_t cp = 1;
  std::int64_t seq_len = 0;
  dataset::packed_options packing;
  loader_options options;
  bool blend = false;
  std::optional<std::int64_t> samples = 40;
};

label_case draw_label_case(std::mt19937_64& random) {
  const auto choose = [&](std::int64_t count) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(count));
  };
  label_case c;
  c.cp = 1 + choose(3);
  c.blend = choose(2) == 0;
  c.packing.algorithm = static_cast<dataset::packing_algorithm>(1 + choose(4));
  c.packing.last_token_as_label = true;
  c.packing.leave_out_overlong = true;
  c.packing.pad_documents_to = c.cp > 1 ? 2 * c.cp : 1 + choose(3);
  c.seq_len = c.packing.pad_documents_to * (2 + choose(9));
  c.options.batch_size = 1 + choose(3);
  c.options.threads = 1 + choose(2);
  c.options.fields = test::all_fields;
  c.options.fields.cu_seqlens_padded = choose(2) == 0;
  c.options.context_parallel = c.cp;
  c.options.masks = static_cast<mask_alignment>(choose(3));
  c.options.field_rules.eod = choose(2) == 0 ? dataset::no_token : 7;
  c.options.field_rules.eod_mask_loss = choose(2) == 0;
  c.options.field_rules.reset_position_ids = choose(2) == 0;
  const std::int64_t pads[] = {-1, 7, 11};
  c.options.field_rules.pad = pads[choose(3)];
  c.options.positions_at_boundaries = choose(3) == 0;
  return c;
}

/// A whole row, position by position. Padding has no position.
struct labelled_row {
  std::vector<std::int64_t> tokens, labels;
  std::vector<float> loss_mask;
  std::vector<std::optional<std::int64_t>> positions;
  std::vector<std::int32_t> boundaries = {0};
  std::vector<std::int32_t> unpadded = {0};
  std::int64_t last_tokens = 0;  ///< documents
};

labelled_row naive_row(const label_case& c, const dataset::packed_run& run, std::int64_t position,
                       bool has_mask) {
  const dataset::field_options& rules = c.options.field_rules;
  const dataset::source_sample sample = run.at(position);
  const dataset::indexed_dataset data(run.prefix(sample.source));
  const auto opened = run.open(sample.source);
  std::vector<dataset::packed_part> parts;
  opened->rows.row(run.place_of(sample).row, parts);
  labelled_row row;
  const auto pad_to = [&](std::int64_t multiple) {
    while (std::ssize(row.tokens) % multiple != 0) {
      row.tokens.push_back(0);
      row.labels.push_back(0);
      row.loss_mask.push_back(0);
      row.positions.emplace_back();
    }
    if (std::ssize(row.tokens) == row.boundaries.back()) return;
    row.boundaries.push_back(static_cast<std::int32_t>(row.tokens.size()));
    row.unpadded.push_back(row.unpadded.back());
  };
  for (const dataset::packed_part& part : parts) {
    std::vector<std::int64_t> ids;
    const dataset::document_range range = data.document(part.document);
    for (std::int64_t s = range.first; s < range.last; ++s) {
      const dataset::token_view tokens = data.sequence(s);
      for (std::int64_t i = 0; i < tokens.size(); ++i) ids.push_back(tokens[i]);
    }
    EXPECT_EQ(part.first, 0);
    EXPECT_EQ(part.tokens, std::ssize(ids));
    std::int64_t start = 0;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      const std::int64_t token = ids[i], label = ids[i + 1];
      row.tokens.push_back(token == rules.pad ? 0 : token);
      row.labels.push_back(label == rules.pad ? 0 : label);
      const bool trained = c.options.masks == mask_alignment::ignored || !has_mask ||
                           (c.options.masks == mask_alignment::label ? label : token) % 2 != 0;
      const bool off = label == rules.pad || (rules.eod_mask_loss && token == rules.eod);
      row.loss_mask.push_back(trained && !off ? 1.0F : 0.0F);
      row.positions.emplace_back(static_cast<std::int64_t>(i) - start);
      if (rules.reset_position_ids && !c.options.positions_at_boundaries && token == rules.eod) {
        start = static_cast<std::int64_t>(i) + 1;
      }
    }
    const auto before = row.unpadded.back();
    pad_to(c.packing.pad_documents_to);
    if (row.boundaries.back() != std::ssize(row.tokens)) {
      ADD_FAILURE() << "a document of a row has no position";
    }
    row.unpadded.back() = before + static_cast<std::int32_t>(ids.size()) - 1;
    ++row.last_tokens;
  }
  pad_to(c.seq_len);
  return row;
}

template <class T>
std::vector<T> at_places_of(const std::vector<T>& whole, const std::vector<std::int64_t>& places) {
  std::vector<T> part;
  for (const std::int64_t place : places) part.push_back(whole[static_cast<std::size_t>(place)]);
  return part;
}

void expect_labelled_batch(const label_case& c, const dataset::packed_run& run,
                           const std::vector<bool>& has_mask, const batch& batch) {
  std::vector<std::int32_t> joined = {0};
  std::vector<std::int32_t> unpadded = {0};
  for (std::int64_t r = 0; r < batch.layout().rows(); ++r) {
    const std::int64_t position = batch.positions()[static_cast<std::size_t>(r)];
    const auto source = static_cast<std::size_t>(run.at(position).source);
    const labelled_row whole = naive_row(c, run, position, has_mask[source]);
    ASSERT_EQ(std::ssize(whole.tokens), c.seq_len);
    std::vector<std::int64_t> places(whole.tokens.size());
    std::iota(places.begin(), places.end(), 0);
    if (c.cp > 1) {
      places = test::places_of_rank({whole.boundaries.begin() + 1, whole.boundaries.end()}, c.cp,
                                    c.options.cp_rank);
    }
    const test::served_row found = test::row_of(batch, r);
    SCOPED_TRACE(testing::Message() << "row " << r << ", position " << position);
    EXPECT_EQ(found.tokens, at_places_of(whole.tokens, places));
    EXPECT_EQ(found.labels, at_places_of(whole.labels, places));
    EXPECT_EQ(found.loss_mask, at_places_of(whole.loss_mask, places));
    const auto positions = at_places_of(whole.positions, places);
    for (std::size_t i = 0; i < positions.size(); ++i) {
      if (!positions[i]) continue;
      EXPECT_EQ(found.position_ids[i], *positions[i]) << "at " << i;
    }
    EXPECT_EQ(found.boundaries, whole.boundaries);
    const std::int32_t offset = joined.back();
    const std::int32_t real = unpadded.back();
    for (std::size_t i = 1; i < whole.boundaries.size(); ++i) {
      joined.push_back(offset + whole.boundaries[i]);
      unpadded.push_back(real + whole.unpadded[i]);
    }
  }
  if (c.options.fields.cu_seqlens_padded) {
    EXPECT_THAT(batch.cu_seqlens_padded(), testing::ElementsAreArray(joined));
    EXPECT_THAT(batch.cu_seqlens(), testing::ElementsAreArray(unpadded));
  } else {
    EXPECT_THAT(batch.cu_seqlens(), testing::ElementsAreArray(joined));
  }
}

dataset::packed_run labelled_run(const label_case& c,
                                 const std::vector<std::filesystem::path>& prefixes) {
  dataset::instant_options options;
  options.seq_len = c.seq_len;
  options.segments.push_back({0, {}});
  options.train_samples = c.samples;
  std::vector<dataset::instant_source> sources;
  for (const auto& prefix : prefixes) {
    options.segments[0].sources.push_back({std::ssize(sources), 1.0});
    sources.push_back({prefix, "", {}, {}});
    if (!c.blend) break;
  }
  return {sources, options, c.packing};
}

TEST(LastTokenAsLabel, ServesALabelForEachPosition) {
  std::mt19937_64 random(test::seed(23));
  int rows = 0;
  for (int round = 0; round < 300; ++round) {
    label_case c = draw_label_case(random);
    const test::temp_folder folder{test::quick_folder()};
    const auto prefixes = test::store_three(folder, random());
    std::vector<bool> has_mask;
    for (const auto& prefix : prefixes) {
      has_mask.push_back(random() % 2 == 0);
      if (has_mask.back()) test::write_odd_mask(prefix);
    }
    std::optional<dataset::packed_run> run;
    try {
      run.emplace(labelled_run(c, prefixes));
    } catch (const config_error& e) {  // all documents are longer than such a row
      EXPECT_THAT(e.what(), testing::HasSubstr("has no documents to pack"));
      continue;
    }
    for (c.options.cp_rank = 0; c.options.cp_rank < c.cp; ++c.options.cp_rank) {
      SCOPED_TRACE(testing::Message()
                   << "round " << round << ": " << name(c.packing.algorithm) << ", seq_len "
                   << c.seq_len << ", pad_documents_to " << c.packing.pad_documents_to << ", rank "
                   << c.options.cp_rank << " of " << c.cp << ", pad " << c.options.field_rules.pad);
      batch_loader loader(*run, c.options);
      while (const auto batch = loader.next()) {
        expect_labelled_batch(c, *run, has_mask, *batch);
        rows += static_cast<int>(batch->layout().rows());
        if (testing::Test::HasFailure()) return;
      }
    }
  }
  EXPECT_GT(rows, 5000);
}

// An epoch serves each token once, as an input or as a label, except those of documents without a
// row. The padding is what the positions leave.
TEST(LastTokenAsLabel, ServesEachTokenOnce) {
  std::mt19937_64 random(test::seed(24));
  for (int round = 0; round < 40; ++round) {
    label_case c = draw_label_case(random);
    c.blend = false;
    c.samples.reset();
    c.seq_len = c.packing.pad_documents_to * 40;
    const test::temp_folder folder{test::quick_folder()};
    const auto prefixes = test::store_three(folder, random());
    test::write_odd_mask(prefixes[0]);
    const dataset::packed_run run = labelled_run(c, prefixes);
    const std::int64_t rows = run.round_of(0, 0).last;
    const auto ledgers =
        audit_run(run, dataset::sampler(rows, {.batch_size = 1, .world_size = 1}), 0, rows);
    ASSERT_EQ(ledgers.size(), 1U);
    EXPECT_TRUE(ledgers[0].sound());
    std::int64_t accounted = ledgers[0].served;
    for (const dataset::explained_tokens& each : ledgers[0].left_out) accounted += each.second;
    EXPECT_EQ(accounted, ledgers[0].tokens);
    EXPECT_EQ(ledgers[0].padding, run.packing_of(0).padding);
  }
}

// `where` finds a document's last token, but says that it is only a label.
TEST(LastTokenAsLabel, IsFoundAsALabel) {
  const test::temp_folder folder{test::quick_folder()};
  label_case c;
  c.seq_len = 200;
  c.packing.algorithm = dataset::packing_algorithm::first_fit_decreasing;
  c.packing.last_token_as_label = true;
  const auto prefixes = test::store_three(folder, 2);
  c.samples.reset();
  const dataset::packed_run run = labelled_run(c, prefixes);
  const std::int64_t rows = run.round_of(0, 0).last;
  const dataset::sampler ranks(rows, {.batch_size = 1, .world_size = 1});
  const dataset::run_places places(run, ranks);
  int found = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const dataset::served_sample served = places.at(ranks.slot_of(row));
    std::map<std::int64_t, std::int64_t> tokens, inputs;
    for (const dataset::document_piece& each : served.pieces) {
      tokens[each.document] += each.tokens.tokens;
      inputs[each.document] += each.inputs;
    }
    for (const auto& [document, count] : tokens) {
      EXPECT_EQ(inputs[document], count - 1);
      // Clang 14 captures no structured bindings by reference.
      const auto of = [&, d = document](std::int64_t first, std::int64_t size) {
        return places.of_tokens(prefixes[0], d, first, size, rows);
      };
      const auto last = of(count - 1, 1);
      ASSERT_EQ(last.size(), 1U);
      EXPECT_TRUE(last[0].label_only);
      EXPECT_FALSE(of(count - 2, 1).at(0).label_only);
      EXPECT_FALSE(of(count - 2, 2).at(0).label_only);
      ++found;
    }
  }
  EXPECT_GT(found, 30);
}

TEST(LastTokenAsLabel, RefusesToCutDocuments) {
  const test::temp_folder folder{test::quick_folder()};
  label_case c;
  c.seq_len = 16;
  c.packing.last_token_as_label = true;
  const auto prefixes = test::store_three(folder, 1);
  EXPECT_THAT(test::config_refusal([&] { (void)labelled_run(c, prefixes); }),
              testing::HasSubstr("last_token_as_label requires packing with an algorithm that does "
                                 "not cut documents; best_fit does"));
}

}  // namespace
}  // namespace millrace::loader
