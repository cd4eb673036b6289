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
  const std::byte* slot = nullptr;  ///< laid out as `layout`, 64-byte aligned, ideally page-locked
  slot_layout layout;
  std::int64_t boundaries = 0;  ///< boundary_begin[rows]; 0 if they were not requested
  dataset::batch_number number = {};
  std::span<const std::int64_t> positions = {};  ///< [rows], as `batch::positions`, while held
  std::span<const std::int64_t> sources = {};    ///< [rows]
  /// What delayed the source itself, if anything; for the pipe's telemetry.
  std::optional<stall_cause> kept_by = {};
  /// Keeps the slot. Released after the bytes are copied; the slot may then be refilled.
  std::shared_ptr<const void> hold = {};
};

/// The source of a pipe's batches. `next` is called on the pipe's own thread. The pipe may hold a
/// batch during the call, and then holds two.
///
/// If the pipe cannot end in time, its thread stays behind and keeps these functions. So they must
/// own what they use.
struct batch_source {
  /// Returns the next batch, or nothing after the last one. The pipe passes its exceptions on to
  /// the consumer.
  std::function<std::optional<staged_batch>()> next;

  /// Called when the pipe is destroyed, on any thread, so that `next` returns soon. May be empty.
  /// Must not throw.
  std::function<void()> stop = {};

  /// Number of batches, if known. If so, a caller that holds every slot after the last batch gets
  /// the end of the run instead of an error that asks it to release a slot.
  std::optional<std::int64_t> count = {};
};

}  // namespace millrace::loader::cuda
