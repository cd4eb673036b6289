// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>

#include "text/byte_trie.hpp"

namespace millrace::tokenizer::detail {

/// Finds the longest user-defined symbol at the beginning of a text. Immutable.
class symbol_matcher {
 public:
  symbol_matcher() = default;  ///< finds nothing
  explicit symbol_matcher(byte_trie symbols) : trie_(std::move(symbols)) {}

  bool empty() const noexcept { return trie_.empty(); }

  /// Size in bytes of the longest symbol at the beginning of `text`, or 0 if `text` begins with no
  /// symbol.
  std::size_t match(std::string_view text) const noexcept {
    // SentencePiece looks at no more than this many symbols that match, starting with the shortest.
    constexpr std::size_t max_candidates = 64;
    std::size_t longest = 0;
    std::size_t candidates = 0;
    byte_trie::node at = byte_trie::root;
    for (std::size_t i = 0; i < text.size(); ++i) {
      at = trie_.step(at, static_cast<unsigned char>(text[i]));
      if (at == byte_trie::none) break;
      if (!trie_.is_end(at)) continue;
      if (++candidates > max_candidates) break;
      longest = i + 1;
    }
    return longest;
  }

  /// True if a symbol begins with this byte.
  bool may_begin(unsigned char byte) const noexcept {
    return trie_.step(byte_trie::root, byte) != byte_trie::none;
  }

 private:
  byte_trie trie_;
};

}  // namespace millrace::tokenizer::detail
