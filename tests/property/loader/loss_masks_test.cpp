// SPDX-License-Identifier: Apache-2.0
//
// Compares the loss masks that a loader serves for datasets with PREFIX.mask with those of a naive
// loop over the documents of each row. The masks train exactly the odd tokens.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/dataset/detail/sample/cu_seqlens.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/detail/mask.hpp>
#include <millrace/loader/batch_loader.hpp>

#include "support/config_refusal.hpp"
#include "support/context_places.hpp"
#include "support/loader_runs.hpp"
#include "support/paths.hpp"
#include "support/seed.hpp"
#include "unit/dataset/odd_mask.hpp"

namespace millrace::loader {
namespace {

using testing::HasSubstr;

struct mask_case {
  test::run_request request;
  std::int64_t cp = 1;
  loader_options options;
};

mask_case draw_mask_case(std::mt19937_64& random) {
  const auto choose = [&](std::int64_t count) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(count));
  };
  mask_case c;
  c.cp = 1 + choose(3);
  c.request.kind = static_cast<test::run_kind>(choose(3));
  c.request.blend = choose(2) == 0;
  c.request.seq_len = 2 * c.cp * (1 + choose(9));
  c.request.pad_documents_to = 2 * c.cp;
  c.request.samples = 48;
  c.options.batch_size = 1 + choose(3);
  c.options.threads = 1 + choose(2);
  c.options.fields = test::all_fields;
  c.options.fields.cu_seqlens = c.request.kind == test::run_kind::packed || c.cp == 1;
  c.options.context_parallel = c.cp;
  c.options.masks = choose(2) == 0 ? mask_alignment::label : mask_alignment::input;
  c.options.field_rules.eod = choose(2) == 0 ? dataset::no_token : 7;
  c.options.field_rules.eod_mask_loss = choose(2) == 0;
  return c;
}

// Says for each place of a row, and for the extra token, in which document of the row it is.
// Padding is in none.
template <class Run>
std::vector<int> documents_of_row(const Run& run, std::int64_t position) {
  const dataset::source_sample sample = run.at(position);
  const dataset::indexed_dataset data(run.prefix(sample.source));
  std::vector<dataset::piece> pieces;
  (void)run.pieces(sample, pieces);
  std::vector<int> documents;
  int document = 0;
  const dataset::piece* before = nullptr;
  for (const dataset::piece& each : pieces) {
    if (each.tokens == 0) continue;
    bool joined = false;
    if constexpr (!std::is_same_v<Run, dataset::megatron_run>) {
      joined = before != nullptr && dataset::same_document(data)(*before, each);
    }
    if (!joined) ++document;
    documents.insert(documents.end(), static_cast<std::size_t>(each.tokens), document);
    before = &each;
  }
  documents.resize(static_cast<std::size_t>(run.seq_len()) + 1, 0);
  return documents;
}

std::vector<int> documents_of_packed_row(const test::served_row& row) {
  std::vector<int> documents(row.text.size() + 1, 0);
  for (std::size_t d = 1; d < row.boundaries.size(); ++d) {
    for (std::int32_t i = row.boundaries[d - 1]; i < row.document_ends[d]; ++i) {
      documents[static_cast<std::size_t>(i)] = static_cast<int>(d);
    }
  }
  return documents;
}

std::vector<float> expected_mask(const mask_case& c, const test::any_run& run,
                                 const test::served_row& row, std::int64_t position) {
  const std::vector<int> documents =
      c.request.kind == test::run_kind::packed
          ? documents_of_packed_row(row)
          : std::visit([&](const auto& each) { return documents_of_row(each, position); }, run);
  std::vector<float> mask = row.loss_mask;
  for (std::size_t i = 0; i < mask.size(); ++i) {
    const bool same = documents[i] != 0 && documents[i] == documents[i + 1];
    const std::size_t of = c.options.masks == mask_alignment::label ? i + 1 : i;
    const bool trained = of < row.text.size() && row.text[of] % 2 != 0;
    if (!same || !trained) mask[i] = 0;
  }
  return mask;
}

