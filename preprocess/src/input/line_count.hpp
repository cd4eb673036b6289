// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "input/input_plan.hpp"

namespace millrace::preprocess {

/// How many lines lie before `begin` of a plain file, where a line begins; nothing of another one,
/// or if it cannot be read. It reads all that, so only messages are worth it.
std::optional<std::int64_t> lines_before(const input_file& file, std::uint64_t begin);

}  // namespace millrace::preprocess
