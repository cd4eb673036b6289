// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <millrace/loader/cuda/detail/batch_work.hpp>
#include <millrace/loader/cuda/detail/find_device.hpp>
#include <millrace/loader/cuda/detail/output_layout.hpp>
#include <millrace/loader/detail/memory/grant.hpp>

namespace millrace::loader::cuda {

/// Options of a pipe.
struct device_options {
  int device = 0;               ///< index among the devices that the process sees
  std::int64_t look_ahead = 2;  ///< batches prepared on the device in advance
  std::int64_t held = 1;        ///< as in `device_loader_options`
  no_device_rule no_device = no_device_rule::error;
  wanted_fields fields = {};
  batch_rules rules = {};
  std::int64_t rank = 0;         ///< rank for telemetry
  std::size_t trace_events = 0;  ///< events kept for a trace; 0: none
  std::vector<int> cpus = {};    ///< CPUs of the pipe's thread; if empty, any CPU
  /// Like `loader_options::end_within`. The limit applies to the wait for the pipe's thread, and
  /// again to the wait for the memory of its slots.
  std::chrono::milliseconds end_within{10'000};
  bool profile = false;  ///< as in `device_loader_options`
};

/// Where a pipe makes its batches, and the pipe's counters so far.
struct pipe_report {
  bool on_device = false;
  std::string why;  ///< the device, or the reason why there is none
  std::size_t slots = 0;
  std::int64_t batches = 0;           ///< batches submitted
  std::int64_t tokens = 0;            ///< rows * seq_len, summed over these batches
  std::uint64_t bytes_to_device = 0;  ///< bytes copied for these batches
  /// Batches destroyed while a stream that used them was being captured into a CUDA graph. The
  /// slots of these batches are never used again.
  std::int64_t captured = 0;
  std::vector<grant> threads = {};  ///< CPUs of the pipe's thread, and why they were chosen

  /// The report on one line.
  std::string text() const {
    const std::string served = std::to_string(slots) + " slots, " + std::to_string(batches) +
                               " batches, " + std::to_string(tokens) + " tokens";
    if (!on_device) return "batches are made on the host (" + why + "): " + served;
    std::string text = "batches are made on " + why + ": " + served + ", " +
                       std::to_string(bytes_to_device) + " bytes copied";
    if (captured > 0) {
      text += ", " + std::to_string(captured) + " destroyed during the capture of a CUDA graph";
    }
    return text;
  }
};

}  // namespace millrace::loader::cuda
