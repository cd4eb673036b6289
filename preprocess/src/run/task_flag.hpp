// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

#include "input/task_split.hpp"

namespace millrace::preprocess {

/// Parses `--task`: `I/N` with 0 <= I < N, or `slurm`, which uses the numbers that Slurm gives the
/// elements of an array job or the processes of a job.
///
/// @param variable  returns an environment variable, or null; std::getenv
/// @throws config_error  it is neither, or Slurm's numbers are missing or invalid.
task_id task_of(std::string_view flag, const std::function<const char*(const char*)>& variable);

}  // namespace millrace::preprocess
