// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/interfaces.hpp"
#include "sentencepiece/model_file.hpp"
#include "sentencepiece/text_normalizer.hpp"

namespace millrace::tokenizer::detail {

/// Decodes ids as SentencePiece's DecodeIds does. U+2581 becomes a space, and the leading dummy
/// space is dropped. Control pieces give no text, and the unknown piece gives the model's
/// `unk_surface`. Bytes are joined into characters. An id outside the vocabulary becomes U+FFFD,
/// whereas SentencePiece refuses it.
class sentencepiece_decoder final : public detokenizer {
 public:
  /// @throws format_error  the charsmap of the model's denormalizer is malformed
  explicit sentencepiece_decoder(const sentencepiece_model& model);

  std::string decode(std::span<const std::int64_t> ids) const override;
  std::optional<formats::token_texts> texts() const override;

 private:
  struct piece {
    std::string text;  // for a byte piece, that byte
    piece_type type;
  };

  static void append_bytes(std::string& bytes, std::string& text);

  std::vector<piece> pieces_;
  std::string unk_surface_;
  bool drops_dummy_;
  bool drops_spaces_;
  std::optional<text_normalizer> denormalizer_;
};

}  // namespace millrace::tokenizer::detail
