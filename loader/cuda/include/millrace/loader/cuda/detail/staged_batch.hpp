// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include <millrace/dataset/sampler.hpp>
#include <millrace/loader/detail/batch/slot_layout.hpp>
#include <millrace/loader/detail/telemetry/stage.hpp>

namespace millrace::loader::cuda {

/// A filled slot of the host's ring.
struct staged_batch {
  /// laid out as `layout`, aligned to 64 bytes, page-locked if possible
  const std::byte* slot = nullptr;
  slot_layout layout;
  std::int64_t boundaries = 0;  ///< number of boundaries; 0 if they were not requested
  std::int64_t slices = 0;      ///< number of slices; 0 if rows are not cut into slices
  dataset::batch_number number = {};
  /// [rows], as `batch::positions`; valid while `hold` exists
  std::span<const std::int64_t> positions = {};
  std::span<const std::int64_t> sources = {};  ///< [rows]
  /// What delayed the source, if anything, for the pipe's telemetry.
  std::optional<stall_cause> kept_by = {};
  /// Keeps the slot from being refilled. The pipe resets this pointer after the copy.
  std::shared_ptr<const void> hold = {};
};

/// The source of a pipe's batches. The pipe calls `next` on its own thread. During the call, the
/// pipe may hold one earlier batch. After the call, it may hold two.
///
/// If the pipe cannot end in time, its thread remains and still uses these functions. So the
/// functions must own what they use.
struct batch_source {
  /// Returns the next batch, or nothing after the last one. The pipe passes exceptions of this
  /// function to the consumer.
  std::function<std::optional<staged_batch>()> next;

  /// Called when the pipe is destroyed, on any thread, so that `next` returns soon. May be empty.
  /// Must not throw.
  std::function<void()> stop = {};

  /// Number of batches, if known. It matters to a caller that holds every slot after the last
  /// batch. If the number is known, the next request returns the end of the run. Otherwise that
  /// request throws an error that asks the caller to release a slot.
  std::optional<std::int64_t> count = {};
};

}  // namespace millrace::loader::cuda
