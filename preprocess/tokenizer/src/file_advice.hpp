// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <millrace/tokenizer/tokenizer.hpp>

namespace millrace::tokenizer::detail {

/// Advice for files that are not what the tokenizer type expects. It names another type or flag
/// that fits a file, the right file in a folder, or the path of a Hugging Face hub model in this
/// machine's cache. Reads the files again, so call this only after a failure.
///
/// @return a sentence, or an empty string if the files seem to fit the type
std::string file_advice(const tokenizer_options& options);

/// Says that the file of `--tokenizer-model` is not of the kind that the type requires, if it is of
/// no kind that is recognized. Empty if it is recognized, is a folder or does not exist.
std::string not_the_model(const tokenizer_options& options);

/// The type that a user probably meant by `typed`; empty if no type is similar.
std::string_view likely_type(std::string_view typed);

}  // namespace millrace::tokenizer::detail
