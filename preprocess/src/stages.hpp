// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include <millrace/tokenizer/tokenizer.hpp>

#include "block_encoder.hpp"
#include "block_source.hpp"
#include "committer.hpp"
#include "run_options.hpp"

namespace millrace::preprocess {

/// Runs the inputs through reading, encoding and committing until they end, or `options.stop` is
/// set: then what is in flight is still committed.
///
/// @param after_commit  called on the committing thread, with the bytes on disk read so far
/// @return whether the inputs ended
/// @throws what a stage throws: the first in input order, as one thread would meet it
bool run_stages(const tokenizer::tokenizer& tokenizer, const encoder_options& encoding,
                const run_options& options, const read_range& range, committer& committer,
                const std::function<void(const std::vector<std::string>& notes,
                                         std::uint64_t read_bytes)>& after_commit);

}  // namespace millrace::preprocess
