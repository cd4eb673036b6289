// SPDX-License-Identifier: Apache-2.0
//
// Measures how long the loader's kernel runs for one micro-batch. Launches the kernel 1,000 times
// without gaps, subtracts the time of 1,000 launches of an empty kernel, and divides by 1,000.
// Prints one line of JSON per kind of batch.
//
//   kernel_time [--rounds N] [--rows N] [--seq-len N]
//   kernel_time --launches N    launches each kind N times, for profilers
//
// Exit status: 77 if there is no GPU, 78 if the driver is too old.

#include <cstdint>
#include <iostream>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "bench/gpu/device_program.hpp"
#include "bench/gpu/figure.hpp"
#include "bench/gpu/flags.hpp"
#include "bench/gpu/kernel_clock.hpp"
#include "support/fake_cuda/random_batch.hpp"

namespace {

using namespace millrace;

struct settings {
  std::int64_t rounds = 9;
  std::int64_t rows = 8;
  std::int64_t seq_len = 4096;
  std::int64_t launches = 0;
};

struct kind {
  const char* name;
  test::random_batch batch;
  loader::cuda::wanted_fields fields;
  std::optional<bench::target> target;
};

std::vector<kind> kinds_of(const settings& given) {
  std::mt19937_64 random(1);
  const loader::cuda::batch_rules rules = {
      .eod = 7, .eod_mask_loss = true, .positions = loader::cuda::position_rule::after_eod};
  const test::random_shape plain = {given.rows, given.seq_len, true, loader::token_width::u16,
                                    0.002,      false};
  test::random_shape packed = plain;
  packed.packed = true;
  packed.longest = 2000;
  packed.padding = 1;
  test::random_shape masked = packed;
  masked.masked = true;
  return {{"kernel, plain",
           make_random_batch(random, plain, {}),
           {true, true, false, false, false},
           bench::target{5, 3}},
          {"kernel, plain with positions, mask and cu_seqlens",
           make_random_batch(random, plain, rules),
           {},
           {}},
          {"kernel, packed with positions and mask",
           make_random_batch(random, packed, rules),
           {},
           bench::target{7, 4}},
          {"kernel, packed with positions and the mask of a dataset",
           make_random_batch(random, masked, rules),
           {},
           {}}};
}

int run(const settings& given) {
  for (const kind& each : kinds_of(given)) {
    bench::kernel_clock clock(each.batch, each.fields);
    if (given.launches > 0) {
      for (std::int64_t i = 0; i < given.launches; ++i) clock.launch();
      clock.wait();
      continue;
    }
    (void)clock.round();  // not measured: lets the device raise its clock frequency
    bench::figure figure{each.name, "us", {}, each.target};
    for (std::int64_t i = 0; i < given.rounds; ++i) figure.rounds.push_back(clock.round());
    print(figure);
  }
  return bench::passed;
}

}  // namespace

int main(int argc, char** argv) {
  settings given;
  bench::flags flags("kernel_time [--rounds N] [--rows N] [--seq-len N] [--launches N]");
  flags.add("--rounds", &given.rounds, 1, 1000);
  flags.add("--rows", &given.rows, 1, 65536);
  flags.add("--seq-len", &given.seq_len, 1, 1 << 20);
  flags.add("--launches", &given.launches, 1, bench::kernel_clock::launches);
  if (!flags.parse(argc, argv)) return bench::misused;
  return bench::run_on_device("kernel_time", [&] { return run(given); });
}
