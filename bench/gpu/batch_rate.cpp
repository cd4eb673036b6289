// SPDX-License-Identifier: Apache-2.0
//
// Measures how fast batches reach a GPU on which nothing else runs.
//
//   batch_rate PREFIX [--rows N] [--seq-len N] [--threads N] [--rounds N] [--seconds N]
//
// PREFIX is the prefix of a dataset. Three kinds of rounds alternate for `--seconds` in total
// (default: 8):
//   copies   one `cudaMemcpyAsync` after another, each of as many bytes as a batch has; this is the
//            upper limit of the rate
//   pipe     a `device_pipe` whose source has its batches ready in page-locked memory
//   loader   a `device_loader`, which reads the dataset with N threads
// Prints the figures as lines of JSON, with medians and spreads over the rounds.
//
// Exit status: 77 if there is no GPU, 78 if the driver is too old.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <millrace/loader/cuda/device_loader.hpp>

#include "bench/gpu/device_clock.hpp"
#include "bench/gpu/device_program.hpp"
#include "bench/gpu/endless_run.hpp"
#include "bench/gpu/figure.hpp"
#include "bench/gpu/flags.hpp"

namespace {

using namespace millrace;

struct settings {
  std::string prefix;
  std::int64_t rows = 8;
  std::int64_t seq_len = 4096;
  std::int64_t threads = std::clamp<std::int64_t>(std::thread::hardware_concurrency() / 2, 1, 8);
  std::int64_t rounds = 5;
  double seconds = 8;
};

/// The rate of one round.
struct rate {
  double batches_per_s = 0;
  double processor_us = 0;  // per batch, summed over all threads
};

/// Calls `take_one` repeatedly for about `seconds`, then waits for the stream. Each call of
/// `take_one` enqueues one batch.
template <class Take>
rate measure(double seconds, bench::device_clock& clock, cudaStream_t on, const Take& take_one) {
  const bench::host_clock host;
  std::int64_t batches = 0;
  for (; host.wall_us() < 1e6 * seconds; ++batches) take_one();
  clock.wait(on);
  const auto count = static_cast<double>(batches);
  return {1e6 * count / host.wall_us(), host.processor_us() / count};
}

/// A source whose batches all are the same bytes, which are ready in page-locked memory.
class ready_source {
 public:
  explicit ready_source(const loader::slot_layout& layout)
      : layout_(layout),
        bytes_(layout.used_bytes(0)),
        memory_(loader::cuda::allocate_pinned(*loader::cuda::runtime_api(), bytes_)) {
    auto* const slot = static_cast<std::byte*>(memory_.get().value);
    std::memset(slot, 0, bytes_);
    const std::vector<std::int32_t> real(static_cast<std::size_t>(layout.rows()),
                                         static_cast<std::int32_t>(layout.text_len()));
    std::memcpy(slot + layout.real_offset(), real.data(), 4 * real.size());
  }

  loader::cuda::batch_source source() const {
    loader::cuda::batch_source result;
    result.next = [this]() -> std::optional<loader::cuda::staged_batch> {
      return loader::cuda::staged_batch{.slot = static_cast<const std::byte*>(memory_.get().value),
                                        .layout = layout_};
    };
    return result;
  }
  const void* memory() const { return memory_.get().value; }
  std::size_t bytes() const { return bytes_; }

 private:
  loader::slot_layout layout_;
  std::size_t bytes_;
  loader::cuda::pinned_block memory_;
};

/// Enqueues copies so that the device never waits between two of them. At most 64 copies are in the
/// queue: if the host filled the whole queue of the stream, copying large batches would take
/// minutes.
class copy_queue {
 public:
  copy_queue(const ready_source& from, cudaStream_t on)
      : from_(&from),
        on_(on),
        to_(loader::cuda::allocate_device(*loader::cuda::runtime_api(), from.bytes())) {
    for (auto& done : done_) done = loader::cuda::make_host_event(*loader::cuda::runtime_api());
  }

  void copy() {
    const cudaEvent_t done = done_[at_++ % done_.size()].get().value;
    // Wait for an earlier copy, if there was one, so that at most 64 copies are queued.
    bench::must(cudaEventSynchronize(done), "cudaEventSynchronize");
    bench::must(cudaMemcpyAsync(to_.get().value, from_->memory(), from_->bytes(),
                                cudaMemcpyHostToDevice, on_),
                "cudaMemcpyAsync");
    bench::must(cudaEventRecord(done, on_), "cudaEventRecord");
  }

