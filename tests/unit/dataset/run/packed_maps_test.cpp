// SPDX-License-Identifier: Apache-2.0
//
// A run of packed rows over many datasets maps only `.idx` files, and only a few at a time. It maps
// no files if the file system refuses mmap.
#include <millrace/dataset/packed_run.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/dataset/detail/run/packed_sources.hpp>
#include <millrace/dataset/state.hpp>
#include <millrace/dataset/where.hpp>

#include "support/faulty_calls.hpp"
#include "support/paths.hpp"
#include "support/seed.hpp"
#include "unit/dataset/run/stored_run.hpp"

namespace millrace::dataset {
namespace {

constexpr int packed_sets = 40;
constexpr std::size_t open_sets = 6;
constexpr std::int64_t row_tokens = 32;
constexpr std::int64_t train_samples = 600;

/// Everything that a run returns for one position.
struct told {
  std::int64_t padding = 0;
  source_sample sample;
  packed_place place;
  std::vector<piece> pieces;
  std::vector<std::int64_t> starts;

  friend bool operator==(const told&, const told&) = default;
};

class PackedMaps : public testing::Test {
 protected:
  PackedMaps() {
    std::mt19937 random(static_cast<std::mt19937::result_type>(test::seed(11)));
    for (int i = 0; i < packed_sets; ++i) {
      prefixes_.push_back(test::store_documents(folder_ / ("set" + std::to_string(i)), random, 20));
    }
  }

  packed_run run(bool keep_tables = false, std::size_t open = open_sets) const {
    instant_options options;
    options.seq_len = row_tokens;
    options.segments.push_back({0, {}});
    options.first_position_of = [](std::int64_t step) { return step * 12; };
    options.train_samples = train_samples;
    options.most_open = open;
    std::vector<instant_source> sources;
    for (const auto& prefix : prefixes_) {
      options.segments[0].sources.push_back(
          {std::ssize(sources), 1.0 + static_cast<double>(sources.size() % 3)});
      sources.push_back({prefix, "", {}, {}});
    }
    return {sources, options, {.pad_documents_to = 4, .threads = 2, .keep_tables = keep_tables}};
  }

  /// A run over the first dataset, whose documents are packed at once.
  packed_run planned(packing_algorithm algorithm, std::uint64_t seed, bool leave_out,
                     std::int64_t seq_len = 16) const {
    instant_options options;
    options.seq_len = seq_len;
    options.seed = seed;
    options.segments.push_back({0, {{0, 1.0}}});
    return {{{prefixes_[0], "", {}, {}}},
            options,
            {.algorithm = algorithm, .leave_out_overlong = leave_out}};
  }

  /// Returns the number of mappings of dataset files whose names end with `suffix`; an empty suffix
  /// means all files.
  std::int64_t maps(const std::string& suffix = "") const {
    std::ifstream in("/proc/self/maps");
    std::int64_t count = 0;
    for (std::string line; std::getline(in, line);) {
      count += line.find(folder_.path().string()) != line.npos && line.ends_with(suffix) ? 1 : 0;
    }
    return count;
  }

  static sampler ranks() {
    return sampler(train_samples, {.batch_size = 2, .world_size = 2, .global_batch_size = 12});
  }
  static std::vector<told> all_of(const packed_run& run) {
    std::vector<told> all;
    for (std::int64_t position = 0; position < run.end(); ++position) {
      told& here = all.emplace_back();
      here.sample = run.at(position);
      here.place = run.place_of(here.sample);
      here.padding = run.pieces(here.sample, here.pieces);
      run.starts_of(here.sample, here.pieces, here.starts);
    }
    return all;
  }
  static std::vector<std::vector<std::int64_t>> positions_of(const packed_run& run) {
    std::vector<std::vector<std::int64_t>> all;
    for (std::int64_t source = 0; source < packed_sets; ++source) {
      for (const sequence_range sequences : {sequence_range{0, 1}, {3, 9}, {12, 13}}) {
        all.push_back(run.positions_with(source, sequences, train_samples));
      }
    }
    return all;
  }
  static std::vector<std::vector<appearance>> places_of(const packed_run& run) {
    const run_places places(run, ranks(), open_sets);
    std::vector<std::vector<appearance>> all;
    for (std::int64_t source = 0; source < packed_sets; ++source) {
      all.push_back(places.of(source, 5, train_samples));
    }
    return all;
  }

