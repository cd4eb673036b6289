// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "input/input_plan.hpp"

namespace millrace::preprocess {

/// Number of tasks that cooperating processes share: one per 32 MiB of the inputs on disk, at most
/// 4096. It depends only on the inputs, so another number of processes resumes the same tasks.
///
/// There are many more tasks than processes. Each process takes one after another, so all finish at
/// about the same time. A task is large enough to make its fixed cost, a few fsyncs, small.
std::int64_t task_count(std::span<const input_file> inputs);

}  // namespace millrace::preprocess
