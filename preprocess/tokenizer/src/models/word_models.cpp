// SPDX-License-Identifier: Apache-2.0
#include "models/word_models.hpp"

#include <string>
#include <utility>

#include <millrace/formats/detail/free_memory.hpp>
#include <millrace/formats/detail/in_quotes.hpp>

#include "models/piece_table.hpp"
#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {
namespace {

class word_level final : public word_model {
 public:
  word_level(std::unique_ptr<const vocabulary> words, std::optional<std::int32_t> unknown)
      : words_(std::move(words)), unknown_(unknown) {}

  std::unique_ptr<word_encoder> make_encoder() const override {
    return std::make_unique<encoder>(*this);
  }

 private:
  class encoder final : public word_encoder {
   public:
    explicit encoder(const word_level& model) : model_(&model) {}

    std::optional<encode_fault> encode(std::string_view word, id_buffer& ids) override {
      const std::int32_t id = model_->words_->find(word);
      if (id == token_index::none && !model_->unknown_) {
        return encode_fault{0, "the word " + formats::in_quotes(word) +
                                   " is not in the vocabulary, which has no unknown token"};
      }
      ids.push_back(id == token_index::none ? *model_->unknown_ : id);
      return std::nullopt;
    }

    std::optional<encode_fault> encode_with_offsets(std::string_view word, id_buffer& ids,
                                                    std::vector<byte_span>& spans) override {
      if (auto fault = encode(word, ids)) return fault;
      spans.push_back({0, word.size()});
      return std::nullopt;
    }

   private:
    const word_level* model_;
  };

  std::unique_ptr<const vocabulary> words_;
  std::optional<std::int32_t> unknown_;
};

}  // namespace

std::unique_ptr<const word_model> make_word_level(std::unique_ptr<const vocabulary> words,
                                                  std::optional<std::int32_t> unknown) {
  return std::make_unique<word_level>(std::move(words), unknown);
}

namespace {

std::size_t characters_in(std::string_view text) {
  std::size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return count;
}

class word_piece final : public word_model {
 public:
  word_piece(const vocabulary& pieces, word_piece_options options)
      : options_(std::move(options)), pieces_(pieces_in(pieces.tokens(), options_.prefix)) {
    const token_table& tokens = pieces.tokens();
    for (std::int64_t id = 0; id < tokens.end_id(); ++id) {
      if (!tokens.has(id)) continue;
      // Skip empty pieces. They would cause an endless loop, and no text contains them.
      std::string_view piece = tokens.bytes(id);
      if (!piece.empty()) pieces_.add(piece, false, static_cast<std::int32_t>(id));
      if (!piece.starts_with(options_.prefix)) continue;
      piece.remove_prefix(options_.prefix.size());
      if (!piece.empty()) pieces_.add(piece, true, static_cast<std::int32_t>(id));
    }
  }

  std::unique_ptr<word_encoder> make_encoder() const override {
    return std::make_unique<encoder>(*this);
  }

 private:
  // Counts a token that begins with the prefix twice: as a piece with and a piece without the
  // prefix.
  static std::size_t pieces_in(const token_table& tokens, std::string_view prefix) {
    std::size_t count = tokens.count();
    for (std::int64_t id = 0; id < tokens.end_id(); ++id) {
      count += tokens.has(id) && tokens.bytes(id).starts_with(prefix);
    }
    return count;
  }

  class encoder final : public word_encoder {
   public:
    explicit encoder(const word_piece& model) : model_(&model) {}

    std::optional<encode_fault> encode(std::string_view word, id_buffer& ids) override {
      const std::size_t before = ids.size();
      if (characters_in(word) <= model_->options_.max_characters_per_word &&
          take_pieces(word, ids, [](std::size_t, std::size_t) {})) {
        return std::nullopt;
      }
      ids.truncate(before);
      return take_unknown(word, ids);
    }

    std::optional<encode_fault> encode_with_offsets(std::string_view word, id_buffer& ids,
                                                    std::vector<byte_span>& spans) override {
      const std::size_t before = ids.size();
      const std::size_t spans_before = spans.size();
      const auto note = [&](std::size_t begin, std::size_t end) { spans.push_back({begin, end}); };
      if (characters_in(word) <= model_->options_.max_characters_per_word &&
          take_pieces(word, ids, note)) {
        return std::nullopt;
      }
      ids.truncate(before);
      spans.resize(spans_before);
      if (auto fault = take_unknown(word, ids)) return fault;
      spans.push_back({0, word.size()});
      return std::nullopt;
    }

   private:
    std::optional<encode_fault> take_unknown(std::string_view word, id_buffer& ids) const {
      if (!model_->options_.unknown) {
        return encode_fault{0, "the word " + formats::in_quotes(word) +
                                   " is not made of tokens, and there is no unknown token"};
      }
      ids.push_back(*model_->options_.unknown);
      return std::nullopt;
    }

    // Calls note(begin, end) for each piece.
    template <class Note>
    bool take_pieces(std::string_view word, id_buffer& ids, const Note& note) {
      text_.assign(word).append(piece_table::read_bytes, '\0');
      const std::string_view text(text_.data(), word.size());
      for (std::size_t at = 0; at < text.size();) {
        const auto piece = model_->pieces_.longest(text.substr(at), at != 0);
        if (piece.id == piece_table::none) return false;
        ids.push_back(piece.id);
        note(at, at + piece.size_bytes);
        at += piece.size_bytes;
      }
      if (text_.capacity() > kept_bytes) formats::free_memory(text_);
      return true;
    }

    // If a huge word needs a larger buffer than this, encode() frees the buffer afterwards.
    // Ordinary words need less.
    static constexpr std::size_t kept_bytes = std::size_t{1} << 16;

    const word_piece* model_;
    std::string text_;  // a word, then padding that may be read
  };

  word_piece_options options_;
  piece_table pieces_;
};

}  // namespace

std::unique_ptr<const word_model> make_word_piece(std::unique_ptr<const vocabulary> pieces,
                                                  word_piece_options options) {
  return std::make_unique<word_piece>(*pieces, std::move(options));
}

}  // namespace millrace::tokenizer::detail
