// SPDX-License-Identifier: Apache-2.0
#include "tiktoken/megatron_specials.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <unordered_set>

#include <millrace/error.hpp>

#include "messages/in_quotes.hpp"
#include "tiktoken/ranked_tokens.hpp"

namespace millrace::tokenizer::detail {
namespace {

constexpr std::array usual = {"<unk>", "<s>", "</s>", "<mask>", "<pad>", "<cls>", "<sep>"};
constexpr std::int64_t usual_vocab_size = 131072;
constexpr std::int64_t usual_special_tokens = 1000;

}  // namespace

megatron_layout megatron_layout_of(const tokenizer_options& options) {
  megatron_layout layout;
  layout.vocab_size = options.vocab_size.value_or(usual_vocab_size);
  const std::int64_t count = options.tiktoken_num_special_tokens.value_or(usual_special_tokens);
  layout.special_tokens = options.special_tokens;
  if (layout.special_tokens.empty()) layout.special_tokens.assign(usual.begin(), usual.end());

  for (const char* token : usual) {
    if (std::ranges::find(layout.special_tokens, token) == layout.special_tokens.end()) {
      throw config_error(std::string("--tokenizer-special-tokens lacks ") + token +
                         ", which TikTokenizer requires; add it");
    }
  }
  if (layout.vocab_size < 2 || layout.vocab_size > ranked_tokens::max_id + std::int64_t{1}) {
    throw config_error("--vocab-size " + std::to_string(layout.vocab_size) + ": expected 2.." +
                       std::to_string(ranked_tokens::max_id + std::int64_t{1}));
  }
  const auto named = static_cast<std::int64_t>(layout.special_tokens.size());
  if (count < named || count >= layout.vocab_size) {
    throw config_error(
        "--tiktoken-num-special-tokens " + std::to_string(count) + ": expected " +
        std::to_string(named) + ".." + std::to_string(layout.vocab_size - 1) +
        ", at least the tokens of --tokenizer-special-tokens and fewer than --vocab-size");
  }
  for (std::int64_t id = named; id < count; ++id) {
    layout.special_tokens.push_back("<SPECIAL_" + std::to_string(id) + ">");
  }
  return layout;
}

}  // namespace millrace::tokenizer::detail
