// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/cluster_plan.hpp>
#include <millrace/loader/detail/simulate/storage_probe.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/dataset/instant_run.hpp>
#include <millrace/dataset/megatron_run.hpp>
#include <millrace/error.hpp>
#include <millrace/loader/batch_loader.hpp>
#include <millrace/loader/detail/batch/slot_memory.hpp>
#include <millrace/loader/detail/ranks/rank_role.hpp>

#include "support/paths.hpp"
#include "unit/dataset/run/stored_run.hpp"
#include "unit/dataset/write_dataset.hpp"

namespace millrace::loader {
namespace {

using testing::Contains;
using testing::HasSubstr;

constexpr std::int64_t seq_len = 64;

/// Two datasets: `big` of 64,001 tokens in documents of 37 tokens, and `small` of 6,401.
class ClusterPlan : public testing::Test {
 protected:
  ClusterPlan() {
    write("big", 64'001);
    write("small", 6'401);
  }

  void write(const char* name, std::int64_t tokens) {
    std::vector<std::vector<std::vector<std::uint16_t>>> documents;
    for (std::int64_t i = 0; i < tokens; i += 37) {
      std::vector<std::uint16_t> one;
      for (std::int64_t t = i; t < std::min(tokens, i + 37); ++t) {
        one.push_back(static_cast<std::uint16_t>(t));
      }
      documents.push_back({one});
    }
    test::write_dataset<std::uint16_t>(folder_ / name, documents);
  }

  /// A blend of both, 4 to 1.
  std::shared_ptr<const dataset::run> blend(std::int64_t samples) const {
    dataset::instant_options options;
    options.seq_len = seq_len;
    options.train_samples = samples;
    options.segments = {{.first_step = 0, .sources = {{0, 0.8}, {1, 0.2}}}};
    std::vector<dataset::instant_source> sources(2);
    sources[0].prefix = folder_ / "big";
    sources[1].prefix = folder_ / "small";
    return std::make_shared<const dataset::instant_run>(sources, options);
  }

  std::shared_ptr<const dataset::run> stored() const {
    return std::make_shared<const dataset::stored_run>(
        std::make_shared<const dataset::indexed_dataset>(folder_ / "big"), seq_len);
  }

  cluster_job job(std::shared_ptr<const dataset::run> run, std::int64_t samples) const {
    cluster_job all;
    all.run = std::move(run);
    all.samples = samples;
    all.options.batch_size = 2;
    all.nodes = 2;
    all.gpus_per_node = 4;
    all.step_seconds = 0.5;
    return all;
  }

  test::temp_folder folder_;
};

TEST_F(ClusterPlan, CountsStepsAndReadsOfANode) {
  cluster_job all = job(stored(), 1000);
  all.options.global_batch_size = 32;
  const cluster_plan plan = plan_cluster(all);
  EXPECT_EQ(plan.gpus, 8);
  EXPECT_EQ(plan.data_ranks, 8);
  EXPECT_EQ(plan.micro_batches, 2);
  EXPECT_EQ(plan.steps, 31);  // 1000 samples in steps of 32
  EXPECT_EQ(plan.step_tokens, 32 * seq_len);
  EXPECT_DOUBLE_EQ(plan.run_seconds, 15.5);
  EXPECT_EQ(plan.node.loaders, 4);
  EXPECT_EQ(plan.node.readers, 4);
  EXPECT_DOUBLE_EQ(plan.sample_bytes, 2 * (seq_len + 1));
  EXPECT_DOUBLE_EQ(plan.sample_requests, 1);
  EXPECT_DOUBLE_EQ(plan.node.samples_per_second, 32);  // half of 32 samples in half a second
  EXPECT_DOUBLE_EQ(plan.node.bytes_per_second, 32 * 2 * (seq_len + 1));
  EXPECT_EQ(plan.data_bytes, 2U * 64'001);
  EXPECT_EQ(plan.maps, 1);
  all.options.drop_last = false;
  EXPECT_EQ(plan_cluster(all).steps, 32);
}

// Compares with the ranges that the run itself lists for every sample.
TEST_F(ClusterPlan, AveragesTheRequestsAndPagesOfSamples) {
  const auto run = std::make_shared<const dataset::megatron_run>(
      test::megatron_run_of({folder_ / "big"}, seq_len, "1,0,0", 900));
  double requests = 0;
  double pages = 0;
  dataset::sample_text text;
  for (std::int64_t p = 0; p < 900; ++p) {
    run->text_of(p, false, text);
    for (const dataset::row_part& each : text.parts) {
      ++requests;
      std::set<std::uint64_t> of_part;
      for (std::uint64_t b = 0; b < each.from.bytes; ++b) {
        of_part.insert((each.from.offset + b) / 4096);
      }
      pages += static_cast<double>(of_part.size());
    }
  }
  const cluster_plan plan = plan_cluster(job(run, 900));
  EXPECT_GT(plan.sample_requests, 1.5);
  EXPECT_DOUBLE_EQ(plan.sample_requests, requests / 900);
  EXPECT_DOUBLE_EQ(plan.sample_pages, pages / 900);
}

TEST_F(ClusterPlan, ReadersOfANodeAreTheRanksWithDifferentData) {
  struct expected {
    parallel_options layout;
    std::int64_t loaders, readers, data_ranks;
  };
  const expected cases[] = {
      {{.tensor_parallel = 4}, 4, 1, 1},
      {{.tensor_parallel = 2}, 4, 2, 2},
      {{.context_parallel = 2}, 4, 4, 2},
      {{.tensor_parallel = 2, .context_parallel = 2}, 4, 2, 1},
      {{.pipeline_parallel = 2}, 4, 4, 4},
      {{.pipeline_parallel = 4}, 2, 2, 2},  // the two stages in the middle need no data
      {{.tensor_parallel = 2, .pipeline_parallel = 4}, 2, 1, 1},
  };
  for (const expected& each : cases) {
    cluster_job all = job(stored(), 960);
    all.layout = each.layout;
    const cluster_plan plan = plan_cluster(all);
    EXPECT_EQ(plan.node.loaders, each.loaders);
    EXPECT_EQ(plan.node.readers, each.readers);
    EXPECT_EQ(plan.node.data_ranks, each.data_ranks);
  }
}

// Lets a loader tell how much memory it asks for.
TEST_F(ClusterPlan, PinnedMemoryIsWhatLoadersAllocate) {
  for (const std::int64_t stages : {1, 2}) {
    cluster_job all = job(stored(), 960);
    all.layout.pipeline_parallel = stages;
    all.options.look_ahead = 3;
    const cluster_plan plan = plan_cluster(all);
    parallel_options layout = all.layout;
    layout.world_size = 8;
    std::map<std::int64_t, std::int64_t> by_node;
    for (std::int64_t rank = 0; rank < 8; ++rank) {
      const rank_role role = role_of(parallel_layout(layout), rank, seq_len);
      if (!role.needs.any()) continue;
      loader_options options = all.options;
      options.rank = role.data_rank;
      options.world_size = role.data_ranks;
      options.held = role.held;
      options.memory = [&](std::size_t slots, std::size_t bytes) {
        by_node[rank / 4] += static_cast<std::int64_t>(slots * bytes);
        return plain_memory(slots, bytes);
      };
      const batch_loader loader(all.run, options);
    }
    std::int64_t most = 0;
    for (const auto& [node, bytes] : by_node) most = std::max(most, bytes);
    EXPECT_EQ(plan.node.pinned_bytes, most);
  }
}

TEST_F(ClusterPlan, BytesToTheDeviceAreThoseOfTheBatches) {
  cluster_job all = job(stored(), 960);
  all.options.global_batch_size = 64;
  loader_options options = all.options;
  options.world_size = 8;
  options.fields = no_host_fields;
  batch_loader loader(all.run, options);
  std::int64_t bytes = 0;
  for (int i = 0; i < 4; ++i) bytes += static_cast<std::int64_t>(loader.next()->bytes().size());
  EXPECT_DOUBLE_EQ(plan_cluster(all).device_bytes_per_step, static_cast<double>(bytes));
}

// Walks the run, and counts how often it has taken samples of each dataset.
TEST_F(ClusterPlan, SourcesRepeatWhenTheirSamplesAreUsedUp) {
  constexpr std::int64_t samples = 2000;
  const auto run = blend(samples);
  cluster_job all = job(run, samples);
  const cluster_plan plan = plan_cluster(all);
  ASSERT_EQ(plan.sources.size(), 2U);
  for (std::int64_t s = 0; s < 2; ++s) {
    const planned_source& found = plan.sources[static_cast<std::size_t>(s)];
    const std::int64_t of_epoch = run->round_of(s, 0).last;
    std::int64_t taken = 0;
    std::optional<std::int64_t> repeat;
    for (std::int64_t p = 0; p < samples; ++p) {
      if (run->at(p).source != s) continue;
      if (taken == of_epoch && !repeat) repeat = p;
      ++taken;
    }
    EXPECT_EQ(found.samples, taken);
    EXPECT_DOUBLE_EQ(found.epochs, static_cast<double>(taken) / static_cast<double>(of_epoch));
    ASSERT_EQ(found.repeats_after_s.has_value(), repeat.has_value());
    if (repeat) {
      EXPECT_DOUBLE_EQ(*found.repeats_after_s, 0.5 * static_cast<double>(*repeat / 16));
    }
  }
  EXPECT_GT(plan.sources[1].epochs, 3.5);
  EXPECT_NEAR(plan.sources[0].share, 0.8, 0.01);
}

// Collects the bytes that the ranks of each node really read.
TEST_F(ClusterPlan, TouchedBytesAreThoseThatANodeReads) {
  for (const std::int64_t samples : {400, 1000, 2600}) {
    const auto run = blend(samples);
    cluster_job all = job(run, samples);
    std::vector<std::set<std::pair<std::int64_t, std::uint64_t>>> tokens(2);
    dataset::sample_text text;
    for (std::int64_t p = 0; p < samples; ++p) {
      run->text_of(p, false, text);
      const std::int64_t rank = p % 16 / 2;
      for (const dataset::row_part& each : text.parts) {
        for (std::uint64_t b = 0; b < each.from.bytes; ++b) {
          tokens[static_cast<std::size_t>(rank / 4)].emplace(text.source, each.from.offset + b);
        }
      }
    }
    const double bytes = static_cast<double>(tokens[0].size() + tokens[1].size()) / 2;
    const double found = plan_cluster(all).node.touched_bytes;
    EXPECT_NEAR(found / bytes, 1, 0.05) << samples << " samples";
  }
}

TEST_F(ClusterPlan, StorageSetsThePace) {
  cluster_job all = job(stored(), 960);
  all.options.prefetch_samples = 8;  // 4 micro-batches
  all.storage = {.latency_s = 0.1, .bytes_per_second = 0};
  EXPECT_NEAR(plan_cluster(all).storage_s, 0.02, 1e-12);  // 5 in flight
  all.storage = {.latency_s = 0.001, .bytes_per_second = 1000};
  EXPECT_NEAR(plan_cluster(all).storage_s, 0.26, 1e-12);  // 260 bytes
  EXPECT_NEAR(plan_cluster(all).break_even_s, 0.234, 1e-12);
  EXPECT_DOUBLE_EQ(plan_cluster(all).utilisation.value_or(0), 1);
  all.options.prefetch_samples = 0;
  EXPECT_NEAR(plan_cluster(all).storage_s, 0.261, 1e-12);
  all.step_seconds = 0.1305;
  EXPECT_NEAR(plan_cluster(all).utilisation.value_or(0), 0.5, 1e-9);
  EXPECT_THAT(plan_cluster(all).warnings,
              Contains(HasSubstr("GPUs would wait 50.0 % of the time")));
}

TEST_F(ClusterPlan, MoreReadersThanWereMeasuredShareTheStorage) {
  cluster_job all = job(stored(), 960);
  all.speed = loader_speed{.warm_s = 0.001, .cold_s = 0.002, .shared_s = 0.003, .loaders = 2};
  EXPECT_DOUBLE_EQ(plan_cluster(all).storage_s, 0.006);  // 4 readers
  all.layout.tensor_parallel = 4;
  EXPECT_DOUBLE_EQ(plan_cluster(all).storage_s, 0.003);
}

TEST_F(ClusterPlan, WarnsOfRepeatsAndMemory) {
  cluster_job all = job(blend(4000), 4000);
  all.node_memory = 150'000;
  const std::vector<std::string> warnings = plan_cluster(all).warnings;
  EXPECT_THAT(warnings, Contains(HasSubstr("small is served 8.0 times")));
  EXPECT_THAT(warnings, Contains(HasSubstr("data that repeats comes from storage again")));
  all.training_memory = 149'000;
  EXPECT_THAT(plan_cluster(all).warnings, Contains(HasSubstr("but the training needs")));
  cluster_job fine = job(stored(), 960);
  fine.node_memory = std::int64_t{1} << 40;
  EXPECT_THAT(plan_cluster(fine).warnings, testing::IsEmpty());
}

TEST_F(ClusterPlan, RefusesWhatCannotBe) {
  const auto refusal = [&](const cluster_job& all) -> std::string {
    try {
      (void)plan_cluster(all);
    } catch (const config_error& e) {
      return e.what();
    }
    return "";
  };
  cluster_job all = job(stored(), 960);
  all.step_seconds = 0;
  EXPECT_THAT(refusal(all), HasSubstr("step_seconds is 0.000, expected the time per training"));
  all = job(stored(), 960);
  all.nodes = 0;
  EXPECT_THAT(refusal(all), HasSubstr("0 nodes with 4 GPUs"));
  all = job(stored(), 960);
  all.layout.tensor_parallel = 3;
  EXPECT_THAT(refusal(all), HasSubstr("expected a multiple of"));
  all = job(stored(), 960);
  all.options.global_batch_size = 17;
  EXPECT_THAT(refusal(all), HasSubstr("17"));
  all = job(nullptr, 960);
  EXPECT_THAT(refusal(all), HasSubstr("run is null"));
  all = job(stored(), 0);
  EXPECT_THAT(refusal(all), HasSubstr("samples is 0"));
}

// The values are those of the formulas, computed by hand: d = 300 s, M = 24 h, so d / 2M = 1 / 576.
TEST(CheckpointInterval, FollowsYoungAndDaly) {
  const checkpoint_interval found = interval_of_checkpoints(300, 86'400, 10);
  EXPECT_DOUBLE_EQ(found.young_s, 7200);
  EXPECT_NEAR(found.daly_s, 7200 * (1 + 1.0 / 72 + 1.0 / 5184) - 300, 1e-9);
  EXPECT_EQ(found.steps, 700);
  EXPECT_NEAR(found.lost_share, 300.0 / 7300 + 7300.0 / 172'800, 1e-12);
  EXPECT_DOUBLE_EQ(interval_of_checkpoints(500, 100, 1).daly_s, 100);  // d >= 2M
  EXPECT_EQ(interval_of_checkpoints(1, 10, 1000).steps, 1);
  EXPECT_THROW(interval_of_checkpoints(0, 100, 1), config_error);
  EXPECT_THROW(interval_of_checkpoints(10, std::nan(""), 1), config_error);
}

// No other interval of whole steps loses less time than the one of Daly, by more than a little.
TEST(CheckpointInterval, LosesLittleTime) {
  for (const double d : {5.0, 60.0, 600.0}) {
    for (const double m : {3'600.0, 86'400.0}) {
      const checkpoint_interval found = interval_of_checkpoints(d, m, 1);
      // The exact expected time per second of work, with exponential failures (Daly 2006, eq. 13).
      const auto cost = [&](double tau) {
        return m * std::exp(1 / m) * (std::exp((tau + d) / m) - 1) / tau;
      };
      double best = 1e300;
      for (double tau = 1; tau < 4 * m; tau *= 1.001) best = std::min(best, cost(tau));
      EXPECT_LT(cost(static_cast<double>(found.steps)), 1.001 * best);
    }
  }
}

TEST(StorageProbe, MeasuresAndRemovesItsFiles) {
  const test::temp_folder folder;
  probe_options options;
  options.loader.batch_size = 2;
  options.seq_len = 128;
  options.loaders = 2;
  options.document_tokens = 50;
  options.most_bytes = std::uint64_t{1} << 20;
  options.time = std::chrono::duration<double>(0.2);
  std::vector<std::string> parts;
  options.progress = [&](const char* what) { parts.emplace_back(what); };
  for (const formats::dtype type : {formats::dtype::uint16, formats::dtype::int32}) {
    options.type = type;
    const storage_probe found = probe_storage(folder.path(), options);
    EXPECT_GT(found.speed.warm_s, 0);
    EXPECT_GT(found.speed.cold_s, 0);
    EXPECT_GT(found.speed.shared_s, 0);
    EXPECT_EQ(found.speed.loaders, 2);
    EXPECT_EQ(found.bytes, std::uint64_t{1} << 20);
    EXPECT_GT(found.write_bytes_per_second, 0);
    EXPECT_GT(found.speed.index_bytes_per_second, 0);
    EXPECT_FALSE(found.reader.empty());
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  }
  EXPECT_THAT(parts, Contains("writing"));
}

TEST(StorageProbe, RemovesItsFilesWhenItIsStopped) {
  const test::temp_folder folder;
  probe_options options;
  options.seq_len = 128;
  options.most_bytes = std::uint64_t{1} << 20;
  for (const int after : {0, 1, 5}) {
    int asked = 0;
    options.should_stop = [&] { return asked++ >= after; };
    EXPECT_THROW(probe_storage(folder.path(), options), error) << after;
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  }
  EXPECT_THROW(probe_storage(folder / "absent", options), config_error);
}

}  // namespace
}  // namespace millrace::loader
