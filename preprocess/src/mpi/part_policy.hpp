// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <span>

#include <millrace/tokenizer/tokenizer.hpp>

#include "record/block_encoder.hpp"
#include "run/run_options.hpp"

/// Functions for finished parts whose `--on-bad-record` policy differs from the policy of the job
/// that resumes. A task that met no bad record has the same outputs under every policy, except for
/// P.meta. So a job that failed at its first bad record can be resumed with a policy that drops bad
/// records.
namespace millrace::preprocess {

/// Returns the bad record policy with which a task was finished, if this policy differs from the
/// policy in `task` and the finished task met no bad record. Otherwise returns nothing.
///
/// @param prefixes  prefixes of the parts of the finished task, one per key
std::optional<bad_record_policy> other_policy(std::span<const std::filesystem::path> prefixes,
                                              const tokenizer::tokenizer& tokenizer,
                                              const encoder_options& encoding,
                                              const run_options& task);

/// Writes `policy`, the policy of the whole job, to the P.meta files of the parts of a finished
/// task that met no bad record.
///
/// @throws io_error  P.meta cannot be read or replaced.
void adopt_policy(std::span<const std::filesystem::path> prefixes, bad_record_policy policy);

}  // namespace millrace::preprocess
