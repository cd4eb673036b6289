// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "input/input_plan.hpp"

/// Checks that run before the first byte of an output is written.
namespace millrace::preprocess {

/// Checks that the folder of an output exists.
///
/// @throws config_error  the folder of `prefix` does not exist.
void expect_folder(const std::filesystem::path& prefix);

/// Checks that an output does not exist yet. Call this while the writer of `prefix` holds its
/// locks. Otherwise, another run could finish the same output after the check.
///
/// @throws config_error  PREFIX.bin, PREFIX.idx or one of their sidecars exists, even as a dangling
///                       link.
void refuse_existing(const std::filesystem::path& prefix);

/// Lists every file that a run writes, temporary or final.
///
/// @param prefixes    prefixes of the output datasets
/// @param partitions  number of partitions per dataset
std::vector<std::filesystem::path> files_of_run(const std::filesystem::path& output_prefix,
                                                std::span<const std::filesystem::path> prefixes,
                                                std::size_t partitions = 1);

/// Checks the path of a file that a run writes in addition to its outputs.
///
/// @param files   the files of the run
/// @param option  the option that names `path`
/// @throws config_error  the folder of `path` does not exist; or `path` is a folder, or one of
///                       `files`.
void expect_own_file(const std::filesystem::path& path,
                     std::span<const std::filesystem::path> files, std::string_view option);

/// Checks that a run does not overwrite its inputs. Call this before any of `files` is opened for
/// writing.
///
/// @param option  the option that names the files, for the message
/// @throws config_error  an input is the same file as one of `files`, perhaps under another name.
void refuse_inputs_among(std::span<const std::filesystem::path> files,
                         std::span<const input_file> inputs, std::string_view option);

}  // namespace millrace::preprocess
