// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <millrace/tokenizer/tokenizer.hpp>

namespace millrace::tokenizer::detail {

/// Returns advice for files that are not what the tokenizer type expects. The advice names another
/// type or flag that fits a file, the right file in a folder, or the path of a Hugging Face hub
/// model in this machine's cache. Reads the files again, so call this only after a failure.
///
/// @return a sentence, or an empty string if the files seem to fit the type
std::string file_advice(const tokenizer_options& options);

/// If the kind of the file in `--tokenizer-model` is not recognized, returns a text that names the
/// kind of file that the type requires. Returns an empty string if the kind is recognized, or if
/// the path is a folder or does not exist.
std::string not_the_model(const tokenizer_options& options);

/// The type that a user probably meant by `typed`; empty if no type is similar.
std::string_view likely_type(std::string_view typed);

}  // namespace millrace::tokenizer::detail
