// SPDX-License-Identifier: Apache-2.0
//
// A run of many datasets in Megatron's order maps only a few files at a time. It maps no files if
// the file system refuses mmap.
#include <millrace/dataset/megatron_run.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/dataset/detail/megatron/data_flags.hpp>
#include <millrace/dataset/detail/megatron/prepare_gpt_cache.hpp>
#include <millrace/dataset/where.hpp>

#include "support/faulty_calls.hpp"
#include "support/paths.hpp"
#include "unit/dataset/write_dataset.hpp"

namespace millrace::dataset {
namespace {

constexpr int datasets = 300;
constexpr std::size_t most_open = 16;
constexpr std::int64_t seq_len = 8;

class ManyDatasets : public testing::Test {
 protected:
  ManyDatasets() {
    std::vector<std::string> words;
    for (int i = 0; i < datasets; ++i) {
      const auto prefix = folder_ / ("set" + std::to_string(i));
      // Documents of 20 to 50 tokens. All tokens of a document have the same value, which differs
      // from document to document.
      test::documents_of<std::uint16_t> documents;
      for (int d = 0; d < 4; ++d) {
        const auto tokens = static_cast<std::size_t>(20 + (i * 7 + d * 11) % 31);
        documents.push_back({std::vector<std::uint16_t>(tokens, std::uint16_t(4 * i + d))});
      }
      test::write_dataset<std::uint16_t>(prefix, documents);
      words.push_back(std::to_string(1 + i % 3));
      words.push_back(prefix.string());
    }
    data_flags flags;
    (void)set_data_flag(flags, "--data-path", words);
    (void)set_data_flag(flags, "--split", std::vector<std::string>{"1,0,0"});
    plan_ = *plan_data(resolve_data_flags(flags), {3000, 0, 0})[0];
  }

  void prepare_caches() const {
    const gpt_cache_options options{.folder = folder_ / "cache",
                                    .sequence_length = seq_len,
                                    .split = "1,0,0",
                                    .tokenizer = python_json::object()};
    for (const planned_dataset& each : plan_.datasets) {
      (void)prepare_gpt_cache(options, each.prefix, split_part::train, each.num_samples);
    }
  }
  megatron_run build(bool cached, std::size_t open = most_open) const {
    std::optional<megatron_caches> caches;
    if (cached) caches = {folder_ / "cache", python_json::object()};
    return megatron_run::build(plan_, {.sequence_length = seq_len, .part = split_part::train},
                               "1,0,0", 1, caches, blend_rounding::twice, open);
  }
  /// Returns the current number of mappings of the datasets' files and their caches.
  std::int64_t maps() const {
    std::ifstream in("/proc/self/maps");
    std::int64_t count = 0;
    for (std::string line; std::getline(in, line);) {
      count += line.find(folder_.path().string()) != line.npos ? 1 : 0;
    }
    return count;
  }
  using samples = std::vector<std::pair<source_sample, std::vector<piece>>>;
  /// Returns all samples of the run. Counts the mappings from time to time, and sets `most_maps` to
  /// the largest count.
  samples all_of(const megatron_run& run, std::int64_t& most_maps) const {
    samples all;
    for (std::int64_t position = 0; position < run.end(); ++position) {
      all.emplace_back(run.at(position), std::vector<piece>());
      EXPECT_EQ(run.pieces(all.back().first, all.back().second), 0);
      if (position % 50 == 0) most_maps = std::max(most_maps, maps());
    }
    return all;
  }

