// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/pair_filter.hpp"
#include "text/token_trie.hpp"

namespace millrace::tokenizer::detail {

/// A token that is matched as a whole in a text, before the pre-tokenizer runs. The flags are those
/// of Hugging Face's `added_tokens`.
struct added_token {
  std::string content;  ///< not empty
  std::int32_t id = 0;
  bool special = true;        ///< a control token; a policy may forbid it in text
  bool normalized = false;    ///< is matched in normalized text, in its normalized form
  bool single_word = false;   ///< matches only if no \w is next to it
  bool strips_left = false;   ///< also consumes the white space before it
  bool strips_right = false;  ///< also consumes the white space after it
  bool stays_text = false;    ///< a match remains text, in which no other token is matched
};

/// Finds added tokens in a text. Finds the leftmost match first. If several matches begin there,
/// the longest counts. Immutable; threads may share it.
///
/// A match that single_word or stays_text rules out is skipped as a whole. The search takes time
/// linear in the size of the text. In addition, each place with the first two bytes of a token
/// takes time proportional to the size of a token.
class added_token_finder {
 public:
  struct match {
    std::size_t begin = 0;  ///< start of the replaced text, including consumed white space
    std::size_t end = 0;
    std::int32_t id = 0;
    bool special = false;
    std::size_t search_from = 0;  ///< end of the token itself, where the search resumes
  };

  added_token_finder() = default;  ///< finds nothing
  /// @param tokens  if two tokens have the same content, the later one wins
  explicit added_token_finder(std::vector<added_token> tokens);

  bool empty() const noexcept { return tokens_.empty(); }
  const std::vector<added_token>& tokens() const noexcept { return tokens_; }

  /// True if every text that contains `text` can be cut at offset `at` of `text`. After such a cut,
  /// the two sides together have the same matches as the uncut text, regardless of the text before
  /// and after. Ignores the case of ASCII letters.
  /// @pre 0 < at < text.size()
  bool may_cut(std::string_view text, std::size_t at) const noexcept;

  /// Finds the first match in `text` that begins at or after `from`.
  ///
  /// A token consumes white space on its left only if that white space is after offset `taken`.
  /// White space that a token consumes on its right can also be the beginning of the next token, as
  /// in Hugging Face. Then the next match begins before the `end` of the last match.
  /// @param taken  end of the last match; 0 if there was no match yet
  std::optional<match> next(std::string_view text, std::size_t from, std::size_t taken) const;
  std::optional<match> next(std::string_view text, std::size_t from) const {
    return next(text, from, from);
  }

 private:
  std::vector<added_token> tokens_;
  token_trie contents_;  // maps contents to indices in tokens_
  pair_filter begins_;
  std::bitset<65536> joined_;  // index: first << 8 | second; no cut between these two bytes
};

}  // namespace millrace::tokenizer::detail
