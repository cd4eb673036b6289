// SPDX-License-Identifier: Apache-2.0
#include "models/word_level.hpp"

#include <utility>

#include "messages/in_quotes.hpp"

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
        return encode_fault{0, "the word " + in_quotes(word) +
                                   " is not in the vocabulary, which has no unknown token"};
      }
      ids.push_back(id == token_index::none ? *model_->unknown_ : id);
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

}  // namespace millrace::tokenizer::detail
