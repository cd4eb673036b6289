// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <millrace/tokenizer/tokenizer.hpp>

namespace millrace::tokenizer::detail {

/// What to do where the files of a type could not be read as what the type takes: another type or
/// flag that fits a file, the file of a folder, or where a model of the Hugging Face hub lies in
/// this machine's cache. Looks at the files again, so it is for a failure only.
///
/// @return a sentence, or nothing where the files look like what the type takes
std::string file_advice(const tokenizer_options& options);

/// The type that somebody may have meant who wrote `typed`; empty where there is none.
std::string_view likely_type(std::string_view typed);

}  // namespace millrace::tokenizer::detail
