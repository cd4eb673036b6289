// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

#include "input/task_split.hpp"

namespace millrace::preprocess {

/// Parses `--task`: `I/N` with 0 <= I < N, or `slurm`. For `slurm`, I and N come from the
/// environment variables that Slurm sets for an element of an array job, or for a process of a job.
///
/// @param variable  returns the value of an environment variable, or null; usually std::getenv
/// @throws config_error  the flag has neither form, or Slurm's variables are missing or invalid.
task_id task_of(std::string_view flag, const std::function<const char*(const char*)>& variable);

}  // namespace millrace::preprocess
