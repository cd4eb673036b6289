// SPDX-License-Identifier: Apache-2.0
//
// Measures the cost of the loader in a training step on a GPU: the median time of a step that takes
// its batch from the loader, divided by the median time of a step whose batch is already on the
// device. Both medians are measured in one run.
//
//   step_ratio PREFIX [STEPS [MILLISECONDS [ROWS [SEQ_LEN]]]]
//
// PREFIX is a dataset. At the end of the dataset, the loader starts again. A step is a kernel that
// spins, 5 ms by default. CUDA events on the stream of the kernels measure the times of the steps.
// Prints one line of JSON. Without a GPU, the exit status is 77.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/loader/cuda/device_loader.hpp>

#include "spin.hpp"

namespace {

using namespace millrace::loader;

struct setting {
  std::string prefix;
  std::int64_t steps = 2000;
  double milliseconds = 5;
  std::int64_t rows = 8;
  std::int64_t seq_len = 4096;
};

void must(int code, const char* call) {
  cuda::check(*cuda::runtime_api(), code, call);
}

/// Measures the times between marks on a stream, in milliseconds.
class stream_clock {
 public:
  explicit stream_clock(std::int64_t marks) {
    for (std::int64_t i = 0; i < marks; ++i) {
      cudaEvent_t made = nullptr;
      must(cudaEventCreate(&made), "cudaEventCreate");
      events_.push_back(made);
    }
  }
  stream_clock(const stream_clock&) = delete;
  stream_clock& operator=(const stream_clock&) = delete;
  ~stream_clock() {
    for (cudaEvent_t one : events_) (void)cudaEventDestroy(one);
  }
  void mark(cudaStream_t on) { must(cudaEventRecord(events_[at_++], on), "cudaEventRecord"); }
  std::vector<float> steps() const {
    std::vector<float> result;
    for (std::size_t i = 1; i < at_; ++i) {
      float time = 0;
      must(cudaEventElapsedTime(&time, events_[i - 1], events_[i]), "cudaEventElapsedTime");
      result.push_back(time);
    }
    std::ranges::sort(result);
    return result;
  }

 private:
  std::vector<cudaEvent_t> events_;
  std::size_t at_ = 0;
};

float at_share(const std::vector<float>& sorted, double share) {
  return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))];
}

void run(const setting& s) {
  const millrace::dataset::indexed_dataset data(s.prefix);
  const auto make = [&] {
    return std::make_unique<cuda::device_loader>(
        data, loader_options{.batch_size = s.rows, .seq_len = s.seq_len});
  };
  const auto& api = *cuda::runtime_api();
  const auto stream = cuda::make_stream(api);
  const auto sum = cuda::allocate_device(api, 8);
  const cudaStream_t on = stream.get().value;
  const auto nanoseconds = static_cast<std::int64_t>(s.milliseconds * 1e6);
  const auto step = [&](const cuda::device_batch& batch) {
    must(millrace::bench::spin(batch.tokens(), batch.rows(), batch.seq_len(),
                               static_cast<std::int64_t*>(sum.get().value), nanoseconds, on),
         "spin");
  };

  auto loader = make();
  stream_clock resident(s.steps + 1);
  {
    const auto batch = loader->next(on);
    if (!batch) throw millrace::config_error("the dataset has less than one micro-batch");
    for (int i = 0; i < 20; ++i) step(*batch);
    resident.mark(on);
    for (std::int64_t i = 0; i < s.steps; ++i) {
      step(*batch);
      resident.mark(on);
    }
    must(cudaStreamSynchronize(on), "cudaStreamSynchronize");
  }

  stream_clock served(s.steps + 1);
  std::uint64_t bytes = 0;
  std::int64_t tokens = 0;
  served.mark(on);
  for (std::int64_t i = 0; i < s.steps; ++i) {
    auto batch = loader->next(on);
    if (!batch) {
      bytes += loader->report().bytes_to_device;
      tokens += loader->report().tokens;
      loader = make();
      batch = loader->next(on);
    }
    step(*batch);
    served.mark(on);
  }
  must(cudaStreamSynchronize(on), "cudaStreamSynchronize");
  bytes += loader->report().bytes_to_device;
  tokens += loader->report().tokens;

  const auto alone = resident.steps();
  const auto with = served.steps();
  std::cout << "{\"steps\": " << s.steps << ", \"rows\": " << s.rows
            << ", \"seq_len\": " << s.seq_len << ", \"resident_p50_ms\": " << at_share(alone, 0.5)
            << ", \"resident_p99_ms\": " << at_share(alone, 0.99)
            << ", \"loader_p50_ms\": " << at_share(with, 0.5)
            << ", \"loader_p99_ms\": " << at_share(with, 0.99)
            << ", \"ratio_p50\": " << at_share(with, 0.5) / at_share(alone, 0.5)
            << ", \"bytes_per_token\": " << static_cast<double>(bytes) / static_cast<double>(tokens)
            << "}\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 6 || argv[1][0] == '-') {
    std::cerr << "usage: step_ratio PREFIX [STEPS [MILLISECONDS [ROWS [SEQ_LEN]]]]\n";
    return 2;
  }
  try {
    setting s;
    s.prefix = argv[1];
    if (argc > 2) s.steps = std::max(1L, std::strtol(argv[2], nullptr, 10));
    if (argc > 3) s.milliseconds = std::strtod(argv[3], nullptr);
    if (argc > 4) s.rows = std::strtol(argv[4], nullptr, 10);
    if (argc > 5) s.seq_len = std::strtol(argv[5], nullptr, 10);
    const auto answer = cuda::find_device(cuda::runtime_api(), 0);
    if (!answer.usable) {
      std::cerr << "step_ratio: skipped, no usable GPU: " << answer.why << '\n';
      return 77;
    }
    run(s);
  } catch (const std::exception& e) {
    std::cerr << "step_ratio: " << e.what() << '\n';
    return 1;
  }
}
