// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string_view>
#include <vector>

#include <millrace/tokenizer/tokenizer.hpp>

namespace millrace::test {

/// Returns the ids of `text`.
/// @throws std::runtime_error  the text cannot be encoded.
inline std::vector<std::int32_t> encode(tokenizer::encoder& encoder, std::string_view text) {
  tokenizer::id_buffer ids;
  if (const auto fault = encoder.encode(text, ids)) throw std::runtime_error(fault->what);
  return {ids.ids().begin(), ids.ids().end()};
}

inline std::vector<std::int32_t> encode(const tokenizer::tokenizer& tokenizer,
                                        std::string_view text) {
  return encode(*tokenizer.make_encoder(), text);
}

}  // namespace millrace::test
