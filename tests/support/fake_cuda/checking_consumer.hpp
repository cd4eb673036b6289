// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include <millrace/loader/cuda/device_batch.hpp>

#include "support/fake_cuda/fake_cuda.hpp"
#include "support/fake_cuda/random_batch.hpp"

namespace millrace::test {

/// Compares the arrays of a batch with the expected ones. Returns the name of the first that
/// differs, or "".
inline std::string difference(const loader::cuda::batch_work& found, std::int64_t cu_seqlens_size,
                              const expected_fields& expected) {
  const auto differs = [](const auto* array, const auto& wanted) {
    return std::memcmp(array, wanted.data(), wanted.size() * sizeof(wanted[0])) != 0;
  };
  if (differs(found.tokens, expected.tokens)) return "tokens";
  if (differs(found.labels, expected.labels)) return "labels";
  if (differs(found.position_ids, expected.position_ids)) return "position_ids";
  if (differs(found.loss_mask, expected.loss_mask)) return "loss_mask";
  if (static_cast<std::size_t>(cu_seqlens_size) != expected.cu_seqlens.size()) {
    return "cu_seqlens_size";
  }
  if (differs(found.cu_seqlens, expected.cu_seqlens)) return "cu_seqlens";
  return "";
}

/// Acts as a trainer. For each batch, it puts a comparison with the expected arrays on its stream.
/// The stream runs the comparison later, in its order.
class checking_consumer {
 public:
  explicit checking_consumer(fake_cuda& cuda) : cuda_(&cuda) {}

  void use(const loader::cuda::device_batch& batch, const random_batch& wanted,
           loader::cuda::stream on) {
    loader::cuda::batch_work found;
    found.tokens = const_cast<std::int64_t*>(batch.tokens());
    found.labels = const_cast<std::int64_t*>(batch.labels());
    found.position_ids = const_cast<std::int64_t*>(batch.position_ids());
    found.loss_mask = const_cast<float*>(batch.loss_mask());
    found.cu_seqlens = const_cast<std::int32_t*>(batch.cu_seqlens());
    const auto elements = static_cast<std::size_t>(batch.rows() * batch.seq_len());
    const auto entries = batch.cu_seqlens_size();
    cuda_->put(on,
               {{found.tokens, 8 * elements},
                {found.labels, 8 * elements},
                {found.position_ids, 8 * elements},
                {found.loss_mask, 4 * elements},
                {found.cu_seqlens, 4 * static_cast<std::size_t>(entries)}},
               [this, found, entries, &wanted, number = batch.micro_batch()] {
                 const std::string what = difference(found, entries, wanted.expected);
                 const std::scoped_lock lock(mutex_);
                 ++seen_;
                 if (!what.empty()) wrong_.push_back(what + " of " + std::to_string(number));
               });
  }

  std::int64_t seen() const {
    const std::scoped_lock lock(mutex_);
    return seen_;
  }
  std::vector<std::string> wrong() const {
    const std::scoped_lock lock(mutex_);
    return wrong_;
  }

 private:
  fake_cuda* cuda_;
  mutable std::mutex mutex_;
  std::int64_t seen_ = 0;
  std::vector<std::string> wrong_;
};

}  // namespace millrace::test
