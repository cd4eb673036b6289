// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace millrace::tokenizer::detail {

/// Parses a JSON number as Hugging Face's tokenizers do. The result is not always the nearest
/// double. The digits are read as a 64-bit integer, and digits that do not fit are dropped. Then
/// the integer is multiplied or divided by powers of ten, with rounding at each step. So a score
/// may differ from the nearest double in the last bit, which can decide between two equally good
/// ways to cut a word.
///
/// @pre `number` is a JSON number
double reference_number(std::string_view number) noexcept;

}  // namespace millrace::tokenizer::detail
