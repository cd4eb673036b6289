// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace millrace::tokenizer::detail {

/// One character of a text that a step made from another text, and what it replaces there. The
/// characters of the new text replace those of the old text in order.
struct changed_character {
  std::uint32_t point = 0;
  /// 0: it replaces one character. Negative: it replaces 1 - change characters, and counts as made
  /// from the first of them. Positive: it replaces none, and counts as made from the character
  /// before.
  std::int32_t change = 0;
};

}  // namespace millrace::tokenizer::detail
