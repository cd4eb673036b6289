// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <span>

#include <millrace/tokenizer/tokenizer.hpp>

#include "record/block_encoder.hpp"
#include "run/run_options.hpp"

/// Parts of tasks that were done under another `--on-bad-record` than the job that goes on. If a
/// task met no bad record, that makes no difference to its part but in P.meta: so a job that ended
/// with its first bad record can go on as one that drops them.
namespace millrace::preprocess {

/// What a finished task did with bad records, if that is not what `task` says, and it met none.
///
/// @param prefixes  of its parts, one a key
std::optional<bad_record_policy> other_policy(std::span<const std::filesystem::path> prefixes,
                                              const tokenizer::tokenizer& tokenizer,
                                              const encoder_options& encoding,
                                              const run_options& task);

/// Has the metas of finished parts without bad records say what those of the whole will.
/// @throws io_error  P.meta cannot be read or replaced.
void adopt_policy(std::span<const std::filesystem::path> prefixes, bad_record_policy policy);

}  // namespace millrace::preprocess
