// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <millrace/dataset/detail/megatron/python_json.hpp>

namespace millrace::inspect {

/// Reads the file of `--tokenizer-description`: the `unique_identifiers` of Megatron's tokenizer,
/// which are part of the names of caches.
///
/// @throws io_error      the file cannot be read
/// @throws format_error  the file is not a JSON object
dataset::python_json tokenizer_description(const std::string& path);

}  // namespace millrace::inspect
