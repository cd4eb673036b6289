// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "input/block_source.hpp"
#include "output/dataset_outputs.hpp"
#include "record/encoded_block.hpp"

namespace millrace::preprocess {

/// What a run has read of one input.
struct input_total {
  std::uint64_t begin_bytes = 0;  ///< where reading began; not 0 if a task begins inside the input
  std::uint64_t text_bytes = 0;   ///< decompressed
  std::int64_t lines = 0;
  std::uint32_t crc32c = 0;  ///< of the text
};

/// The state of a run when it began to read its current input.
struct input_start {
  record_counts counts;
  output_states outputs;
};

/// The progress of a run: what it reads next, what it found, and the progress of its outputs.
struct run_progress {
  text_place next;                  ///< where the next line begins
  std::vector<input_total> inputs;  ///< up to `next`: one for each input begun
  record_counts counts;
  output_states outputs;
  input_start start;  ///< of the input of `next`
  /// The run ended because that input is damaged. Its text before `next` may be wrong too.
  bool damaged = false;
};

}  // namespace millrace::preprocess
