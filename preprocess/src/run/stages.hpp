// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <millrace/tokenizer/tokenizer.hpp>

#include "input/block_source.hpp"
#include "output/committer.hpp"
#include "process/stage_times.hpp"
#include "record/block_encoder.hpp"
#include "run/run_options.hpp"

namespace millrace::preprocess {

/// Describes one commit.
struct stage_report {
  std::vector<std::string> notes;     ///< notes for the user, one line each
  std::uint64_t read_bytes = 0;       ///< bytes on disk read so far
  std::int64_t blocks_in_flight = 0;  ///< blocks that were read but not yet committed
  bool giant = false;                 ///< the commit included a line too long for memory
};

/// Reads, encodes and commits the inputs until they end, the committer is full, or `options.stop`
/// is set. After a stop, the blocks in flight are still committed, but only up to the first giant
/// line, which is abandoned. If several stages throw, rethrows the exception that a single thread
/// would throw: the first in input order.
///
/// @param clock         records how long each stage is busy
/// @param after_commit  called after each commit, on the committing thread
/// @return true if the inputs ended
bool run_stages(const tokenizer::tokenizer& tokenizer, const encoder_options& encoding,
                const run_options& options, const read_range& range, committer& committer,
                stage_clock& clock, const std::function<void(const stage_report&)>& after_commit);

}  // namespace millrace::preprocess
