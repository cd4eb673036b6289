// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include <millrace/error.hpp>

#include "bpe/token_table.hpp"
#include "messages/in_quotes.hpp"
#include "tiktoken/rank_index.hpp"

namespace millrace::tokenizer::detail {

/// A vocabulary in which the order of the ids is the order in which merging makes the tokens.
struct ranked_tokens {
  /// Longest token; real ones have 256 bytes at most.
  static constexpr std::size_t max_token_bytes = 4096;
  /// Highest id: above it are no vocabularies, but memory for the gaps below.
  static constexpr std::int32_t max_id = (1 << 22) - 1;

  token_table tokens;
  rank_index index{tokens};

  ranked_tokens() = default;
  ranked_tokens(const ranked_tokens&) = delete;
  ranked_tokens& operator=(const ranked_tokens&) = delete;

  /// Adds a token.
  /// @pre 0 <= id <= max_id, and the id is free
  /// @return what is wrong with it, or an empty string.
  std::string add(std::int32_t id, std::string_view bytes) {
    if (bytes.empty()) return "a token is empty";
    if (bytes.size() > max_token_bytes) {
      return "a token of " + std::to_string(bytes.size()) + " bytes, expected at most " +
             std::to_string(max_token_bytes);
    }
    tokens.add(id, bytes);
    if (const auto other = index.add(id)) {
      return "token " + in_quotes(bytes) + " is there twice, as " + std::to_string(*other) +
             " and " + std::to_string(id);
    }
    return {};
  }

  /// The token of each byte.
  /// @param size_bytes  of the file, which is where a byte is missed
  /// @throws format_error  a byte has none.
  std::array<std::int32_t, 256> byte_ids(std::size_t size_bytes) const {
    std::array<std::int32_t, 256> ids{};
    for (std::size_t byte = 0; byte < ids.size(); ++byte) {
      const char c = static_cast<char>(byte);
      const auto found = index.find({&c, 1});
      if (!found) {
        throw format_error(
            size_bytes, "the vocabulary has no token for byte " + std::to_string(byte) + " alone");
      }
      ids[byte] = *found;
    }
    return ids;
  }
};

}  // namespace millrace::tokenizer::detail
