// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

#include <millrace/dataset/convert.hpp>

namespace millrace::inspect {

/// Opens a Parquet file of packed rows, for `convert_options::open_packed_rows`.
///
/// @throws config_error  a column is missing, or is no list of integers
/// @throws io_error, format_error
dataset::packed_rows_file open_packed_rows(const std::filesystem::path& path);

/// The files in a folder that Megatron-Bridge reads as packed rows, in the order of their names.
///
/// @throws config_error  there is none
std::vector<std::filesystem::path> packed_rows_in(const std::filesystem::path& folder);

}  // namespace millrace::inspect
