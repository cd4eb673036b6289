// SPDX-License-Identifier: Apache-2.0
//
// A device pipe with an interface of C functions, so that torch_tensors.py can load it with ctypes.
// No exception leaves these functions.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <millrace/loader/cuda/detail/device_pipe.hpp>
#include <millrace/loader/cuda/detail/dlpack_tensor.hpp>

#include "support/fake_cuda/pinned_source.hpp"
#include "support/fake_cuda/random_batch.hpp"

namespace {

using namespace millrace;
using loader::cuda::batch_field;

std::vector<test::random_batch> random_batches(std::int64_t count, std::int64_t rows,
                                               std::int64_t seq_len) {
  std::mt19937_64 random(1);
  std::vector<test::random_batch> batches;
  for (std::int64_t i = 0; i < count; ++i) {
    batches.push_back(make_random_batch(random, test::random_shape{rows, seq_len}, {}));
  }
  return batches;
}

thread_local std::string last_error;  // NOLINT(cert-err58-cpp): an empty string does not throw

}  // namespace

struct gpu_tensors {
  gpu_tensors(std::int64_t batches, std::int64_t rows, std::int64_t seq_len)
      : source(loader::cuda::runtime_api(), random_batches(batches, rows, seq_len)),
        pipe(loader::cuda::runtime_api(), source.batches()[0].layout, {}, source.source()) {}

  test::pinned_source source;
  loader::cuda::device_pipe pipe;
};

extern "C" {

__attribute__((visibility("default"))) const char* gpu_tensors_error() {
  return last_error.c_str();
}

/// Returns null after a failure.
__attribute__((visibility("default"))) gpu_tensors* gpu_tensors_open(std::int64_t batches,
                                                                     std::int64_t rows,
                                                                     std::int64_t seq_len) {
  try {
    return std::make_unique<gpu_tensors>(batches, rows, seq_len).release();
  } catch (const std::exception& e) {
    last_error = e.what();
    return nullptr;
  }
}

/// Creates DLManagedTensors for the tokens and labels of the next batch. Returns 1 on success, 0
/// after the last batch, and -1 after a failure.
__attribute__((visibility("default"))) int gpu_tensors_next(
    gpu_tensors* from, loader::cuda::stream on, loader::cuda::dlpack::managed_tensor** tokens,
    loader::cuda::dlpack::managed_tensor** labels) {
  try {
    const auto batch = from->pipe.next(on);
    if (!batch) return 0;
    auto of_tokens = to_dlpack(*batch, batch_field::tokens);
    auto of_labels = to_dlpack(*batch, batch_field::labels);
    *tokens = of_tokens.release();
    *labels = of_labels.release();
    return 1;
  } catch (const std::exception& e) {
    last_error = e.what();
    return -1;
  }
}

/// Returns the expected tokens (field 0) or labels (field 1) of a batch, in host memory.
__attribute__((visibility("default"))) const std::int64_t* gpu_tensors_expected(
    const gpu_tensors* from, std::int64_t batch, int field) {
  const auto& expected = from->source.batches()[static_cast<std::size_t>(batch)].expected;
  return field == 0 ? expected.tokens.data() : expected.labels.data();
}

__attribute__((visibility("default"))) void gpu_tensors_close(gpu_tensors* ended) {
  const std::unique_ptr<gpu_tensors> owner(ended);
}

}  // extern "C"
