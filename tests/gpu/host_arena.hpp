// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <millrace/loader/cuda/detail/batch_work.hpp>
#include <millrace/loader/cuda/detail/handles.hpp>

#include "gpu/harness.hpp"
#include "support/fake_cuda/checking_consumer.hpp"
#include "support/fake_cuda/random_batch.hpp"

namespace millrace::test {

/// Page-locked memory for the arrays of a few batches. Locking pages is slow in CUDA, so the tests
/// reuse one block.
class host_arena {
 public:
  explicit host_arena(std::size_t bytes)
      : memory_(loader::cuda::allocate_pinned(gpu_api(), bytes)), bytes_(bytes) {}
  void clear() { at_ = 0; }

  /// Enqueues a copy of an array to this memory, and returns the address of the copy. The copy of a
  /// null array is null.
  template <class T>
  T* bring(const T* from, std::int64_t count, loader::cuda::stream on) {
    return static_cast<T*>(bring_bytes(from, static_cast<std::size_t>(count) * sizeof(T), on));
  }
  void* bring_bytes(const void* from, std::size_t bytes, loader::cuda::stream on) {
    if (from == nullptr) return nullptr;
    auto* to = static_cast<std::byte*>(memory_.get().value) + at_;
    at_ += (bytes + 255) / 256 * 256;
    expect(at_ <= bytes_, "the test's memory on the host is too small");
    must(gpu_api().copy_to_host(to, from, bytes, on), "cudaMemcpyAsync");
    return to;
  }

 private:
  loader::cuda::pinned_block memory_;
  std::size_t bytes_;
  std::size_t at_ = 0;
};

/// Copies of a batch's arrays on the host, without the unused rows of static arrays. They are
/// complete as soon as the stream has finished its work.
struct brought_back {
  brought_back(const loader::cuda::batch_work& arrays, std::int64_t used, host_arena& arena,
               loader::cuda::stream on)
      : cu_seqlens_used(used), work(arrays) {
    const std::int64_t elements = work.rows * work.seq_len;
    const auto id_bytes = static_cast<std::size_t>(elements) * static_cast<std::size_t>(work.ids);
    for (void** ids : {&work.tokens, &work.labels, &work.position_ids}) {
      *ids = arena.bring_bytes(*ids, id_bytes, on);
    }
    work.loss_mask = arena.bring(work.loss_mask, elements, on);
    work.segment_ids = arena.bring(work.segment_ids, elements, on);
    work.cu_seqlens = arena.bring(work.cu_seqlens, work.cu_seqlens_size, on);
  }
  std::int64_t cu_seqlens_used;
  loader::cuda::batch_work work;
};

/// Fails the test unless the arrays equal those of the host. The stream must have finished its
/// work.
inline void expect_same(const brought_back& found, const random_batch& wanted,
                        const std::string& what) {
  const std::string wrong = difference(found.work, found.cu_seqlens_used, wanted.expected);
  if (!wrong.empty()) throw gpu_failure(wrong + " of " + what + " differ from the host's");
}

}  // namespace millrace::test
