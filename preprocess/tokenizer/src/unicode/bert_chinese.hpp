// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace millrace::tokenizer::detail {

/// True if `point` is in a block that BERT treats as Chinese. BERT omits U+2B820 to U+2B91F, so
/// this function does too.
inline bool is_bert_chinese(std::uint32_t point) noexcept {
  if (point < 0x3400) return false;
  const auto in = [point](std::uint32_t first, std::uint32_t last) {
    return point >= first && point <= last;
  };
  return in(0x4E00, 0x9FFF) || in(0x3400, 0x4DBF) || in(0x20000, 0x2A6DF) || in(0x2A700, 0x2B73F) ||
         in(0x2B740, 0x2B81F) || in(0x2B920, 0x2CEAF) || in(0xF900, 0xFAFF) || in(0x2F800, 0x2FA1F);
}

}  // namespace millrace::tokenizer::detail