TEST(LossMasks, FollowTheMasksOfDatasets) {
  std::mt19937_64 random(test::seed(11));
  for (int round = 0; round < 200; ++round) {
    mask_case c = draw_mask_case(random);
    const test::temp_folder folder{test::quick_folder()};
    const auto prefixes = test::store_three(folder, random());
    std::vector<bool> has_mask;
    for (const auto& prefix : prefixes) {
      has_mask.push_back(has_mask.empty() || random() % 2 == 0);
      if (has_mask.back()) test::write_odd_mask(prefix);
    }
    const test::any_run run = test::run_of(c.request, prefixes);
    for (c.options.cp_rank = 0; c.options.cp_rank < c.cp; ++c.options.cp_rank) {
      SCOPED_TRACE(testing::Message()
                   << "round " << round << ": " << test::name_of(c.request.kind) << ", seq_len "
                   << c.request.seq_len << ", rank " << c.options.cp_rank << " of " << c.cp
                   << ", alignment " << static_cast<int>(c.options.masks));
      const auto loader = test::loader_of(run, c.options);
      while (const auto batch = loader->next()) {
        for (std::int64_t r = 0; r < batch->layout().rows(); ++r) {
          const std::int64_t position = batch->positions()[static_cast<std::size_t>(r)];
          const test::served_row whole = test::row_at(run, position, c.options.field_rules);
          const auto mask = has_mask[static_cast<std::size_t>(whole.source)]
                                ? expected_mask(c, run, whole, position)
                                : whole.loss_mask;
          std::vector<std::int64_t> ends = {c.request.seq_len};
          if (c.request.kind == test::run_kind::packed) {
            ends.assign(whole.boundaries.begin() + 1, whole.boundaries.end());
          }
          std::vector<float> part = mask;
          std::vector<std::int64_t> tokens = whole.tokens;
          if (c.cp > 1) {
            part.clear();
            tokens.clear();
            for (const auto place : test::places_of_rank(ends, c.cp, c.options.cp_rank)) {
              part.push_back(mask[static_cast<std::size_t>(place)]);
              tokens.push_back(whole.tokens[static_cast<std::size_t>(place)]);
            }
          }
          const test::served_row found = test::row_of(*batch, r);
          ASSERT_EQ(found.loss_mask, part) << "position " << position;
          ASSERT_EQ(found.tokens, tokens);
        }
      }
    }
  }
}

class MaskedRun : public testing::Test {
 protected:
  MaskedRun() : prefixes_(test::store_three(folder_, 5)) {
    test::write_odd_mask(prefixes_[0]);
    options_.batch_size = 2;
    options_.fields = test::all_fields;
  }
  std::vector<std::vector<float>> masks(const loader_options& options) const {
    std::vector<std::vector<float>> all;
    const auto loader = test::loader_of(run(), options);
    while (const auto batch = loader->next()) {
      for (std::int64_t r = 0; r < 2; ++r) all.push_back(test::row_of(*batch, r).loss_mask);
    }
    return all;
  }
  test::any_run run() const { return test::run_of({}, prefixes_); }

  test::temp_folder folder_{test::quick_folder()};
  std::vector<std::filesystem::path> prefixes_;
  loader_options options_;
};

TEST_F(MaskedRun, MayBeServedWithoutItsMask) {
  const auto with = masks(options_);
  options_.masks = mask_alignment::ignored;
  const auto ignored = masks(options_);
  std::filesystem::remove(test::suffixed(prefixes_[0], ".mask"));
  EXPECT_EQ(ignored, masks(options_));
  options_.masks = mask_alignment::label;
  EXPECT_EQ(ignored, masks(options_));
  EXPECT_NE(ignored, with);
}

TEST_F(MaskedRun, IsReadByThePlaceOfABatchToo) {
  const auto expected = masks(options_);
  const test::any_run of = run();
  std::visit(
      [&](const auto& each) {
        using run_type = std::decay_t<decltype(each)>;
        batch_reader reader(std::make_shared<const run_type>(each), options_);
        for (std::int64_t step = 0; step < 4; ++step) {
          const batch read = reader.at({.step = step, .rank = 0, .micro_batch = 0});
          EXPECT_EQ(test::row_of(read, 1).loss_mask,
                    expected[static_cast<std::size_t>(2 * step + 1)]);
        }
      },
      of);
}

TEST_F(MaskedRun, EndsIfABitOfTheMaskHasChanged) {
  const auto path = test::suffixed(prefixes_[0], ".mask");
  const auto good = test::read_bytes(path);
  std::mt19937_64 random(test::seed(31));
  const std::uint64_t tokens = formats::parse_mask(good).bits.size();
  for (int round = 0; round < 40; ++round) {
    auto bad = good;
    const std::uint64_t bit = random() % tokens;
    bad[formats::mask_header_bytes + bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
    test::write_bytes(path, bad);
    options_.verify.bad_blocks = round % 2 == 0 ? bad_block_policy::fail : bad_block_policy::report;
    try {
      (void)masks(options_);
      ADD_FAILURE() << "bit " << bit;
    } catch (const format_error& e) {
      EXPECT_THAT(e.what(), HasSubstr(".mask"));
      EXPECT_THAT(e.what(), HasSubstr("differ from those that were written"));
    }
  }
  options_.verify.mode = verify_mode::off;
  EXPECT_FALSE(masks(options_).empty());
}

TEST_F(MaskedRun, IsRefusedIfTheMaskIsOfAnotherDataset) {
  std::filesystem::rename(test::suffixed(prefixes_[0], ".mask"),
                          test::suffixed(prefixes_[1], ".mask"));
  test::run_request blend;
  blend.blend = true;
  const test::any_run of = test::run_of(blend, prefixes_);
  try {
    (void)test::loader_of(of, options_);
    ADD_FAILURE() << "the loader took a mask of another dataset";
  } catch (const format_error& e) {
    EXPECT_THAT(e.what(), HasSubstr("it belongs to another dataset"));
  }
  options_.fields.loss_mask = false;
  EXPECT_TRUE(test::loader_of(of, options_)->next());
}

}  // namespace
}  // namespace millrace::loader
