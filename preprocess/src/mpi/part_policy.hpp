// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <span>

#include <millrace/tokenizer/tokenizer.hpp>

#include "record/block_encoder.hpp"
#include "run/run_options.hpp"

/// Functions for the parts of tasks that ran with another `--on-bad-record` than the resuming job.
/// If a task met no bad record, its part differs only in P.meta. So a job that failed at its first
/// bad record can resume with a policy that drops bad records.
namespace millrace::preprocess {

/// Returns the bad record policy of a finished task, if it differs from that of `task` and the
/// finished task met no bad record.
///
/// @param prefixes  prefixes of the parts of the finished task, one per key
std::optional<bad_record_policy> other_policy(std::span<const std::filesystem::path> prefixes,
                                              const tokenizer::tokenizer& tokenizer,
                                              const encoder_options& encoding,
                                              const run_options& task);

/// Rewrites the P.meta files of finished parts without bad records, so that they contain `policy`,
/// the policy of the whole job.
///
/// @throws io_error  P.meta cannot be read or replaced.
void adopt_policy(std::span<const std::filesystem::path> prefixes, bad_record_policy policy);

}  // namespace millrace::preprocess
