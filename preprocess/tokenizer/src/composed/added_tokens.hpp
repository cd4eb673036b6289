// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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
};

/// Finds added tokens in text, the leftmost first and of those that begin together the longest.
/// Immutable, shared by threads.
class added_token_finder {
 public:
  struct match {
    std::size_t begin = 0;  ///< of the text that it replaces: with white space that it takes along
    std::size_t end = 0;
    std::int32_t id = 0;
    bool special = false;
  };

  added_token_finder() = default;  ///< finds nothing
  explicit added_token_finder(std::vector<added_token> tokens);

  bool empty() const noexcept { return tokens_.empty(); }

  /// The first match that lies in `text` from `from` on.
  std::optional<match> next(std::string_view text, std::size_t from) const;

 private:
  std::vector<added_token> tokens_;
};

}  // namespace millrace::tokenizer::detail
