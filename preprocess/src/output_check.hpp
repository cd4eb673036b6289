// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>

#include "input_plan.hpp"

/// What can be wrong with an output before the first byte of it is written.
namespace millrace::preprocess {

/// @throws config_error  the folder that `prefix` names is not there.
void expect_folder(const std::filesystem::path& prefix);

/// Call it while the writer of `prefix` holds its locks: before, another run may just be about to
/// finish.
///
/// @throws config_error  PREFIX.bin or PREFIX.idx exists, be it as a link to nowhere.
void refuse_existing(const std::filesystem::path& prefix);

/// Call it before the writer exists: it starts by emptying its partial files.
///
/// @throws config_error  an input is one of the partial files of `prefix`.
void refuse_partial_inputs(const std::filesystem::path& prefix, std::span<const input_file> inputs);

}  // namespace millrace::preprocess
