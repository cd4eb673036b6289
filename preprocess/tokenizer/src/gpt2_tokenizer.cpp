// SPDX-License-Identifier: Apache-2.0
#include "gpt2_tokenizer.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <string_view>
#include <vector>

#include "bpe_merger.hpp"
#include "gpt2_model.hpp"
#include "r50k_split.hpp"
#include "utf8.hpp"
#include "word_cache.hpp"

namespace millrace::tokenizer::detail {
namespace {

class gpt2_encoder final : public encoder {
 public:
  explicit gpt2_encoder(const gpt2_model& model) : model_(&model), merger_(model.merges) {}

  std::size_t max_ids(std::size_t size_bytes) const noexcept override {
    return size_bytes + copied_at_once - 1;
  }

  std::optional<encode_fault> encode(std::string_view text, std::uint16_t* ids,
                                     std::size_t& count) override {
    assert(model_->tokens.back().id < 65500);
    return encode_text(text, ids, count);
  }
  std::optional<encode_fault> encode(std::string_view text, std::int32_t* ids,
                                     std::size_t& count) override {
    return encode_text(text, ids, count);
  }

 private:
  // Cached ids are copied by so many without asking how many there are: nearly always enough, and
  // a branch less. A word has at least one byte, so this many minus one are spare at the end.
  static constexpr std::size_t copied_at_once = 4;

  // Symbols of one huge pretoken are not kept for the ordinary ones that follow it.
  static constexpr std::size_t kept_symbols = std::size_t{1} << 20;

  template <class Id>
  std::optional<encode_fault> encode_text(std::string_view text, Id* ids, std::size_t& count) {
    Id* out = ids;
    for (std::size_t begin = 0;;) {
      const std::size_t special = text.find(gpt2_model::end_of_text, begin);
      const std::size_t end = std::min(special, text.size());
      if (auto fault = encode_piece(text, begin, end, out)) return fault;
      if (special == std::string_view::npos) break;
      *out++ = static_cast<Id>(model_->end_of_text_id);
      begin = end + gpt2_model::end_of_text.size();
    }
    count = static_cast<std::size_t>(out - ids);
    return std::nullopt;
  }

  // The part of `text` that lies between special tokens; it is passed whole because a key may be
  // read past the end of the part, not past that of the text.
  template <class Id>
  std::optional<encode_fault> encode_piece(std::string_view text, std::size_t begin,
                                           std::size_t end, Id*& out) {
    const std::string_view piece = text.substr(begin, end - begin);
    for (std::size_t at = 0; at < piece.size();) {
      const std::size_t word_end = r50k_end(piece, at);
      const std::string_view word = piece.substr(at, word_end - at);
      if (word.size() <= word_cache::max_word_bytes) {
        out = encode_word(word, text.size() - begin - at, out);
      } else if (word.size() <= bpe_merger::max_symbols) {
        const auto found = merge(word);
        out = std::transform(found.begin(), found.end(), out, narrow<Id>);
      } else {
        return encode_fault{begin + at, "a word of " + std::to_string(word.size()) +
                                            " bytes, expected at most " +
                                            std::to_string(bpe_merger::max_symbols)};
      }
      at = word_end;
    }
    return std::nullopt;
  }

  template <class Id>
  Id* encode_word(std::string_view word, std::size_t readable, Id* out) {
    const auto key = word_cache::make_key(word.data(), word.size(), readable);
    word_cache::entry& place = cache_.at(key);
    if (place.word != key) {
      const auto found = merge(word);
      if (found.size() > word_cache::max_ids) {
        return std::transform(found.begin(), found.end(), out, narrow<Id>);
      }
      word_cache::put(place, key, found);
    }
    const std::int32_t* ids = place.ids.data();
    for (std::size_t i = 0; i < copied_at_once; ++i) out[i] = narrow<Id>(ids[i]);
    for (std::size_t i = copied_at_once; i < place.count; ++i) out[i] = narrow<Id>(ids[i]);
    return out + place.count;
  }

  // The ids of one pretoken, valid until the next call.
  std::span<const std::int32_t> merge(std::string_view word) {
    if (symbols_.size() < word.size() || symbols_.size() > kept_symbols) {
      symbols_ = std::vector<std::int32_t>(std::max<std::size_t>(word.size(), 64));
    }
    for (std::size_t i = 0; i < word.size(); ++i) {
      symbols_[i] = model_->byte_ids[static_cast<unsigned char>(word[i])];
    }
    const std::span<std::int32_t> symbols(symbols_.data(), word.size());
    return symbols.first(merger_.merge(symbols));
  }

  template <class Id>
  static Id narrow(std::int32_t id) noexcept {
    return static_cast<Id>(id);
  }

  const gpt2_model* model_;
  bpe_merger merger_;
  word_cache cache_;
  std::vector<std::int32_t> symbols_;
};

}  // namespace

gpt2_tokenizer::gpt2_tokenizer(const std::filesystem::path& vocab_file,
                               const std::filesystem::path& merge_file)
    : model_(std::make_unique<const gpt2_model>(load_gpt2_model(vocab_file, merge_file))) {}

gpt2_tokenizer::~gpt2_tokenizer() = default;

std::unique_ptr<encoder> gpt2_tokenizer::make_encoder() const {
  return std::make_unique<gpt2_encoder>(*model_);
}

std::int64_t gpt2_tokenizer::vocab_size() const noexcept {
  return std::int64_t{model_->tokens.back().id} + 1;  // ids are distinct: never below their number
}

std::optional<std::int32_t> gpt2_tokenizer::eod() const noexcept {
  return model_->end_of_text_id;
}

std::string gpt2_tokenizer::decode(std::span<const std::int64_t> ids) const {
  std::string text;
  for (const std::int64_t id : ids) {
    const gpt2_model::token* token = model_->find(id);
    text += token != nullptr ? std::string_view(token->bytes) : replacement_character;
  }
  return text;
}

std::string gpt2_tokenizer::fingerprint() const {
  return model_->fingerprint;
}

}  // namespace millrace::tokenizer::detail