  test::temp_folder folder_{test::quick_folder()};
  std::vector<std::filesystem::path> prefixes_;
};

TEST_F(PackedMaps, AreOfFewIndicesAtATime) {
  const packed_run made = run();
  (void)all_of(made);
  EXPECT_EQ(maps(".idx"), std::int64_t{open_sets});
  EXPECT_EQ(maps(), maps(".idx")) << "tokens are not read to plan";
}

TEST_F(PackedMaps, MayBeRefused) {
  const packed_run mapped = run();
  const std::vector<told> expected = all_of(mapped);
  const auto positions = positions_of(mapped);
  EXPECT_GT(std::ranges::count_if(positions, [](const auto& each) { return !each.empty(); }), 40);
  const auto places = places_of(mapped);
  const auto ledgers = audit_run(mapped, ranks(), 0, train_samples / 12);
  const std::int64_t before = maps();

  const test::fault_scope refused(test::map_fault, ENODEV);
  const packed_run read = run();
  EXPECT_GT(test::map_fault.failed, packed_sets - 1);
  EXPECT_EQ(all_of(read), expected);
  EXPECT_EQ(positions_of(read), positions);
  EXPECT_EQ(places_of(read), places);
  EXPECT_EQ(write_state(read.description()), write_state(mapped.description()));
  const auto found = audit_run(read, ranks(), 0, train_samples / 12);
  ASSERT_EQ(found.size(), ledgers.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].served, ledgers[i].served);
    EXPECT_EQ(found[i].padding, ledgers[i].padding);
    EXPECT_TRUE(found[i].sound());
  }
  EXPECT_EQ(maps(), before) << "none but those there were";
}

// Without mmap, a run can read row tables that were made with mmap. If the run makes new tables
// without mmap, they are identical.
TEST_F(PackedMaps, MayBeRefusedToTables) {
  const auto tables = [&] {
    std::vector<std::vector<std::byte>> all;
    for (auto path : prefixes_) all.push_back(test::read_bytes(path += ".rows-32-4"));
    return all;
  };
  (void)run(true);
  const auto expected = tables();
  {
    const test::fault_scope refused(test::map_fault, ENODEV);
    const packed_run kept = run(true);
    for (std::int64_t s = 0; s < packed_sets; ++s) {
      EXPECT_TRUE(kept.open(s)->rows.table().was_cached);
      EXPECT_FALSE(kept.open(s)->columns().is_mapped());
    }
    for (auto path : prefixes_) std::filesystem::remove(path += ".rows-32-4");
    (void)run(true);
    EXPECT_EQ(tables(), expected);
  }
  EXPECT_TRUE(run(true).open(3)->rows.table().was_cached);
}

TEST_F(PackedMaps, MayBeRefusedAndAnIndexBecomeShorter) {
  const test::fault_scope refused(test::map_fault, ENODEV);
  const packed_run read = run(false, packed_sets);
  const auto idx = test::suffixed(prefixes_[3], ".idx");
  std::filesystem::resize_file(idx, std::filesystem::file_size(idx) / 2);
  int failed = 0;
  for (std::int64_t position = 0; position < read.end(); ++position) {
    std::vector<piece> pieces;
    const source_sample sample = read.at(position);
    try {
      (void)read.pieces(sample, pieces);
      EXPECT_NE(sample.source, 3);
    } catch (const format_error& e) {
      EXPECT_EQ(sample.source, 3);
      EXPECT_THAT(e.what(),
                  testing::HasSubstr("set3.idx: the file became shorter while it was in use"));
      ++failed;
    }
  }
  EXPECT_GT(failed, 3);
}

TEST_F(PackedMaps, AreOfTheDatasetThatTheRunWasSetUpWith) {
  const packed_run made = run(false, 1);
  std::vector<piece> pieces;
  test::write_dataset<std::uint16_t>(prefixes_[0], {{std::vector<std::uint16_t>(99, 1)}});
  try {
    (void)made.pieces({0, 0}, pieces);
    ADD_FAILURE() << "accepted";
  } catch (const format_error& e) {
    EXPECT_THAT(e.what(),
                testing::HasSubstr("the dataset has 4 packed rows of 99 tokens, but had "));
  }
  EXPECT_NO_THROW((void)made.pieces({1, 0}, pieces));
}

