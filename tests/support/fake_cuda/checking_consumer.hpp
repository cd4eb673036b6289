// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include <millrace/loader/cuda/device_batch.hpp>

#include "support/fake_cuda/fake_cuda.hpp"
#include "support/fake_cuda/kernel_memory.hpp"
#include "support/fake_cuda/random_batch.hpp"

namespace millrace::test {

/// Describes the arrays of a batch in the form that the kernel uses.
inline loader::cuda::batch_work arrays_of(const loader::cuda::device_batch& batch) {
  loader::cuda::batch_work found;
  found.rows = batch.rows();
  found.seq_len = batch.seq_len();
  found.ids = batch.ids();
  const auto pick = [&](const std::int64_t* wide, const std::int32_t* narrow) {
    const bool is_wide = found.ids == loader::cuda::id_width::i64;
    return const_cast<void*>(is_wide ? static_cast<const void*>(wide) : narrow);
  };
  found.tokens = pick(batch.tokens(), batch.tokens<std::int32_t>());
  found.labels = pick(batch.labels(), batch.labels<std::int32_t>());
  found.position_ids = pick(batch.position_ids(), batch.position_ids<std::int32_t>());
  found.loss_mask = const_cast<float*>(batch.loss_mask());
  found.segment_ids = const_cast<std::int32_t*>(batch.segment_ids());
  found.cu_seqlens = const_cast<std::int32_t*>(batch.cu_seqlens());
  found.cu_seqlens_padded = const_cast<std::int32_t*>(batch.cu_seqlens_padded());
  found.cu_seqlens_size = batch.cu_seqlens_size();
  return found;
}

/// Compares the arrays of a batch with the expected arrays. Skips arrays that are null. Returns the
/// name of the first array that differs, or "".
///
/// @param cu_seqlens_used  number of entries of cu_seqlens, without the entries that repeat the
///                         last one
inline std::string difference(const loader::cuda::batch_work& found, std::int64_t cu_seqlens_used,
                              const expected_fields& expected) {
  const auto ids_differ = [&](const void* array, const std::vector<std::int64_t>& wanted) {
    if (array == nullptr) return false;
    if (found.ids == loader::cuda::id_width::i64) {
      return std::memcmp(array, wanted.data(), wanted.size() * sizeof(wanted[0])) != 0;
    }
    const auto* const ids = static_cast<const std::int32_t*>(array);
    return !std::equal(wanted.begin(), wanted.end(), ids, ids + wanted.size());
  };
  const auto differs = [](const auto* array, const auto& wanted) {
    if (array == nullptr) return false;
    return std::memcmp(array, wanted.data(), wanted.size() * sizeof(wanted[0])) != 0;
  };
  if (ids_differ(found.tokens, expected.tokens)) return "tokens";
  if (ids_differ(found.labels, expected.labels)) return "labels";
  if (ids_differ(found.position_ids, expected.position_ids)) return "position_ids";
  if (differs(found.loss_mask, expected.loss_mask)) return "loss_mask";
  if (differs(found.segment_ids, expected.segment_ids)) return "segment_ids";
  if (!found.has_cu_seqlens()) return "";
  if (static_cast<std::size_t>(cu_seqlens_used) != expected.cu_seqlens.size()) {
    return "cu_seqlens_used";
  }
  const auto wrong = [&](const std::int32_t* array, const std::vector<std::int32_t>& wanted) {
    if (array == nullptr) return false;
    return differs(array, wanted) ||
           std::any_of(array + cu_seqlens_used, array + found.cu_seqlens_size,
                       [&](std::int32_t unused) { return unused != wanted.back(); });
  };
  if (found.cu_seqlens_padded == nullptr) {
    return wrong(found.cu_seqlens, expected.cu_seqlens) ? "cu_seqlens" : "";
  }
  if (wrong(found.cu_seqlens_padded, expected.cu_seqlens)) return "cu_seqlens_padded";
  return wrong(found.cu_seqlens, expected.unpadded) ? "cu_seqlens without padding" : "";
}

/// Acts as a trainer. For each batch, it compares the arrays with the expected arrays. It enqueues
/// this comparison on a stream, which runs it later, after earlier work on the stream.
class checking_consumer {
 public:
  explicit checking_consumer(fake_cuda& cuda) : cuda_(&cuda) {}

  void use(const loader::cuda::device_batch& batch, const random_batch& wanted,
           loader::cuda::stream on) {
    use(arrays_of(batch), batch.cu_seqlens_used(), batch.micro_batch(), wanted, on);
  }

  /// Enqueues the same comparison for arrays that a batch was written to.
  void use(const loader::cuda::batch_work& found, std::int64_t cu_seqlens_used, std::int64_t number,
           const random_batch& wanted, loader::cuda::stream on) {
    cuda_->put(on, fields_of(found), [this, found, cu_seqlens_used, &wanted, number] {
      const std::string what = difference(found, cu_seqlens_used, wanted.expected);
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
