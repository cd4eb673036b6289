// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace millrace::preprocess {

/// U+FEFF as the first character of a file says that it is UTF-8, and is no part of the text.
inline constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

/// Bytes of the mark that the text of a file begins with.
inline std::size_t mark_bytes_of(std::string_view text) {
  return text.starts_with(byte_order_mark) ? byte_order_mark.size() : 0;
}

}  // namespace millrace::preprocess
