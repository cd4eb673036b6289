// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "input/block_source.hpp"
#include "output/dataset_outputs.hpp"
#include "record/encoded_block.hpp"

namespace millrace::preprocess {

/// The part of one input that a run has read.
struct input_total {
  std::uint64_t begin = 0;       ///< offset of the part; 0 unless a task begins inside the input
  std::uint64_t text_bytes = 0;  ///< size of the decompressed text
  std::int64_t lines = 0;
  std::uint32_t crc32c = 0;  ///< checksum of the text
};

/// The state of a run when it began to read its current input.
struct input_start {
  record_counts counts;
  output_states outputs;
};

/// The progress of a run: the place that it reads next, its counts, and the states of its outputs.
struct run_progress {
  text_place next;                  ///< start of the next line to read
  std::vector<input_total> inputs;  ///< one per input begun so far; `next` is in the last input
  record_counts counts;
  output_states outputs;
  input_start start;  ///< the state at the start of the input that contains `next`
  /// True if the run ended because the input that contains `next` is damaged. In that case, the
  /// text already read from that input may also be wrong.
  bool damaged = false;
  bool all_read = false;  ///< the inputs were read to their end
  /// The first record that was left out because of `--max-tokens`.
  std::optional<text_place> stopped_before = std::nullopt;

  /// True if nothing more is to be read. A resumed run must not read on, even if the inputs have
  /// more text now: partitions that were joined already can take no more documents.
  bool has_ended() const noexcept { return all_read || stopped_before.has_value(); }
  /// Whether the run has read an input to its end, and not only up to a place within it.
  bool has_read_all_of(std::size_t input) const noexcept {
    if (!has_ended()) return input < next.input;
    return !stopped_before || input < stopped_before->input;
  }
};

}  // namespace millrace::preprocess
