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

/// What a commit leaves to tell.
struct stage_report {
  std::vector<std::string> notes;     ///< for a person, a line each
  std::uint64_t read_bytes = 0;       ///< on disk, so far
  std::int64_t blocks_in_flight = 0;  ///< read, and not yet committed
  bool giant = false;                 ///< a line too long for memory was among it
};

/// Runs the inputs through reading, encoding and committing until they end, or `options.stop` is
/// set: then what is in flight is still committed, up to a giant line, which is given up.
///
/// @param clock         told how long each stage is busy
/// @param after_commit  called on the committing thread
/// @return whether the inputs ended
/// @throws what a stage throws: the first in input order, as one thread would meet it
bool run_stages(const tokenizer::tokenizer& tokenizer, const encoder_options& encoding,
                const run_options& options, const read_range& range, committer& committer,
                stage_clock& clock, const std::function<void(const stage_report&)>& after_commit);

}  // namespace millrace::preprocess
