// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

#include "input/task_split.hpp"

namespace millrace::preprocess {

/// What `--task` was given: `I/N` with 0 <= I < N, or `slurm`, for the numbers that Slurm gives the
/// elements of an array job, or else the processes of one job.
///
/// @param variable  a variable of the environment, or null; std::getenv
/// @throws config_error  it is neither, or Slurm's numbers are not there or make no tasks.
task_id task_of(std::string_view flag, const std::function<const char*(const char*)>& variable);

}  // namespace millrace::preprocess
