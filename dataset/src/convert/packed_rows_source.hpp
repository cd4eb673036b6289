// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>

#include <millrace/dataset/convert.hpp>

#include "token_source.hpp"
#include "token_target.hpp"

namespace millrace::dataset::detail {

/// Opens files of packed rows. Counts their sequences, and reads no ids.
///
/// @throws config_error  an option does not apply to packed rows; there is no row
/// @throws format_error  a file is damaged
/// @throws io_error      a file cannot be read
void open_packed_rows(std::span<const std::filesystem::path> inputs, const convert_options& options,
                      token_source& source);

/// Copies all rows. Each sequence becomes a document, with its part of the mask. Adds to `done`.
///
/// @throws format_error  a row is damaged, or has an id that the type of the output cannot hold
/// @throws io_error      a file cannot be read or written
/// @pre source.format == token_format::bridge, target.dataset()
void copy_packed_rows(const token_source& source, const convert_options& options,
                      token_target& target, conversion& done);

}  // namespace millrace::dataset::detail
