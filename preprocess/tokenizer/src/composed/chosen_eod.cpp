// SPDX-License-Identifier: Apache-2.0
#include "composed/chosen_eod.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/formats/detail/sha256.hpp>

#include "messages/in_quotes.hpp"

namespace millrace::tokenizer::detail {
namespace {

class tokenizer_with_eod final : public tokenizer {
 public:
  tokenizer_with_eod(std::unique_ptr<tokenizer> inner, std::int32_t eod)
      : inner_(std::move(inner)), eod_(eod) {}

  std::unique_ptr<encoder> make_encoder(std::size_t cache_bytes) const override {
    return inner_->make_encoder(cache_bytes);
  }
  std::int64_t vocab_size() const noexcept override { return inner_->vocab_size(); }
  std::optional<std::int32_t> eod() const noexcept override { return eod_; }
  std::string decode(std::span<const std::int64_t> ids) const override {
    return inner_->decode(ids);
  }
  std::string fingerprint() const override {
    return formats::sha256_hex(inner_->fingerprint() + "\neod " + std::to_string(eod_) + "\n");
  }
  std::vector<std::string> notes() const override { return inner_->notes(); }
  std::size_t last_cut(std::string_view text) const override { return inner_->last_cut(text); }
  bool parts_in_order() const noexcept override { return inner_->parts_in_order(); }

 private:
  std::unique_ptr<tokenizer> inner_;
  std::int32_t eod_;
};

// Decodes every id, because vocabularies have no look-up by text. This takes a few milliseconds.
std::int32_t id_of(const tokenizer& vocabulary, std::string_view content) {
  std::optional<std::int64_t> found;
  for (std::int64_t id = 0; id < vocabulary.vocab_size(); ++id) {
    if (vocabulary.decode({&id, 1}) != content) continue;
    if (found) {
      throw config_error("--eod-token " + in_quotes(content) + " is the text of two tokens, " +
                         std::to_string(*found) + " and " + std::to_string(id));
    }
    found = id;
  }
  if (!found) {
    throw config_error("--eod-token " + in_quotes(content) + " is not the text of any token");
  }
  return static_cast<std::int32_t>(*found);
}

}  // namespace

std::unique_ptr<tokenizer> with_eod(std::unique_ptr<tokenizer> inner, std::string_view content) {
  const std::int32_t eod = id_of(*inner, content);
  return with_eod(std::move(inner), eod);
}

std::unique_ptr<tokenizer> with_eod(std::unique_ptr<tokenizer> inner, std::int32_t eod) {
  return std::make_unique<tokenizer_with_eod>(std::move(inner), eod);
}

}  // namespace millrace::tokenizer::detail