TEST_F(PackedMaps, LeaveDocumentsOutOnlyIfTheyMay) {
  test::write_dataset<std::uint16_t>(prefixes_[0], {{std::vector<std::uint16_t>(9, 1)},
                                                    {std::vector<std::uint16_t>(17, 2)},
                                                    {std::vector<std::uint16_t>(99, 3)}});
  const auto refusal = [&](packing_algorithm algorithm, std::uint64_t seed, bool leave_out,
                           std::int64_t seq_len = 16) -> std::string {
    try {
      return std::to_string(planned(algorithm, seed, leave_out, seq_len).round_of(0, 0).last) +
             " rows";
    } catch (const config_error& e) {
      return e.what();
    }
  };
  EXPECT_THAT(
      refusal(packing_algorithm::first_fit_decreasing, 5, false),
      testing::HasSubstr("has 2 documents that are longer than a row of 16 tokens; the first "
                         "is document 1, which takes 17. first_fit_decreasing cannot cut "
                         "documents: use a larger seq_len or best_fit, or leave these "
                         "documents out (leave_out_overlong, --leave-out-overlong)"));
  EXPECT_EQ(refusal(packing_algorithm::first_fit_decreasing, 5, true), "1 rows");
  EXPECT_EQ(refusal(packing_algorithm::first_fit_decreasing, 5, false, 128), "1 rows");
  EXPECT_EQ(refusal(packing_algorithm::best_fit, 5, false), "8 rows");
  EXPECT_THAT(refusal(packing_algorithm::modified_first_fit_decreasing, 5, true, 8),
              testing::HasSubstr("has no documents to pack, expected at least one token"));
  EXPECT_THAT(refusal(packing_algorithm::first_fit_shuffle, 0x100000000, true),
              testing::HasSubstr("the seed is 4294967296, expected at most 4294967295 for "
                                 "first_fit_shuffle, which draws as numpy does"));
  EXPECT_EQ(refusal(packing_algorithm::modified_first_fit_decreasing, 0x100000000, true), "1 rows");
  EXPECT_EQ(write_state(planned(packing_algorithm::first_fit_shuffle, 5, true).description())
                .find("\"packing\": \"first_fit_shuffle\""),
            write_state(planned(packing_algorithm::first_fit_decreasing, 5, true).description())
                .find("\"packing\": \"first_fit_decreasing\""));
}

// The same blend as with the numbers of rows as weights. Weights that are given do not count.
TEST_F(PackedMaps, WeighSourcesByTheirRows) {
  instant_options options;
  options.seq_len = row_tokens;
  options.first_position_of = [](std::int64_t step) { return step * 12; };
  options.train_samples = train_samples;
  schedule_segment given{0, {}};
  schedule_segment by_rows{0, {}};
  std::vector<instant_source> sources;
  const packed_run one_weight_each = run();
  for (std::int64_t s = 0; s < packed_sets; ++s) {
    sources.push_back({prefixes_[static_cast<std::size_t>(s)], "", {}, {}});
    given.sources.push_back({s, s == 5 ? 100.0 : 1.0});
    by_rows.sources.push_back({s, static_cast<double>(one_weight_each.round_of(s, 0).last)});
  }
  const packed_options packing{.pad_documents_to = 4, .keep_tables = false};
  packed_options weighing = packing;
  weighing.weigh_by_rows = true;
  options.segments = {by_rows};
  const packed_run expected(sources, options, packing);
  options.segments = {given};
  const packed_run weighed(sources, options, weighing);
  EXPECT_EQ(all_of(weighed), all_of(expected));
  EXPECT_NE(all_of(packed_run(sources, options, packing)), all_of(expected));
  EXPECT_EQ(write_state(weighed.description()), write_state(expected.description()));

  instant_options single = options;
  single.segments = {{0, {{0, 7.0}}}};
  const packed_run one({sources[0]}, single, weighing);
  EXPECT_EQ(one.description().data[0].weight, 7.0);

  options.segments[0].sources[3].source = packed_sets;
  EXPECT_THROW(packed_run(sources, options, weighing), config_error);
}

TEST_F(PackedMaps, ReportTheirPadding) {
  for (const packing_algorithm algorithm :
       {packing_algorithm::best_fit, packing_algorithm::first_fit_shuffle}) {
    const packed_run made = planned(algorithm, 5, algorithm != packing_algorithm::best_fit);
    const packing_report report = made.packing_of(0);
    packing_report counted;
    std::vector<piece> pieces;
    for (std::int64_t k = 0; k < made.round_of(0, 0).last; ++k) {
      counted.padding += made.pieces({0, k}, pieces);
      counted.tokens += token_count(pieces);
      ++counted.rows;
    }
    EXPECT_GT(counted.padding, 0);
    EXPECT_EQ(report.rows, counted.rows);
    EXPECT_EQ(report.tokens, counted.tokens);
    EXPECT_EQ(report.padding, counted.padding);
    EXPECT_EQ(report.left_out > 0, algorithm != packing_algorithm::best_fit);
  }
}

}  // namespace
}  // namespace millrace::dataset
