// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "bpe/token_table.hpp"
#include "composed/interfaces.hpp"
#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {

/// Concatenates the bytes of the tokens.
class byte_detokenizer final : public detokenizer {
 public:
  explicit byte_detokenizer(token_table tokens) : tokens_(std::move(tokens)) {}

  std::string decode(std::span<const std::int64_t> ids) const override {
    std::string text;
    for (const std::int64_t id : ids) {
      text += tokens_.has(id) ? tokens_.bytes(id) : replacement_character;
    }
    return text;
  }

 private:
  token_table tokens_;
};

}  // namespace millrace::tokenizer::detail
