// SPDX-License-Identifier: Apache-2.0
//
// Opens a run and gathers its first rows. Prints the time of each step in seconds, and the private
// memory of the process, as one line of JSON.
//
//   bench_first_batch instant|megatron FOLDER|- SEQ_LENGTH ROWS TRAIN_SAMPLES PREFIX...
//
// The datasets of all prefixes are blended with equal weights. For `megatron`, FOLDER contains the
// indices that `inspect_dataset prepare-cache` wrote for the tokenizer description `{}`. If FOLDER
// is `-`, the indices are built in memory.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <millrace/dataset/detail/megatron/blend_plan.hpp>
#include <millrace/dataset/detail/sample/gather.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/dataset/instant_run.hpp>
#include <millrace/dataset/megatron_run.hpp>

#include "bench/support/process_figures.hpp"

using namespace millrace::dataset;

namespace {

double now(::clockid_t clock) {
  ::timespec t{};
  ::clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

struct question {
  std::string folder;
  std::int64_t seq_len;
  std::int64_t rows;
  std::int64_t train_samples;
  std::vector<std::string> prefixes;
};

instant_run open_instant(const question& q) {
  std::vector<instant_source> sources;
  instant_options options;
  options.seq_len = q.seq_len;
  options.train_samples = q.train_samples;
  options.first_position_of = [rows = q.rows](std::int64_t step) { return step * rows; };
  options.segments.push_back({0, {}});
  for (const std::string& prefix : q.prefixes) {
    options.segments[0].sources.push_back({static_cast<std::int64_t>(sources.size()), 1});
    sources.push_back({prefix, "", {}, {}});
  }
  return {sources, options};
}

megatron_run open_megatron(const question& q) {
  data_blends data;
  data.split = "100,0,0";
  data.blend.emplace();
  data.blend->prefixes = q.prefixes;
  if (q.prefixes.size() > 1) data.blend->weights.assign(q.prefixes.size(), 1);
  const data_plan plan = plan_data(data, {q.train_samples, 0, 0});
  std::optional<megatron_caches> caches;
  if (q.folder != "-") caches = megatron_caches{q.folder, python_json::object()};
  return megatron_run::build(*plan[0], {.sequence_length = q.seq_len, .part = split_part::train},
                             data.split, 2, caches);
}

template <class Order>
void serve(const Order& order, const question& q) {
  std::map<std::int64_t, std::unique_ptr<const indexed_dataset>> opened;
  std::vector<std::uint16_t> batch(static_cast<std::size_t>(q.rows * (q.seq_len + 1)));
  std::vector<piece> pieces;
  for (std::int64_t row = 0; row < q.rows; ++row) {
    const source_sample sample = order.at(row);
    (void)order.pieces(sample, pieces);
    auto& data = opened[sample.source];
    if (!data) data = std::make_unique<const indexed_dataset>(order.prefix(sample.source));
    const auto width = static_cast<std::size_t>(q.seq_len + 1);
    gather<std::uint16_t>(*data, pieces,
                          std::span(batch).subspan(static_cast<std::size_t>(row) * width, width));
  }
}

template <class Open>
void time_of(const question& q, const Open& open) {
  const double wall = now(CLOCK_MONOTONIC);
  const double cpu = now(CLOCK_PROCESS_CPUTIME_ID);
  const auto order = open(q);
  const double opened = now(CLOCK_MONOTONIC);
  serve(order, q);
  const double end = now(CLOCK_MONOTONIC);
  const double spent = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
  std::printf(
      "{\"open\": %.6f, \"gather\": %.6f, \"wall\": %.6f, \"cpu\": %.6f, \"rss_anon_kb\": %ld}\n",
      opened - wall, end - opened, end - wall, spent, millrace::bench::status_of("RssAnon"));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 7) return 2;
  try {
    const question q{argv[2],
                     std::stoll(argv[3]),
                     std::stoll(argv[4]),
                     std::stoll(argv[5]),
                     {argv + 6, argv + argc}};
    if (std::string(argv[1]) == "instant") {
      time_of(q, open_instant);
    } else {
      time_of(q, open_megatron);
    }
  } catch (const std::exception& e) {
    (void)std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
