// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>
#include <sys/resource.h>

#include <chrono>
#include <cstddef>
#include <vector>

#include <millrace/loader/cuda/detail/cuda_error.hpp>

namespace millrace::bench {

/// @throws cuda_error  the call failed
inline void must(int code, const char* call) {
  loader::cuda::check(*loader::cuda::runtime_api(), code, call);
}

/// Measures the times between marks on a stream. Marks are CUDA events. After read() or clear(),
/// the events are reused.
class device_clock {
 public:
  explicit device_clock(std::size_t most_marks) : events_(most_marks, nullptr) {
    for (cudaEvent_t& made : events_) must(cudaEventCreate(&made), "cudaEventCreate");
    must(cudaEventCreateWithFlags(&end_, cudaEventBlockingSync | cudaEventDisableTiming),
         "cudaEventCreateWithFlags");
  }
  device_clock(const device_clock&) = delete;
  device_clock& operator=(const device_clock&) = delete;
  ~device_clock() {
    for (cudaEvent_t one : events_) (void)cudaEventDestroy(one);
    (void)cudaEventDestroy(end_);
  }

  void clear() { marks_ = 0; }
  void mark(cudaStream_t on) { must(cudaEventRecord(events_.at(marks_++), on), "cudaEventRecord"); }

  /// Waits for the stream without using CPU time, then returns the times between successive marks
  /// in microseconds.
  std::vector<double> read(cudaStream_t on) {
    wait(on);
    std::vector<double> times;
    for (std::size_t i = 1; i < marks_; ++i) {
      float milliseconds = 0;
      must(cudaEventElapsedTime(&milliseconds, events_[i - 1], events_[i]), "cudaEventElapsedTime");
      times.push_back(1000 * static_cast<double>(milliseconds));
    }
    marks_ = 0;
    return times;
  }

  /// Waits for the stream without using CPU time.
  void wait(cudaStream_t on) {
    must(cudaEventRecord(end_, on), "cudaEventRecord");
    must(cudaEventSynchronize(end_), "cudaEventSynchronize");
  }

 private:
  std::vector<cudaEvent_t> events_;
  cudaEvent_t end_ = nullptr;
  std::size_t marks_ = 0;
};

/// Measures the wall time since the construction of this object, and the CPU time that all threads
/// of this process have used since then.
class host_clock {
 public:
  double wall_us() const {
    return std::chrono::duration<double, std::micro>(clock::now() - begin_).count();
  }
  double processor_us() const { return processor_now() - used_; }

 private:
  using clock = std::chrono::steady_clock;
  static double processor_now() {
    rusage usage{};
    (void)::getrusage(RUSAGE_SELF, &usage);  // cannot fail with these arguments
    const auto us = [](const timeval& time) {
      return 1e6 * static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec);
    };
    return us(usage.ru_utime) + us(usage.ru_stime);
  }

  clock::time_point begin_ = clock::now();
  double used_ = processor_now();
};

}  // namespace millrace::bench
