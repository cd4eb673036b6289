// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "bpe/token_table.hpp"
#include "text/token_index.hpp"

namespace millrace::tokenizer::detail {

/// One token as listed in a file. `text` is a view of the file's text.
struct listed_token {
  std::string_view text;
  std::int32_t id = 0;
};

/// The tokens of a model, by id and by text. Owns the texts. Immutable; threads may share it.
class vocabulary {
 public:
  /// @pre texts and ids are distinct; ids are not negative
  explicit vocabulary(std::span<const listed_token> listed) : index_(listed.size()) {
    for (const listed_token& token : listed) tokens_.add(token.id, token.text);
    for (const listed_token& token : listed) index_.add(tokens_.bytes(token.id), token.id);
  }
  vocabulary(const vocabulary&) = delete;  // the index points into the table
  vocabulary& operator=(const vocabulary&) = delete;
  vocabulary(vocabulary&&) = delete;
  vocabulary& operator=(vocabulary&&) = delete;
  ~vocabulary() = default;

  /// The id of `text`, or token_index::none.
  std::int32_t find(std::string_view text) const noexcept { return index_.find(text); }
  const token_table& tokens() const noexcept { return tokens_; }

 private:
  token_table tokens_;
  token_index index_;
};

/// Returns the text of the token for one byte in vocabularies with byte fallback, e.g. `<0x0A>`.
inline std::string byte_token(unsigned char byte) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  return {'<', '0', 'x', digits[byte >> 4], digits[byte & 15], '>'};
}

}  // namespace millrace::tokenizer::detail
