// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace millrace::preprocess {

/// Seconds that each stage of a run was busy. Waiting for another stage does not count. In a job,
/// each value is the sum over all its processes. Each process has one reader, one committer and its
/// own workers.
struct stage_times {
  double read = 0;        ///< the reader: reading, decompressing, cutting into blocks
  double read_spans = 0;  ///< reading that workers do for the reader; sum over the workers
  double encode = 0;      ///< parsing and tokenizing, summed over the workers
  double write = 0;       ///< writing encoded blocks; in a job, also merging the parts
  double sync = 0;        ///< completing the outputs and making them durable

  stage_times& operator+=(const stage_times& more) noexcept {
    read += more.read;
    read_spans += more.read_spans;
    encode += more.encode;
    write += more.write;
    sync += more.sync;
    return *this;
  }
};

/// The stage that was the bottleneck of a run, such as "encode". The name is empty if no stage was
/// timed.
struct slow_stage {
  std::string_view name;
  double busy_part = 0;  ///< fraction of the run's time; average over workers or processes
};

/// @param workers    total number of workers in all processes
/// @param processes  number of processes in the run. A stage that uses one thread per process still
///                   runs in parallel in all processes.
inline slow_stage slowest_stage(const stage_times& busy, double seconds, int workers,
                                int processes = 1) {
  slow_stage slowest;
  if (!(seconds > 0) || workers < 1 || processes < 1) return slowest;
  const auto consider = [&](std::string_view name, double stage_seconds, int side_by_side) {
    const double part = stage_seconds / side_by_side / seconds;
    if (part > slowest.busy_part) slowest = {name, part};
  };
  consider("read", busy.read, processes);
  consider("read_spans", busy.read_spans, workers);
  consider("encode", busy.encode, workers);
  consider("write", busy.write, processes);
  consider("sync", busy.sync, processes);
  return slowest;
}

/// Adds up the time for which each stage is busy. Any thread may use it.
///
///   const auto timed = clock.time(stage_clock::stage::encode);  // until the end of the scope
class stage_clock {
 public:
  enum class stage : std::uint8_t { read, read_spans, encode, write, sync };

  /// Adds the time from the construction to the destruction of this object to the time of a stage.
  class running {
   public:
    running(stage_clock& clock, stage which)
        : nanoseconds_(clock.nanoseconds_[static_cast<std::size_t>(which)]) {}
    running(const running&) = delete;
    running& operator=(const running&) = delete;
    ~running() {
      const auto passed = std::chrono::steady_clock::now() - start_;
      nanoseconds_.fetch_add(std::chrono::duration_cast<std::chrono::nanoseconds>(passed).count(),
                             std::memory_order_relaxed);
    }

   private:
    std::atomic<std::int64_t>& nanoseconds_;
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  };

  [[nodiscard]] running time(stage which) { return {*this, which}; }

  /// The times so far. Includes only `running` objects that were already destroyed.
  stage_times busy() const noexcept {
    return {.read = seconds(stage::read),
            .read_spans = seconds(stage::read_spans),
            .encode = seconds(stage::encode),
            .write = seconds(stage::write),
            .sync = seconds(stage::sync)};
  }

 private:
  double seconds(stage which) const noexcept {
    return 1e-9 * static_cast<double>(nanoseconds_[static_cast<std::size_t>(which)].load(
                      std::memory_order_relaxed));
  }

  std::array<std::atomic<std::int64_t>, 5> nanoseconds_{};
};

}  // namespace millrace::preprocess
