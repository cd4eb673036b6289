// SPDX-License-Identifier: Apache-2.0
#include "models/word_piece.hpp"

#include <utility>

#include "messages/in_quotes.hpp"
#include "models/token_trie.hpp"
#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {
namespace {

std::size_t characters_in(std::string_view text) {
  std::size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return count;
}

class word_piece final : public word_model {
 public:
  word_piece(const vocabulary& pieces, word_piece_options options) : options_(std::move(options)) {
    const token_table& tokens = pieces.tokens();
    for (std::int64_t id = 0; id < tokens.end_id(); ++id) {
      // A token without bytes would never end a word's analysis; no text asks for it.
      if (!tokens.has(id) || tokens.bytes(id).empty()) continue;
      trie_.add(tokens.bytes(id), static_cast<std::int32_t>(id));
    }
    continuing_ = trie_.walk(token_trie::root, options_.prefix);
  }

  std::unique_ptr<word_encoder> make_encoder() const override {
    return std::make_unique<encoder>(*this);
  }

 private:
  class encoder final : public word_encoder {
   public:
    explicit encoder(const word_piece& model) : model_(&model) {}

    std::optional<encode_fault> encode(std::string_view word, id_buffer& ids) override {
      const std::size_t before = ids.size();
      if (characters_in(word) <= model_->options_.max_characters_per_word &&
          model_->take_pieces(word, ids)) {
        return std::nullopt;
      }
      ids.truncate(before);
      if (!model_->options_.unknown) {
        return encode_fault{0, "the word " + in_quotes(word) +
                                   " is not made of tokens, and there is no unknown token"};
      }
      ids.push_back(*model_->options_.unknown);
      return std::nullopt;
    }

   private:
    const word_piece* model_;
  };

  bool take_pieces(std::string_view word, id_buffer& ids) const {
    for (std::size_t begin = 0; begin < word.size();) {
      token_trie::node node = begin == 0 ? token_trie::root : continuing_;
      std::int32_t longest = token_trie::none;
      std::size_t end = begin;
      for (std::size_t at = begin; at < word.size() && node != token_trie::nowhere;) {
        node = trie_.next(node, static_cast<unsigned char>(word[at++]));
        if (node != token_trie::nowhere && trie_.token(node) != token_trie::none) {
          longest = trie_.token(node);
          end = at;
        }
      }
      if (longest == token_trie::none) return false;
      ids.push_back(longest);
      begin = end;
    }
    return true;
  }

  word_piece_options options_;
  token_trie trie_;
  token_trie::node continuing_;
};

}  // namespace

std::unique_ptr<const word_model> make_word_piece(std::unique_ptr<const vocabulary> pieces,
                                                  word_piece_options options) {
  return std::make_unique<word_piece>(*pieces, std::move(options));
}

}  // namespace millrace::tokenizer::detail
