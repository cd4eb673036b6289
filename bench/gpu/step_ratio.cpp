// SPDX-License-Identifier: Apache-2.0
//
// Measures how much time the loader adds to a training step on a GPU. A "served" step takes its
// batch from the loader. A "resident" step uses a batch that is already on the device. The result
// is the difference between their times.
//
//   step_ratio PREFIX [--load one_sm|all_sms|memory] [--milliseconds T] [--rounds N] [--seconds N]
//                     [--rows N] [--seq-len N]
//
// PREFIX is the prefix of a dataset. A step is a kernel that takes T ms (default: 5). With
// `--load`, the kernel keeps one multiprocessor (`one_sm`), all multiprocessors (`all_sms`) or the
// bandwidth of the memory (`memory`) busy. Rounds of served steps and rounds of resident steps
// alternate for `--seconds` in total (default: 10). The same events are recorded around every step.
// Prints the figures as lines of JSON, with medians and spreads over the rounds.
//
// Exit status: 77 if there is no GPU, 78 if the driver is too old.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/loader/cuda/device_loader.hpp>

#include "bench/gpu/device_clock.hpp"
#include "bench/gpu/device_program.hpp"
#include "bench/gpu/endless_run.hpp"
#include "bench/gpu/figure.hpp"
#include "bench/gpu/flags.hpp"
#include "bench/gpu/kernel_clock.hpp"
#include "bench/gpu/spin.hpp"

namespace {

using namespace millrace;

struct settings {
  std::string prefix;
  std::string load = "one_sm";
  double milliseconds = 5;
  std::int64_t rounds = 5;
  double seconds = 10;
  std::int64_t rows = 8;
  std::int64_t seq_len = 4096;
};

std::optional<bench::load> load_named(std::string_view name) {
  if (name == "one_sm") return bench::load::one_sm;
  if (name == "all_sms") return bench::load::all_sms;
  if (name == "memory") return bench::load::memory;
  return std::nullopt;
}

/// The simulated training step.
class trainer {
 public:
  trainer(bench::load load, double milliseconds)
      : nanoseconds_(static_cast<std::int64_t>(1e6 * milliseconds)),
        api_(*loader::cuda::runtime_api()),
        stream_(loader::cuda::make_stream(api_)),
        sum_(loader::cuda::allocate_device(api_, sizeof(std::int64_t))) {
    bench::must(bench::plan_step(load, &kernel_), "plan_step");
    if (kernel_.buffer_bytes == 0) return;
    buffer_ = loader::cuda::allocate_device(api_, kernel_.buffer_bytes);
    bench::must(cudaMemsetAsync(buffer_.get().value, 0, kernel_.buffer_bytes, on()),
                "cudaMemsetAsync");
  }

  void step(const loader::cuda::device_batch& batch) const {
    bench::must(
        bench::run_step(kernel_, buffer_.get().value, batch.tokens(), batch.rows(), batch.seq_len(),
                        static_cast<std::int64_t*>(sum_.get().value), nanoseconds_, on()),
        "kernel launch");
  }
  cudaStream_t on() const { return stream_.get().value; }

