// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <millrace/dataset/convert.hpp>

#include "token_source.hpp"

namespace millrace::dataset::detail {

/// @throws config_error  something would be lost, and `options.lossy` is false
void refuse_losses(const std::vector<std::string>& lost, const convert_options& options);

/// Packs the documents of a dataset, and writes the rows to PREFIX.idx.parquet and what Bridge
/// wants to know about them to PREFIX.packing.json. Adds to `done`, also to its losses.
///
/// @throws config_error  an option is missing or wrong, a file exists, something would be lost
/// @throws format_error  the dataset or its mask is damaged
/// @throws io_error      a file cannot be read or written
/// @pre source.data
void convert_to_rows(const token_source& source, const std::filesystem::path& prefix,
                     const convert_options& options, conversion& done);

}  // namespace millrace::dataset::detail
