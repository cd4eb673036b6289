// SPDX-License-Identifier: Apache-2.0
#include "composed/added_tokens.hpp"

#include <algorithm>
#include <utility>

namespace millrace::tokenizer::detail {

added_token_finder::added_token_finder(std::vector<added_token> tokens)
    : tokens_(std::move(tokens)) {
  // Of two that begin at one place the longer comes first.
  std::ranges::stable_sort(tokens_, std::ranges::greater(),
                           [](const added_token& token) { return token.content.size(); });
}

std::optional<added_token_finder::match> added_token_finder::next(std::string_view text,
                                                                  std::size_t from) const {
  std::optional<match> first;
  for (const added_token& token : tokens_) {
    const std::size_t at = text.find(token.content, from);
    if (at == std::string_view::npos || (first && first->begin <= at)) continue;
    first = {at, at + token.content.size(), token.id, token.special};
  }
  return first;
}

}  // namespace millrace::tokenizer::detail
