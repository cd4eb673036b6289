// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace millrace::tokenizer::detail {

/// A JSON number as Hugging Face's tokenizers read it, which is not always the nearest double: the
/// digits as an integer of 64 bits, those that it has no room for dropped, times or divided by a
/// power of ten, each step rounded. Scores differ in their last bit from the nearest, and that
/// decides between cuts that are equally good.
///
/// @pre `number` is a JSON number
double reference_number(std::string_view number) noexcept;

}  // namespace millrace::tokenizer::detail
