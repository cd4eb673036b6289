// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "input/input_plan.hpp"

/// What can be wrong with an output before the first byte of it is written.
namespace millrace::preprocess {

/// @throws config_error  the folder that `prefix` names is not there.
void expect_folder(const std::filesystem::path& prefix);

/// Call it while the writer of `prefix` holds its locks: before, another run may just be about to
/// finish.
///
/// @throws config_error  PREFIX.bin, PREFIX.idx or one of their sidecars exists, be it as a link to
///                       nowhere.
void refuse_existing(const std::filesystem::path& prefix);

/// Every file that a run writes, for a time or for good.
///
/// @param prefixes    of the datasets
/// @param partitions  of each
std::vector<std::filesystem::path> files_of_run(const std::filesystem::path& output_prefix,
                                                std::span<const std::filesystem::path> prefixes,
                                                std::size_t partitions = 1);

/// Of a file that a run writes beside its outputs.
///
/// @param files   of the run
/// @param option  that names `path`
/// @throws config_error  its folder is not there, or it is a folder, or one of `files`.
void expect_own_file(const std::filesystem::path& path,
                     std::span<const std::filesystem::path> files, std::string_view option);

/// Call it before any of `files` is opened for writing.
///
/// @param option  that names the files, for the message
/// @throws config_error  an input is one of `files`, under whatever name.
void refuse_inputs_among(std::span<const std::filesystem::path> files,
                         std::span<const input_file> inputs, std::string_view option);

}  // namespace millrace::preprocess
