// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "input/input_plan.hpp"

namespace millrace::preprocess {

/// How many tasks processes share that work together: one for each 32 MiB of the inputs on disk,
/// and at most 4096. It depends on the inputs alone, so that other processes, in another number, go
/// on with the same tasks.
///
/// Many more than processes, for they take one after the other and end at about the same time;
/// large enough that what a task costs beside its work, some files made durable, is little.
std::int64_t task_count(std::span<const input_file> inputs);

}  // namespace millrace::preprocess
