// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <millrace/dataset/detail/megatron/python_json.hpp>

namespace millrace::inspect {

/// The file of `--tokenizer-description`: the `unique_identifiers` of Megatron's tokenizer, which
/// enter the names of caches.
///
/// @throws io_error      it cannot be read
/// @throws format_error  it is no JSON object
dataset::python_json tokenizer_description(const std::string& path);

}  // namespace millrace::inspect
