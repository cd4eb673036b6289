// SPDX-License-Identifier: Apache-2.0
#include "models/character_bpe.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include <millrace/formats/detail/free_memory.hpp>
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
      if (auto fault = find_symbols<false>(word)) return fault;
      ids.append(std::span(symbols_).first(merger_.merge(symbols_)));
      if (symbols_.capacity() > kept_symbols) formats::free_memory(symbols_);
      return std::nullopt;
    }

    // A merged token covers as many symbols as their texts, without the prefixes, make its text. As
    // in Hugging Face, spans follow from the sizes of symbols in the word, so if a character was
    // dropped, the spans after it are too early.
    std::optional<encode_fault> encode_with_offsets(std::string_view word, id_buffer& ids,
                                                    std::vector<byte_span>& spans) override {
      if (model_->options_.whole_words_first && model_->tokens_->find(word) != token_index::none) {
        spans.push_back({0, word.size()});
        return encode(word, ids);
      }
      if (auto fault = find_symbols<true>(word)) return fault;
      parts_ = symbols_;
      const auto merged = std::span(symbols_).first(merger_.merge(symbols_));
      std::size_t part = 0;
      std::size_t at = 0;
      for (const std::int32_t id : merged) {
        const std::size_t begin = at;
        const std::size_t whole = model_->text_size(id);
        std::size_t size = 0;
        do {
          if (part == parts_.size()) return encode_fault{0, "a token is not made of its parts"};
          size += model_->text_size(parts_[part]);
          if (at != begin) size -= model_->options_.prefix.size();
          at += sizes_[part++];
        } while (size < whole);
        if (at > word.size() || size > whole) {
          return encode_fault{0,
                              "the spans of the tokens of a word exceed the word, because its "
                              "bytes have tokens and a prefix or a suffix has not"};
        }
        spans.push_back({begin, at});
      }
      ids.append(merged);
      if (symbols_.capacity() > kept_symbols) {
        formats::free_memory(symbols_);
        formats::free_memory(parts_);
      }
      if (sizes_.capacity() > kept_symbols) formats::free_memory(sizes_);
      return std::nullopt;
    }

   private:
    // Writes symbols_ and, if WithSizes, sizes_.
    template <bool WithSizes>
    std::optional<encode_fault> find_symbols(std::string_view word) {
      symbols_.clear();
      if (WithSizes) sizes_.clear();
      std::optional<std::int32_t> waiting;  // an unknown token that is not yet written
      std::size_t waiting_size = 0;
      const auto push = [&](std::int32_t id, std::size_t size) {
        symbols_.push_back(id);
        if (WithSizes) sizes_.push_back(size);
      };
      for (std::size_t at = 0; at < word.size();) {
        const std::size_t size = code_point_at(word, at).size_bytes;
        const std::string_view text = spelled(word, at, size);
        const std::int32_t id = model_->id_of(text);
        at += size;
        if (id != token_index::none) {
          if (waiting) push(*std::exchange(waiting, std::nullopt), waiting_size);
          push(id, size);
        } else if (!model_->options_.byte_fallback || !take_bytes(text)) {
          if (model_->options_.unknown_is_fault) {
            return encode_fault{at - size, "the character " +
                                               formats::in_quotes(word.substr(at - size, size)) +
                                               " has no token, nor has the unknown token"};
          }
          if (waiting && !model_->options_.fuse_unknown) push(*waiting, waiting_size);
          waiting_size = size + (waiting && model_->options_.fuse_unknown ? waiting_size : 0);
          waiting = model_->options_.unknown;
        }
        if (WithSizes) sizes_.resize(symbols_.size(), 1);  // of byte tokens
      }
      if (waiting) push(*waiting, waiting_size);
      if (symbols_.size() > bpe_merger::max_symbols) {
        return encode_fault{0, "a word of " + std::to_string(symbols_.size()) +
                                   " symbols, expected at most " +
                                   std::to_string(bpe_merger::max_symbols)};
      }
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
    std::vector<std::int32_t> parts_;  // the symbols before they merge
    std::vector<std::size_t> sizes_;   // by symbol before they merge: its size in the word
    std::string spelled_;
  };

  std::size_t text_size(std::int32_t id) const noexcept {
    return tokens_->tokens().bytes(id).size();
  }

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
