// SPDX-License-Identifier: Apache-2.0
#include "models/piecewise_engine.hpp"

#include <cstddef>
#include <string_view>
#include <utility>

#include "models/word_cache.hpp"

namespace millrace::tokenizer::detail {
namespace {

class piecewise_encoder final : public section_encoder {
 public:
  piecewise_encoder(const pre_tokenizer* words, const word_model& model, std::size_t cache_bytes)
      : words_(words), model_(model.make_encoder()), cache_(cache_bytes) {}

  std::optional<encode_fault> encode(const section& part, id_buffer& ids) override {
    if (words_ == nullptr) return encode_word(part.text, ids);
    words_->split(part, pieces_);
    const std::string_view text = pieces_.text;
    std::size_t begin = 0;
    for (const std::size_t end : pieces_.ends) {
      if (auto fault = encode_word(text.substr(begin, end - begin), ids)) {
        // The place of the word in the text is not known, because the pre-tokenizer may have
        // changed the text.
        fault->offset_bytes = 0;
        return fault;
      }
      begin = end;
    }
    if (pieces_.text.capacity() > kept_bytes) pieces_ = {};
    return std::nullopt;
  }

 private:
  // If a huge text needs more scratch memory than this, encode() frees the memory afterwards.
  // Ordinary texts need less.
  static constexpr std::size_t kept_bytes = std::size_t{1} << 22;

  std::optional<encode_fault> encode_word(std::string_view word, id_buffer& ids) {
    if (word.empty()) return std::nullopt;
    if (word.size() > word_cache::max_word_bytes) return model_->encode(word, ids);
    if (const auto known = cache_.find(word)) {
      ids.append(*known);
      return std::nullopt;
    }
    const std::size_t before = ids.size();
    if (auto fault = model_->encode(word, ids)) return fault;
    cache_.put(word, ids.ids().subspan(before));
    return std::nullopt;
  }

  const pre_tokenizer* words_;
  std::unique_ptr<word_encoder> model_;
  word_cache cache_;
  piece_list pieces_;
};

class piecewise_engine final : public section_engine {
 public:
  piecewise_engine(std::unique_ptr<const pre_tokenizer> words,
                   std::unique_ptr<const word_model> model)
      : words_(std::move(words)), model_(std::move(model)) {}

  std::unique_ptr<section_encoder> make_encoder(std::size_t cache_bytes) const override {
    return std::make_unique<piecewise_encoder>(words_.get(), *model_, cache_bytes);
  }

 private:
  std::unique_ptr<const pre_tokenizer> words_;
  std::unique_ptr<const word_model> model_;
};

}  // namespace

std::unique_ptr<const section_engine> make_piecewise_engine(
    std::unique_ptr<const pre_tokenizer> words, std::unique_ptr<const word_model> model) {
  return std::make_unique<piecewise_engine>(std::move(words), std::move(model));
}

}  // namespace millrace::tokenizer::detail
