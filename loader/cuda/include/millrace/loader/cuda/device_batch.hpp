// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include <millrace/loader/cuda/detail/pipe_state.hpp>

// Example:
//
//     // The batch may be destroyed as soon as its kernels are in the stream's queue.
//     namespace cuda = millrace::loader::cuda;
//     const auto step = [](cuda::device_loader& loader, cuda::stream stream) {
//       if (const auto batch = loader.next(stream)) {
//         const std::int64_t* labels = batch->labels();  // [batch->rows(), batch->seq_len()]
//         const float* loss_mask = batch->loss_mask();   // null if it was not asked for
//       }
//     };

namespace millrace::loader::cuda {

/// One micro-batch on a device, or on the host if there is no device. Arrays are row-major, [rows,
/// seq_len]. An array that was not requested is null.
///
///     template <class Step>
///     void train(millrace::loader::cuda::device_loader& loader, millrace::loader::cuda::stream s,
///                const Step& step) {
///       while (const auto batch = loader.next(s)) step(batch->tokens(), batch->labels());
///     }
///
/// Operations submitted to the consumer's stream after `next()` see filled arrays. The arrays stay
/// valid until the batch and all tensors made from it are destroyed. Destroying the last of them
/// does not wait. It records an event on the consumer's stream, and the pipe refills the slot after
/// that event. So the stream must outlive the batch.
///
/// Do not destroy a batch while one of its streams is being captured into a CUDA graph. The
/// destructor cannot throw, so the pipe counts the batch in `pipe_report::captured` and never
/// reuses or frees its memory. The next call of `next()` throws an error that names the capture,
/// and the pipe is then finished. The capture itself is not disturbed.
///
/// To use the batch on another stream as well, call `wait_on` and `also_used_on` for that stream.
/// Instead of calling `also_used_on`, you can make the consumer's stream wait for the other stream
/// before the batch is destroyed.
///
/// A batch may outlive the pipe. It may be destroyed on any thread, but not in a stream callback. A
/// moved-from batch may only be destroyed or assigned to.
class device_batch {
 public:
  /// True if the arrays are on a device.
  bool on_device() const noexcept { return held_->on_device(); }
  /// Index of the device; 0 on the host path.
  int device() const noexcept { return device_; }

  std::int64_t rows() const noexcept { return work().rows; }
  std::int64_t seq_len() const noexcept { return work().seq_len; }

  /// The type of tokens, labels and position ids. `tokens()`, `labels()` and `position_ids()`
  /// return null if their `Id` is the other type.
  id_width ids() const noexcept { return work().ids; }
  /// Input ids; 0 for padding.
  template <class Id = std::int64_t>
  const Id* tokens() const noexcept {
    return ids_in<Id>(work().tokens);
  }
  /// The token after each input id; 0 if the next token is padding.
  template <class Id = std::int64_t>
  const Id* labels() const noexcept {
    return ids_in<Id>(work().labels);
  }
  template <class Id = std::int64_t>
  const Id* position_ids() const noexcept {
    return ids_in<Id>(work().position_ids);
  }
  /// 1 if the token counts in the loss, else 0.
  const float* loss_mask() const noexcept { return work().loss_mask; }
  /// The document number of each token: 1 for the first document of a row, 2 for the second, and so
  /// on. Padding has 0, even between the documents of a packed row. Document s of a row lies
  /// between boundaries s - 1 and s of that row.
  const std::int32_t* segment_ids() const noexcept { return work().segment_ids; }

  /// The document boundaries of all rows, concatenated. There are `cu_seqlens_used()` boundaries:
  /// the first is 0 and the last is `rows * seq_len`. If `wanted_fields::cu_seqlens_size` is set,
  /// the array has that size, and its unused entries repeat the last boundary. The pointer is null
  /// if the source has no boundaries or the batch has no rows.
  ///
  /// In packed rows, a document includes its padding. If `wanted_fields::cu_seqlens_padded` is set,
  /// too, this array does not count padding: it has the lengths of the documents, added up. The two
  /// are then the arrays of these names in Transformer Engine.
  const std::int32_t* cu_seqlens() const noexcept { return work().cu_seqlens; }
  /// Packed rows only: the boundaries of documents with their padding.
  const std::int32_t* cu_seqlens_padded() const noexcept { return work().cu_seqlens_padded; }
  std::int64_t cu_seqlens_size() const noexcept { return work().cu_seqlens_size; }
  std::int64_t cu_seqlens_used() const noexcept {
    return work().has_cu_seqlens() ? work().cu_seqlens_used() : 0;
  }
  /// Number of tokens in the longest document, with its padding, or 0.
  std::int32_t max_seqlen() const noexcept { return slot().max_seqlen; }

  // The position of the batch in the run, as in `batch`. These values are in host memory.

  std::int64_t step() const noexcept { return slot().number.step; }
  std::int64_t micro_batch() const noexcept { return slot().number.micro_batch; }
  std::int64_t micro_batches() const noexcept { return slot().number.micro_batches; }
  std::int64_t first_sample() const noexcept { return slot().number.first_sample; }
  std::span<const std::int64_t> positions() const noexcept { return slot().positions; }
  std::span<const std::int64_t> sources() const noexcept { return slot().sources; }
  /// Number of samples consumed by all ranks after this batch.
  std::int64_t consumed_after() const noexcept { return slot().number.consumed; }

  // `wait_on` and `also_used_on` are for streams other than the consumer's. A null stream is the
  // default stream of the batch's device. On the host path, both functions do nothing. They may be
  // called on any thread.

  /// Operations submitted to `other` after this call see filled arrays.
  /// @throws config_error  the stream is being captured into a CUDA graph
  /// @throws cuda_error    the runtime refuses the wait
  void wait_on(stream other) const { held_->wait_on(other); }

  /// Tells the batch that `other` uses it, as PyTorch's `record_stream` does: destroying the batch
  /// also records an event on `other`, and the slot is refilled only after that event. So `other`
  /// must outlive the batch, too.
  /// @throws config_error  the stream is cudaStreamPerThread
  /// @throws cuda_error    an event cannot be created
  void also_used_on(stream other) const {
    detail::refuse_per_thread(other);
    held_->also_used_on(other);
  }

  /// Returns an owner that keeps the slot alive, as the batch does. Use it to pass the arrays to
  /// other code.
  std::shared_ptr<const void> hold() const noexcept { return held_; }

 private:
  friend class device_pipe;
  device_batch(std::shared_ptr<detail::held_slot> held, int device) noexcept
      : held_(std::move(held)), device_(device) {}

 public:
  device_batch(device_batch&&) noexcept = default;
  device_batch& operator=(device_batch&&) noexcept = default;
  device_batch(const device_batch&) = delete;
  device_batch& operator=(const device_batch&) = delete;
  ~device_batch() = default;

 private:
  template <class Id>
  const Id* ids_in(const void* array) const noexcept {
    static_assert(std::is_same_v<Id, std::int64_t> || std::is_same_v<Id, std::int32_t>);
    return sizeof(Id) == static_cast<std::size_t>(ids()) ? static_cast<const Id*>(array) : nullptr;
  }
  const device_slot& slot() const noexcept { return held_->slot(); }
  const batch_work& work() const noexcept { return slot().work; }

  std::shared_ptr<detail::held_slot> held_;
  int device_;
};

}  // namespace millrace::loader::cuda
