// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include <millrace/loader/cuda/pipe_state.hpp>

namespace millrace::loader::cuda {

/// One micro-batch on a device, or on the host where there is none. Arrays are row-major,
/// [rows, seq_len]; one that was not asked for is null.
///
/// What the consumer's stream is given after `next()` finds the arrays filled. They stay until the
/// batch and all tensors that were made of it are gone: the end records an event on that stream,
/// and the slot is filled anew behind it. Nobody waits. So the stream must outlive the batch, and
/// work on other streams must be put before that stream's next work by whoever starts it.
///
/// It may outlive the pipe, and end on any thread, but not in a callback of a stream. One that was
/// moved from holds nothing, and may only be destroyed or assigned to.
class device_batch {
 public:
  /// Where the arrays are: false on the host path.
  bool on_device() const noexcept { return held_->on_device(); }
  /// The device's number; 0 on the host path.
  int device() const noexcept { return device_; }

  std::int64_t rows() const noexcept { return work().rows; }
  std::int64_t seq_len() const noexcept { return work().seq_len; }

  /// Input ids; 0 where there is padding.
  const std::int64_t* tokens() const noexcept { return work().tokens; }
  /// What follows each; 0 where that is padding.
  const std::int64_t* labels() const noexcept { return work().labels; }
  const std::int64_t* position_ids() const noexcept { return work().position_ids; }
  /// 1 where the loss counts, else 0.
  const float* loss_mask() const noexcept { return work().loss_mask; }

  /// Where documents begin and end if rows are laid one behind another, from 0 to rows * seq_len:
  /// `cu_seqlens_size()` entries. None if the source has no boundaries, or the batch no rows.
  const std::int32_t* cu_seqlens() const noexcept { return work().cu_seqlens; }
  std::int64_t cu_seqlens_size() const noexcept {
    return slot().boundaries == 0 ? 0 : slot().boundaries - rows() + 1;
  }
  /// Tokens of the longest of these documents, or 0.
  std::int32_t max_seqlen() const noexcept { return slot().max_seqlen; }

  // Which one it is, as `batch` has it; on the host.

  std::int64_t step() const noexcept { return slot().number.step; }
  std::int64_t micro_batch() const noexcept { return slot().number.micro_batch; }
  std::int64_t micro_batches() const noexcept { return slot().number.micro_batches; }
  std::int64_t first_sample() const noexcept { return slot().number.first_sample; }
  std::span<const std::int64_t> positions() const noexcept { return slot().positions; }
  std::span<const std::int64_t> sources() const noexcept { return slot().sources; }
  /// Samples of all ranks that are consumed when this one is done.
  std::int64_t consumed_after() const noexcept { return slot().number.consumed; }

  /// Keeps the slot as long as the batch itself would: for those who hand the arrays on.
  std::shared_ptr<const void> hold() const noexcept { return held_; }

 private:
  friend class device_pipe;
  device_batch(std::shared_ptr<const detail::held_slot> held, int device) noexcept
      : held_(std::move(held)), device_(device) {}

 public:
  device_batch(device_batch&&) noexcept = default;
  device_batch& operator=(device_batch&&) noexcept = default;
  device_batch(const device_batch&) = delete;
  device_batch& operator=(const device_batch&) = delete;
  ~device_batch() = default;

 private:
  const device_slot& slot() const noexcept { return held_->slot(); }
  const batch_work& work() const noexcept { return slot().work; }

  std::shared_ptr<const detail::held_slot> held_;
  int device_;
};

}  // namespace millrace::loader::cuda
