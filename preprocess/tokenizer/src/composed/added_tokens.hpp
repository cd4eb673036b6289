// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "composed/pair_filter.hpp"
#include "text/token_trie.hpp"

namespace millrace::tokenizer::detail {

/// A token that is found in text as a whole, before any pre-tokenizer. The flags are those of
/// Hugging Face's `added_tokens`.
struct added_token {
  std::string content;  ///< not empty
  std::int32_t id = 0;
  bool special = true;        ///< a control token, which a policy may forbid in text
  bool normalized = false;    ///< looked for in the normalized text, in its normalized form
  bool single_word = false;   ///< only where no \w touches it
  bool strips_left = false;   ///< takes the white space before it along
  bool strips_right = false;  ///< and behind it
  bool stays_text = false;    ///< where it is found it is text, and no other token is looked for
};

/// Finds added tokens in text, the leftmost first and of those that begin together the longest.
/// Immutable, shared by threads.
///
/// A token that is found and does not count (single_word, stays_text) is passed over whole. Time
/// is the text's length, and at each place where two bytes look like a token's, its length more.
class added_token_finder {
 public:
  struct match {
    std::size_t begin = 0;  ///< of the text that it replaces: with white space that it takes along
    std::size_t end = 0;
    std::int32_t id = 0;
    bool special = false;
    std::size_t search_from = 0;  ///< the end of the token alone: there the search goes on
  };

  added_token_finder() = default;  ///< finds nothing
  /// @param tokens  of two with one content the later counts
  explicit added_token_finder(std::vector<added_token> tokens);

  bool empty() const noexcept { return tokens_.empty(); }

  /// Whether texts that have `text` in them may be cut there at `at`: whatever is before it and
  /// behind it, the same is found in both sides as in the whole, be ASCII letters in either case.
  /// @pre 0 < at < text.size()
  bool may_cut(std::string_view text, std::size_t at) const noexcept;

  /// The first match in `text` from `from` on.
  ///
  /// White space that a token takes along on its left ends at `taken`. What one takes along on its
  /// right may begin the next token, as in the reference: then `begin` is before the last `end`.
  /// @param taken  end of the last match, 0 at first
  std::optional<match> next(std::string_view text, std::size_t from, std::size_t taken) const;
  std::optional<match> next(std::string_view text, std::size_t from) const {
    return next(text, from, from);
  }

 private:
  std::vector<added_token> tokens_;
  token_trie contents_;  // to places in tokens_
  pair_filter begins_;
  std::bitset<65536> joined_;  // first << 8 | second: bytes that some token does not let be parted
};

}  // namespace millrace::tokenizer::detail
