// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include <millrace/tokenizer/tokenizer.hpp>

namespace millrace::tokenizer::detail {

struct gpt2_model;

/// GPT-2's byte-level BPE, with exactly the ids of Hugging Face's GPT2Tokenizer:
///
///   text -> pieces between `<|endoftext|>` -> pretokens (r50k_split) -> bytes -> merges
///
/// `<|endoftext|>` in a text is always the special token. If the vocabulary lacks it, it gets the
/// id after the number of entries, as in the `transformers` package; where gaps between ids make
/// that id another token's, the vocabulary is refused.
class gpt2_tokenizer final : public tokenizer {
 public:
  /// @throws io_error      a file cannot be read.
  /// @throws format_error  a file is not what it should be, or a byte has no token (those that
  ///                       UTF-8 never has, C0, C1, F5 to FF, may lack one).
  gpt2_tokenizer(const std::filesystem::path& vocab_file, const std::filesystem::path& merge_file);
  ~gpt2_tokenizer() override;

  std::unique_ptr<encoder> make_encoder() const override;

  /// Number of tokens, or the highest id and one where ids have gaps (`transformers` says the
  /// number of tokens even then, and so may choose a dtype that cannot hold them).
  std::int64_t vocab_size() const noexcept override;
  std::optional<std::int32_t> eod() const noexcept override;
  std::string decode(std::span<const std::int64_t> ids) const override;
  std::string fingerprint() const override;

 private:
  std::unique_ptr<const gpt2_model> model_;
};

}  // namespace millrace::tokenizer::detail
