// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace millrace::tokenizer::detail {

/// Parses a JSON number as Hugging Face's tokenizers do. The result is not always the nearest
/// double: they read the digits as a 64-bit integer, drop the digits that do not fit, then multiply
/// or divide by a power of ten, rounding at each step. Scores may differ from the nearest double in
/// the last bit, which can decide between cuts of a word that are otherwise equally good.
///
/// @pre `number` is a JSON number
double reference_number(std::string_view number) noexcept;

}  // namespace millrace::tokenizer::detail
