// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <millrace/loader/cuda/detail/handles.hpp>
#include <millrace/loader/cuda/detail/stream_order.hpp>
#include <millrace/loader/cuda/device_batch.hpp>

#include "gpu/checksum.hpp"
#include "gpu/harness.hpp"
#include "support/fake_cuda/random_batch.hpp"

namespace millrace::test {

/// Creates a stream on the current device.
inline loader::cuda::owned_stream gpu_stream() {
  return loader::cuda::make_stream(gpu_api());
}

/// Returns the checksum that the device should compute.
inline std::uint64_t sum_of(const expected_fields& fields) {
  std::uint64_t sum = 0;
  const auto add = [&sum](const auto& array, std::uint64_t number) {
    for (std::size_t i = 0; i < array.size(); ++i) {
      sum +=
          sum_term(static_cast<std::uint64_t>(static_cast<std::int64_t>(array[i])), 8 * i + number);
    }
  };
  add(fields.tokens, 0);
  add(fields.labels, 1);
  add(fields.position_ids, 2);
  add(fields.loss_mask, 3);
  add(fields.cu_seqlens, 4);
  return sum;
}

/// The checksums of batches. The device computes them, and the host does not wait for the results.
class device_sums {
 public:
  explicit device_sums(std::size_t batches)
      : batches_(batches),
        found_(loader::cuda::allocate_pinned(gpu_api(), bytes())),
        sums_(loader::cuda::allocate_device(gpu_api(), bytes())) {
    std::memset(found_.get().value, 0, bytes());
    const auto stream = gpu_stream();
    must(gpu_api().copy_to_device(sums_.get().value, found_.get().value, bytes(),
                                  stream.get().value),
         "cudaMemcpyAsync");
    loader::cuda::drain(gpu_api(), stream.get().value);
  }

  /// Enqueues the checksum of the next batch on the stream, after a delay.
  void add(const loader::cuda::device_batch& batch, std::int64_t delay_ns,
           loader::cuda::stream on) {
    expect(batch.on_device(), "a batch is not on the device");
    expect(at_ < batches_, "there are more batches than expected");
    summed_arrays arrays;
    arrays.tokens = batch.tokens();
    arrays.labels = batch.labels();
    arrays.position_ids = batch.position_ids();
    arrays.loss_mask = batch.loss_mask();
    arrays.cu_seqlens = batch.cu_seqlens();
    arrays.elements = batch.rows() * batch.seq_len();
    arrays.entries = batch.cu_seqlens_size();
    must(add_checksum(arrays, delay_ns, static_cast<std::uint64_t*>(sums_.get().value) + at_++, on),
         "kernel launch");
  }

  /// Waits for the stream. Fails the test unless the computed checksums equal `wanted`.
  void expect_sums(const std::vector<std::uint64_t>& wanted, loader::cuda::stream on) {
    expect_equal(at_, wanted.size(), "number of batches");
    must(gpu_api().copy_to_host(found_.get().value, sums_.get().value, bytes(), on),
         "cudaMemcpyAsync");
    loader::cuda::drain(gpu_api(), on);
    const auto* found = static_cast<const std::uint64_t*>(found_.get().value);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      expect(found[i] == wanted[i], "batch " + std::to_string(i) + " is wrong on the device");
    }
  }

 private:
  std::size_t bytes() const { return batches_ * sizeof(std::uint64_t); }

  std::size_t batches_;
  std::size_t at_ = 0;
  loader::cuda::pinned_block found_;
  loader::cuda::device_memory sums_;
};

/// Returns the checksums that the device should compute, one per batch.
inline std::vector<std::uint64_t> sums_of(const std::vector<random_batch>& batches) {
  std::vector<std::uint64_t> sums;
  sums.reserve(batches.size());
  for (const random_batch& batch : batches) sums.push_back(sum_of(batch.expected));
  return sums;
}

/// Returns `count` random batches of the same shape.
inline std::vector<random_batch> random_batches(std::mt19937_64& random, std::size_t count,
                                                const random_shape& shape,
                                                const loader::cuda::batch_rules& rules) {
  std::vector<random_batch> batches;
  batches.reserve(count);
  for (std::size_t i = 0; i < count; ++i)
    batches.push_back(make_random_batch(random, shape, rules));
  return batches;
}

}  // namespace millrace::test