 private:
  const ready_source* from_;
  cudaStream_t on_;
  loader::cuda::device_memory to_;
  std::array<loader::cuda::owned_event, 64> done_;
  std::size_t at_ = 0;
};

std::string size_text(std::size_t bytes) {
  const std::size_t kib = (bytes + 512) / 1024;
  return kib < 1024 ? std::to_string(kib) + " KiB" : std::to_string((kib + 512) / 1024) + " MiB";
}

struct figures {
  std::vector<double> copy_gb, pipe_rate, pipe_share, loader_rate, loader_share, loader_cpu_us;
};

void print_all(const settings& given, const figures& found, std::size_t text_bytes,
               double bytes_per_token, bool wide) {
  const std::string of = size_text(text_bytes) + (wide ? ", i32" : "");
  std::optional<bench::target> rate, share;
  if (text_bytes < (96U << 10)) rate = bench::target{50000, 100000, true};
  if (text_bytes >= (std::size_t{32} << 20)) share = bench::target{0.8, 0.95, true};
  bench::print({of + ": copies", "GB/s", found.copy_gb, {}});
  bench::print({of + ": batches of the pipe", "1/s", found.pipe_rate, {}});
  bench::print({of + ": pipe over copies of the same bytes", "ratio", found.pipe_share, {}});
  bench::print({of + ": batches of the loader, " + std::to_string(given.threads) + " threads",
                "1/s", found.loader_rate, rate});
  bench::print({of + ": loader over copies of the same bytes", "ratio", found.loader_share, share});
  bench::print({of + ": host CPU per batch of the loader", "us", found.loader_cpu_us, {}});
  bench::print({of + ": bytes to the device per token",
                "bytes",
                {bytes_per_token},
                wide ? bench::target{4.04, 4.04} : bench::target{2.02, 2.02}});
}

int bench_rates(const settings& given) {
  const auto& api = *loader::cuda::runtime_api();
  const auto stream = loader::cuda::make_stream(api);
  const cudaStream_t on = stream.get().value;
  bench::device_clock clock(1);

  loader::loader_options options{.batch_size = given.rows, .seq_len = given.seq_len};
  options.threads = given.threads;
  loader::cuda::device_loader_options device;
  device.pool.budget_bytes = std::size_t{16} << 30;
  loader::cuda::device_loader loader(bench::endless_run(given.prefix, given.seq_len), options,
                                     device);
  std::cerr << "batch_rate: " << loader.memory_report().text() << '\n';
  const loader::slot_layout layout = loader.host().layout();
  const bool wide = layout.width() == loader::token_width::i32;
  const ready_source ready(layout);
  copy_queue copies_of_ready(ready, on);
  loader::cuda::device_pipe pipe(&api, layout, {}, ready.source());

  const auto copy_one = [&] { copies_of_ready.copy(); };
  const auto pipe_one = [&] { (void)pipe.next(on).value(); };
  const auto load_one = [&] { (void)loader.next(on).value(); };
  const double seconds = given.seconds / static_cast<double>(3 * given.rounds);
  (void)measure(seconds / 4, clock, on, copy_one);
  (void)measure(seconds / 4, clock, on, pipe_one);
  (void)measure(seconds / 4, clock, on, load_one);
  figures found;
  for (std::int64_t i = 0; i < given.rounds; ++i) {
    const rate copies = measure(seconds, clock, on, copy_one);
    const rate piped = measure(seconds, clock, on, pipe_one);
    const rate loaded = measure(seconds, clock, on, load_one);
    const auto report = loader.report();
    const double bytes_per_batch =
        static_cast<double>(report.bytes_to_device) / static_cast<double>(report.batches);
    const double copied = copies.batches_per_s * static_cast<double>(ready.bytes());
    found.copy_gb.push_back(copied / 1e9);
    found.pipe_rate.push_back(piped.batches_per_s);
    found.pipe_share.push_back(piped.batches_per_s / copies.batches_per_s);
    found.loader_rate.push_back(loaded.batches_per_s);
    found.loader_share.push_back(loaded.batches_per_s * bytes_per_batch / copied);
    found.loader_cpu_us.push_back(loaded.processor_us);
  }
  const auto report = loader.report();
  print_all(given, found, layout.real_offset(),
            static_cast<double>(report.bytes_to_device) / static_cast<double>(report.tokens), wide);
  return bench::passed;
}

}  // namespace

int main(int argc, char** argv) {
  settings given;
  bench::flags flags(
      "batch_rate PREFIX [--rows N] [--seq-len N] [--threads N] [--rounds N] [--seconds N]");
  flags.argument(&given.prefix);
  flags.add("--rows", &given.rows, 1, 1 << 20);
  flags.add("--seq-len", &given.seq_len, 1, 1 << 20);
  flags.add("--threads", &given.threads, 1, 256);
  flags.add("--rounds", &given.rounds, 1, 1000);
  flags.add("--seconds", &given.seconds, 0.1, 3600);
  if (!flags.parse(argc, argv)) return bench::misused;
  return bench::run_on_device("batch_rate", [&] { return bench_rates(given); });
}
