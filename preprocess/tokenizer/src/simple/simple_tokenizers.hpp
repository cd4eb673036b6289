// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <millrace/tokenizer/tokenizer.hpp>

namespace millrace::tokenizer::detail {

/// Megatron's byte-level tokenizer: ids are the bytes of the text. Ids 256 to 511 are reserved
/// for special tokens and never come from text. They decode to U+FFFD.
class byte_level_tokenizer final : public tokenizer {
 public:
  std::unique_ptr<encoder> make_encoder(std::size_t cache_bytes) const override;
  std::int64_t vocab_size() const noexcept override { return 512; }
  std::optional<std::int32_t> eod() const noexcept override { return 0; }
  std::string decode(std::span<const std::int64_t> ids) const override;
  std::optional<formats::token_texts> token_texts() const override;
  std::string fingerprint() const override;
  std::size_t last_cut(std::string_view text) const override;
};

/// Megatron's null tokenizer: the text is the ids, written out as numbers.
///
/// Accepts the same text as Python's `[int(piece) for piece in text.split(' ')]`. Single spaces
/// separate the pieces. A piece is an optional sign and at most 4,300 decimal digits of any script.
/// It may have single underscores between digits, and other white space around the number. Refuses
/// all other text, and ids outside the vocabulary.
class null_tokenizer final : public tokenizer {
 public:
  /// @param eod  end-of-document id; by default the last id
  /// @throws config_error  `vocab_size` is not in 1 .. 2^31 - 1, or `eod` is not an id.
  explicit null_tokenizer(std::int64_t vocab_size, std::optional<std::int64_t> eod = std::nullopt);

  std::unique_ptr<encoder> make_encoder(std::size_t cache_bytes) const override;
  std::int64_t vocab_size() const noexcept override { return vocab_size_; }
  std::optional<std::int32_t> eod() const noexcept override;
  std::string decode(std::span<const std::int64_t> ids) const override;
  std::optional<formats::token_texts> token_texts() const override;
  std::string fingerprint() const override;
  /// Returns an offset directly before a space, so the second part begins with that space.
  std::size_t last_cut(std::string_view text) const override;

 private:
  std::int64_t vocab_size_;
  std::int64_t eod_;
};

}  // namespace millrace::tokenizer::detail