 private:
  std::int64_t nanoseconds_;
  const loader::cuda::cuda_api& api_;
  loader::cuda::owned_stream stream_;
  loader::cuda::device_memory sum_;
  loader::cuda::device_memory buffer_;
  bench::step_kernel kernel_;
};

struct round_times {
  std::vector<double> steps_us;
  double wall_us = 0;       // per step
  double processor_us = 0;  // per step, summed over all threads
};

/// Measures `steps` steps. `take_step` enqueues one step.
template <class Step>
round_times measure(std::int64_t steps, bench::device_clock& clock, cudaStream_t on,
                    const Step& take_step) {
  clock.clear();
  const bench::host_clock host;
  clock.mark(on);
  for (std::int64_t i = 0; i < steps; ++i) {
    take_step();
    clock.mark(on);
  }
  clock.wait(on);
  round_times times;
  times.wall_us = host.wall_us() / static_cast<double>(steps);
  times.processor_us = host.processor_us() / static_cast<double>(steps);
  times.steps_us = clock.read(on);
  return times;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

/// The figures, one value per round.
struct figures {
  std::vector<double> median_us, mean_us, p99_us, resident_us, served_us, resident_p99_us,
      served_p99_us, wall_us, processor_us;

  void add(const round_times& resident, const round_times& served) {
    resident_us.push_back(bench::median(resident.steps_us));
    served_us.push_back(bench::median(served.steps_us));
    resident_p99_us.push_back(bench::quantile(resident.steps_us, 0.99));
    served_p99_us.push_back(bench::quantile(served.steps_us, 0.99));
    median_us.push_back(served_us.back() - resident_us.back());
    p99_us.push_back(served_p99_us.back() - resident_p99_us.back());
    mean_us.push_back(mean(served.steps_us) - mean(resident.steps_us));
    wall_us.push_back(served.wall_us - resident.wall_us);
    processor_us.push_back(served.processor_us);
  }
};

// Returns the time that the loader's kernel alone takes for a batch of the same shape, in
// microseconds.
double kernel_us(const settings& given) {
  std::mt19937_64 random(1);
  bench::kernel_clock clock(
      make_random_batch(random,
                        test::random_shape{given.rows, given.seq_len, true,
                                           loader::token_width::u16, 0.001, false},
                        {}),
      {});
  return bench::median({clock.round(), clock.round(), clock.round()});
}

bool one_queue() {
  const char* connections = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  return connections != nullptr && std::string_view(connections) == "1";
}

std::string title(const settings& given) {
  std::string milliseconds = std::to_string(given.milliseconds);
  milliseconds.erase(milliseconds.find_last_not_of('0') + 1);
  if (milliseconds.back() == '.') milliseconds.pop_back();
  return given.load + " " + milliseconds + " ms" + (one_queue() ? ", one queue" : "");
}

void print_all(const settings& given, const figures& found, double kernel) {
  const std::string of = title(given);
  const bool exposed = given.load != "one_sm" || one_queue();
  const double own = exposed ? kernel : 0;
  bench::print(
      {of + ": exposed per step", "us", found.median_us, bench::target{own + 4, own + 1.5}});
  bench::print({of + ": exposed per step, of the means", "us", found.mean_us, {}});
  bench::print({of + ": exposed at p99", "us", found.p99_us, {}});
  bench::print({of + ": exposed in wall time per step", "us", found.wall_us, {}});
  std::optional<bench::target> processor;
  if (given.milliseconds == 5) processor = bench::target{40, 20};
  bench::print({of + ": host CPU per batch, all threads", "us", found.processor_us, processor});
  bench::print({of + ": resident step", "us", found.resident_us, {}});
  bench::print({of + ": served step", "us", found.served_us, {}});
  bench::print({of + ": resident step, p99", "us", found.resident_p99_us, {}});
  bench::print({of + ": served step, p99", "us", found.served_p99_us, {}});
  if (exposed) bench::print({of + ": kernel time in the target", "us", {kernel}, {}});
}

int bench_steps(const settings& given) {
  const auto load = load_named(given.load);
  if (!load) {
    std::cerr << "--load is '" << given.load << "', expected one_sm, all_sms or memory\n";
    return bench::misused;
  }
  const double kernel = kernel_us(given);
  const double planned =
      1000 * given.seconds / (2 * given.milliseconds) / static_cast<double>(given.rounds);
  const auto steps = std::clamp<std::int64_t>(static_cast<std::int64_t>(planned), 20, 20000);
  const trainer trainer(*load, given.milliseconds);
  const cudaStream_t on = trainer.on();
  bench::device_clock clock(static_cast<std::size_t>(steps) + 1);
  const auto run = bench::endless_run(given.prefix, given.seq_len);
  const loader::loader_options options{.batch_size = given.rows, .seq_len = given.seq_len};
  loader::cuda::device_loader loader(run, options);
  // Take the resident batch from a second loader, so that it occupies no slot of the first loader.
  loader::cuda::device_loader idle(run, options);
  const auto resident = idle.next(on);
  const auto take_resident = [&] { trainer.step(resident.value()); };
  const auto take_served = [&] { trainer.step(loader.next(on).value()); };
  (void)measure(20, clock, on, take_resident);
  (void)measure(20, clock, on, take_served);
  figures found;
  for (std::int64_t i = 0; i < given.rounds; ++i) {
    const round_times alone = measure(steps, clock, on, take_resident);
    found.add(alone, measure(steps, clock, on, take_served));
  }
  print_all(given, found, kernel);
  return bench::passed;
}

}  // namespace

int main(int argc, char** argv) {
  settings given;
  bench::flags flags(
      "step_ratio PREFIX [--load one_sm|all_sms|memory] [--milliseconds T] [--rounds N] "
      "[--seconds N] [--rows N] [--seq-len N]");
  flags.argument(&given.prefix);
  flags.add("--load", &given.load);
  flags.add("--milliseconds", &given.milliseconds, 0.01, 900);
  flags.add("--rounds", &given.rounds, 1, 1000);
  flags.add("--seconds", &given.seconds, 0.1, 3600);
  flags.add("--rows", &given.rows, 1, 65536);
  flags.add("--seq-len", &given.seq_len, 1, 1 << 20);
  if (!flags.parse(argc, argv)) return bench::misused;
  return bench::run_on_device("step_ratio", [&] { return bench_steps(given); });
}
