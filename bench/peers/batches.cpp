// SPDX-License-Identifier: Apache-2.0
//
// Measures how much time and memory millrace needs to serve micro-batches. Prints one line of JSON.
// The script bench/peers/loader runs this program.
//
//   bench_batches instant|megatron PREFIX SEQ_LEN BATCH BATCHES
//
// The batches have int64 tokens and labels in host memory. One thread fills them. The measured
// times exclude the first batch.
#include <sys/resource.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <numeric>
#include <string>

#include <millrace/dataset/instant_run.hpp>
#include <millrace/dataset/megatron_run.hpp>
#include <millrace/loader/batch_loader.hpp>

namespace {

using namespace millrace;

double seconds(const ::timeval& t) {
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
}
double cpu_seconds() {
  ::rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}
double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::unique_ptr<loader::batch_loader> open(const std::string& order, const std::string& prefix,
                                           std::int64_t seq_len,
                                           const loader::loader_options& options,
                                           std::int64_t samples) {
  if (order == "megatron") {
    const auto run = dataset::megatron_run::build(
        {.datasets = {{prefix, samples}}},
        {.sequence_length = seq_len, .part = dataset::split_part::train, .random_seed = 1},
        "100,0,0");
    return std::make_unique<loader::batch_loader>(run, options);
  }
  dataset::instant_options instant;
  instant.seed = 1;
  instant.seq_len = seq_len;
  instant.segments.push_back({0, {{0, 1.0}}});
  instant.first_position_of = [rows = options.batch_size](std::int64_t step) {
    return step * rows;
  };
  instant.train_samples = samples;
  return std::make_unique<loader::batch_loader>(
      dataset::instant_run({{prefix, "", {}, {}}}, instant), options);
}

void measure(const std::string& order, const std::string& prefix, std::int64_t seq_len,
             std::int64_t rows, std::int64_t batches) {
  const double begin = wall_seconds();
  const loader::loader_options options = {.batch_size = rows, .look_ahead = 4};
  const auto loader = open(order, prefix, seq_len, options, rows * (batches + 1));
  const auto first = loader->next();
  const std::int64_t sum =
      std::accumulate(first->tokens().begin(), first->tokens().end(), std::int64_t{0});
  const double ready = wall_seconds();
  const double cpu = cpu_seconds();
  std::int64_t count = 0;
  while (count < batches && loader->next()) ++count;
  const double wall = wall_seconds() - ready;
  std::cout << "{\"rival\": \"millrace " << order << "\", \"start_s\": " << ready - begin
            << ", \"us_per_batch\": " << wall / static_cast<double>(count) * 1e6
            << ", \"cpu_us_per_batch\": "
            << (cpu_seconds() - cpu) / static_cast<double>(count) * 1e6
            << ", \"batches\": " << count << ", \"first_sum\": " << sum << "}\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::cerr << "usage: bench_batches instant|megatron PREFIX SEQ_LEN BATCH BATCHES\n";
    return 2;
  }
  try {
    measure(argv[1], argv[2], std::atoll(argv[3]), std::atoll(argv[4]), std::atoll(argv[5]));
  } catch (const std::exception& e) {
    std::cerr << "bench_batches: " << e.what() << '\n';
    return 1;
  }
}
