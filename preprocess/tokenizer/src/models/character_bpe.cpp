// SPDX-License-Identifier: Apache-2.0
#include "models/character_bpe.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include <millrace/formats/detail/in_quotes.hpp>

#include "bpe/bpe_merger.hpp"
#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {
namespace {

class character_bpe final : public word_model {
 public:
  character_bpe(std::unique_ptr<const vocabulary> tokens, const std::vector<merge_rule>& merges,
                character_bpe_options options)
      : tokens_(std::move(tokens)), merges_(merges), options_(std::move(options)) {
    for (std::size_t byte = 0; byte < byte_ids_.size(); ++byte) {
      byte_ids_[byte] = tokens_->find(byte_token(static_cast<unsigned char>(byte)));
      const char c = static_cast<char>(byte);
      ascii_ids_[byte] = byte < 0x80 ? tokens_->find({&c, 1}) : token_index::none;
    }
    plain_ = options_.prefix.empty() && options_.suffix.empty();
  }

  std::unique_ptr<word_encoder> make_encoder() const override {
    return std::make_unique<encoder>(*this);
  }

 private:
  // If a huge word needs scratch memory for more symbols than this, encode() frees the memory
  // afterwards. Ordinary words need less.
  static constexpr std::size_t kept_symbols = std::size_t{1} << 20;

  class encoder final : public word_encoder {
   public:
    explicit encoder(const character_bpe& model) : model_(&model), merger_(model.merges_) {}

    std::optional<encode_fault> encode(std::string_view word, id_buffer& ids) override {
      if (model_->options_.whole_words_first) {
        const std::int32_t whole = model_->tokens_->find(word);
        if (whole != token_index::none) {
          ids.push_back(whole);
          return std::nullopt;
        }
      }
      symbols_.clear();
      if (auto fault = find_symbols(word)) return fault;
      if (symbols_.size() > bpe_merger::max_symbols) {
        return encode_fault{0, "a word of " + std::to_string(symbols_.size()) +
                                   " symbols, expected at most " +
                                   std::to_string(bpe_merger::max_symbols)};
      }
      ids.append(std::span(symbols_).first(merger_.merge(symbols_)));
      if (symbols_.capacity() > kept_symbols) symbols_ = {};
      return std::nullopt;
    }

   private:
    std::optional<encode_fault> find_symbols(std::string_view word) {
      std::optional<std::int32_t> waiting;  // an unknown token that is not yet written
      for (std::size_t at = 0; at < word.size();) {
        const std::size_t size = code_point_at(word, at).size_bytes;
        const std::string_view text = spelled(word, at, size);
        const std::int32_t id = model_->id_of(text);
        at += size;
        if (id != token_index::none) {
          if (waiting) symbols_.push_back(*std::exchange(waiting, std::nullopt));
          symbols_.push_back(id);
        } else if (!model_->options_.byte_fallback || !take_bytes(text)) {
          if (model_->options_.unknown_is_fault) {
            return encode_fault{at - size, "the character " +
                                               formats::in_quotes(word.substr(at - size, size)) +
                                               " has no token, nor has the unknown token"};
          }
          if (waiting && !model_->options_.fuse_unknown) symbols_.push_back(*waiting);
          waiting = model_->options_.unknown;
        }
      }
      if (waiting) symbols_.push_back(*waiting);
      return std::nullopt;
    }

    // Returns the character of `size` bytes at offset `at`, together with the prefix or the suffix
    // that the model adds to it.
    std::string_view spelled(std::string_view word, std::size_t at, std::size_t size) {
      const std::string_view character = word.substr(at, size);
      if (model_->plain_) return character;
      spelled_.clear();
      if (at != 0) spelled_ += model_->options_.prefix;
      spelled_ += character;
      if (at + size == word.size()) spelled_ += model_->options_.suffix;
      return spelled_;
    }

    bool take_bytes(std::string_view text) {
      const auto id = [&](char c) { return model_->byte_ids_[static_cast<unsigned char>(c)]; };
      if (std::ranges::any_of(text, [&](char c) { return id(c) == token_index::none; })) {
        return false;
      }
      for (const char c : text) symbols_.push_back(id(c));
      return true;
    }

    const character_bpe* model_;
    bpe_merger merger_;
    std::vector<std::int32_t> symbols_;
    std::string spelled_;
  };

  std::int32_t id_of(std::string_view character) const noexcept {
    return character.size() == 1 ? ascii_ids_[static_cast<unsigned char>(character[0])]
                                 : tokens_->find(character);
  }

  std::unique_ptr<const vocabulary> tokens_;
  merge_table merges_;
  character_bpe_options options_;
  bool plain_ = true;
  std::array<std::int32_t, 256> byte_ids_{};
  std::array<std::int32_t, 256> ascii_ids_{};
};

}  // namespace

std::unique_ptr<const word_model> make_character_bpe(std::unique_ptr<const vocabulary> tokens,
                                                     const std::vector<merge_rule>& merges,
                                                     character_bpe_options options) {
  return std::make_unique<character_bpe>(std::move(tokens), merges, std::move(options));
}

}  // namespace millrace::tokenizer::detail
