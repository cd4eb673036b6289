// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "process/stage_times.hpp"

namespace millrace::preprocess {

/// The progress of a run, as shown to the user and in metrics. No member except `blocks_in_flight`
/// ever decreases.
struct progress_state {
  std::int64_t documents = 0;
  std::uint64_t input_bytes = 0;      ///< bytes of decompressed text committed
  std::uint64_t read_bytes = 0;       ///< bytes on disk read
  std::int64_t tokens = 0;            ///< total over all keys
  std::uint64_t output_bytes = 0;     ///< bytes written to all outputs
  std::int64_t bad_records = 0;       ///< bad records met so far
  std::int64_t blocks_in_flight = 0;  ///< blocks that were read but not yet committed
  stage_times busy = {};

  /// Adds the progress of another run.
  progress_state& operator+=(const progress_state& more) noexcept {
    documents += more.documents;
    input_bytes += more.input_bytes;
    read_bytes += more.read_bytes;
    tokens += more.tokens;
    output_bytes += more.output_bytes;
    bad_records += more.bad_records;
    blocks_in_flight += more.blocks_in_flight;
    busy += more.busy;
    return *this;
  }
};

}  // namespace millrace::preprocess
