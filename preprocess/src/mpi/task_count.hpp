// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "input/input_plan.hpp"

namespace millrace::preprocess {

/// Returns the number of tasks that the processes of a job share: one per 32 MiB of the inputs on
/// disk, but at least 1 and at most 4096. The number depends only on the inputs, so a job with
/// another number of processes resumes the same tasks.
///
/// There are usually many more tasks than processes. Each process does one task after another, so
/// all processes finish at about the same time. A task is so large that its fixed cost, a few
/// fsyncs, is small in comparison.
std::int64_t task_count(std::span<const input_file> inputs);

}  // namespace millrace::preprocess