  test::temp_folder folder_{test::quick_folder()};
  part_plan plan_;
};

TEST_F(ManyDatasets, AreMappedWhenTouchedAndFewAtATime) {
  const megatron_run all_open = build(false, datasets);
  EXPECT_EQ(maps(), 0) << "nothing is mapped to build a run";
  std::int64_t most = 0;
  const samples expected = all_of(all_open, most);
  EXPECT_EQ(most, datasets);

  most = 0;
  const megatron_run run = build(false);
  EXPECT_EQ(all_of(run, most), expected);
  EXPECT_EQ(run.open_count(), most_open);
  EXPECT_EQ(most, datasets + std::int64_t{most_open});  // `all_open` keeps its mappings
}

TEST_F(ManyDatasets, AreMappedFewAtATimeWithTheirCaches) {
  std::int64_t most = 0;
  samples expected;
  {
    const megatron_run built = build(false);
    expected = all_of(built, most);
  }
  prepare_caches();
  EXPECT_EQ(maps(), 0);
  most = 0;
  const megatron_run run = build(true);
  EXPECT_EQ(all_of(run, most), expected);
  EXPECT_EQ(run.open_count(), most_open);
  EXPECT_EQ(most, 4 * std::int64_t{most_open});  // three index files and the .idx per open dataset
}

// If the file system refuses mmap, indices, caches and documents are read with system calls.
TEST_F(ManyDatasets, AreReadWhereMapsAreRefused) {
  prepare_caches();
  std::int64_t most = 0;
  const megatron_run mapped = build(true);
  const samples expected = all_of(mapped, most);
  const sampler ranks(mapped.end(), {.batch_size = 2, .world_size = 2, .global_batch_size = 100});
  const auto ledgers = audit_run(mapped, ranks, 0, 30);
  const auto found = run_places(mapped, ranks).of(7, 2, mapped.end());
  ASSERT_FALSE(found.empty());
  const std::int64_t before = maps();
  for (const bool cached : {false, true}) {
    const test::fault_scope refused(test::map_fault, ENODEV);
    most = 0;
    const megatron_run run = build(cached);
    EXPECT_EQ(all_of(run, most), expected);
    EXPECT_EQ(most, before) << "none but those there were";
    EXPECT_GT(test::map_fault.failed, 0);
    EXPECT_EQ(run_places(run, ranks).of(7, 2, run.end()), found);
    const auto read = audit_run(run, ranks, 0, 30);
    ASSERT_EQ(read.size(), ledgers.size());
    for (std::size_t i = 0; i < read.size(); ++i) {
      EXPECT_EQ(read[i].served, ledgers[i].served);
      EXPECT_TRUE(read[i].sound());
    }
  }
}

TEST_F(ManyDatasets, AreAuditedAndAskedForWithFewMaps) {
  const megatron_run run = build(false);
  const sampler ranks(run.end(), {.batch_size = 2, .world_size = 2, .global_batch_size = 100});
  for (const audit_ledger& each : audit_run(run, ranks, 0, 30, {.most_open = most_open})) {
    EXPECT_TRUE(each.sound());
  }
  EXPECT_LE(maps(), std::int64_t{most_open});
  const run_places places(run, ranks, most_open);
  std::int64_t most = 0;
  std::vector<std::vector<appearance>> found;
  for (std::int64_t source = 0; source < datasets; ++source) {
    found.push_back(places.of(source, 1, run.end()));
    most = std::max(most, maps());
  }
  EXPECT_GT(std::ranges::count_if(found, [](const auto& each) { return !each.empty(); }), 200);
  const megatron_run all_open = build(false, datasets);
  const run_places all_places(all_open, ranks, datasets);
  for (std::int64_t source = 0; source < datasets; ++source) {
    EXPECT_EQ(all_places.of(source, 1, run.end()), found[static_cast<std::size_t>(source)]);
  }
  EXPECT_LE(most, 2 * std::int64_t{most_open});
}

TEST_F(ManyDatasets, AreRefusedWhereOneWasReplaced) {
  const megatron_run run = build(false);
  test::write_dataset<std::uint16_t>(folder_ / "set0", {{std::vector<std::uint16_t>(99, 1)}});
  std::vector<piece> pieces;
  try {
    (void)run.pieces({0, 0}, pieces);
    ADD_FAILURE() << "accepted";
  } catch (const format_error& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr("1 sequences of 99 tokens, but had 4 of "));
  }
  EXPECT_NO_THROW((void)run.pieces({1, 0}, pieces));
}

}  // namespace
}  // namespace millrace::dataset
