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
  const std::byte* slot = nullptr;  ///< as `layout` says, aligned to 64; best page-locked
  slot_layout layout;
  std::int64_t boundaries = 0;  ///< boundary_begin[rows]; 0 where nobody asked for them
  dataset::batch_number number = {};
  std::span<const std::int64_t> positions =
      {};                                      ///< [rows], as `batch::positions`, while it is held
  std::span<const std::int64_t> sources = {};  ///< [rows]
  /// What the source itself was kept by, if it was: for the pipe's telemetry.
  std::optional<stall_cause> kept_by = {};
  /// Keeps the slot. Let go of when the bytes were copied: the slot may be filled anew then.
  std::shared_ptr<const void> hold = {};
};

/// Where a pipe has its batches from. Both are called on the pipe's own thread, but for `stop`.
struct batch_source {
  /// The next one, or nothing after the last. What it throws, the pipe's consumer gets.
  std::function<std::optional<staged_batch>()> next;

  /// Called on the pipe's destruction by any thread, so that `next` does not wait much longer; may
  /// be empty. Must not throw.
  std::function<void()> stop = {};

  /// How many there are, where that is known: who holds every slot after the last one is then told
  /// the end, not to release one.
  std::optional<std::int64_t> count = {};
};

}  // namespace millrace::loader::cuda
