// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>

#include <cstdint>

#include <millrace/loader/detail/telemetry/duration_histogram.hpp>

namespace millrace::loader {

/// Kernel counters of a thread, counted since the thread started.
struct thread_usage {
  std::int64_t major_faults = 0;        ///< number of page faults that needed a read from storage
  std::int64_t voluntary_switches = 0;  ///< number of times that the thread gave up the CPU to wait
};

/// Returns the usage of the calling thread. Makes a system call, which takes about 300 ns.
inline thread_usage usage_of_this_thread() noexcept {
  rusage usage{};
  // This cannot fail: the arguments are valid.
  (void)::getrusage(RUSAGE_THREAD, &usage);
  return {usage.ru_majflt, usage.ru_nvcsw};
}

/// Distinguishes reads that waited for storage from reads that were merely long.
///
/// A thread that waits for a page or for the end of a request gives up the CPU, and the kernel
/// counts how often. A thread that only copies keeps the CPU. Querying the kernel's counters takes
/// as long as a short read. So they are queried only after reads that look slow, and after 32 reads
/// without a query. Only the reading thread may use this class; any thread may call `faults`.
class block_probe {
 public:
  explicit block_probe(thread_usage (*usage)() noexcept) noexcept : usage_(usage) {}

  /// Records a wait of `ns` nanoseconds for a slot, so that this wait is not attributed to storage.
  void waited(std::int64_t ns) noexcept {
    if (!started_ || ns >= wait_ns) (void)ask();
  }

  /// Records a read of `bytes` bytes that took `ns` nanoseconds. Returns true if the read waited
  /// for storage.
  bool blocked(std::int64_t ns, std::int64_t bytes) noexcept {
    if (ns >= short_read_ns && (blocked_ || ns > 3 * usual(bytes) || ns > bytes)) {
      return blocked_ = ask();
    }
    if (bytes >= measured_bytes && (usual_bytes_ == 0 || ns < usual(bytes))) {
      usual_ns_ = ns;
      usual_bytes_ = bytes;
    }
    if (++unasked_ < ask_every) return false;
    const bool waited = ask();
    blocked_ = waited && ns >= short_read_ns;
    return blocked_;
  }

  /// Number of major faults of the reading thread until the last query. Faults of up to 32 later
  /// reads are missing.
  std::int64_t faults() const noexcept { return faults_.value(); }

 private:
  // Any disk access takes longer than this.
  static constexpr std::int64_t short_read_ns = 20'000;
  // The time of smaller reads says little about throughput.
  static constexpr std::int64_t measured_bytes = 4096;
  // Two context switches take longer than this; taking a free slot takes less. After a wait of at
  // least this length, the time for a query does not matter.
  static constexpr std::int64_t wait_ns = 4'000;
  static constexpr int ask_every = 32;

  /// The expected time for this many bytes, at the speed of the fastest read so far.
  std::int64_t usual(std::int64_t bytes) const noexcept {
    if (usual_bytes_ == 0) return 0;
    return static_cast<std::int64_t>(static_cast<double>(usual_ns_) * static_cast<double>(bytes) /
                                     static_cast<double>(usual_bytes_));
  }

  /// Queries the kernel. Returns true if the thread has waited since the last query.
  bool ask() noexcept {
    const thread_usage now = usage_();
    const bool waited = started_ && (now.major_faults > last_.major_faults ||
                                     now.voluntary_switches > last_.voluntary_switches);
    if (started_) faults_.add(now.major_faults - last_.major_faults);
    last_ = now;
    started_ = true;
    unasked_ = 0;
    return waited;
  }

  thread_usage (*usage_)() noexcept;
  thread_usage last_;
  bool started_ = false;
  bool blocked_ = false;
  std::int64_t usual_ns_ = 0;
  std::int64_t usual_bytes_ = 0;
  int unasked_ = 0;
  counter faults_;
};

}  // namespace millrace::loader
