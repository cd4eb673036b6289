// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "watch/stage_times.hpp"

namespace millrace::preprocess {

/// How far a run is: what a person is shown and what metrics say. All but `blocks_in_flight` only
/// ever grow.
struct progress_state {
  std::int64_t documents = 0;
  std::uint64_t input_bytes = 0;      ///< decompressed, committed
  std::uint64_t read_bytes = 0;       ///< on disk
  std::int64_t tokens = 0;            ///< over all keys
  std::uint64_t output_bytes = 0;     ///< written to all outputs
  std::int64_t bad_records = 0;       ///< skipped
  std::int64_t blocks_in_flight = 0;  ///< read, and not yet committed
  stage_times busy = {};
};

}  // namespace millrace::preprocess
