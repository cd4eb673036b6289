// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/tokenizer/tokenizer.hpp>

#include "models/vocabulary.hpp"

namespace millrace::tokenizer::detail {

/// Encodes one word at a time, for one thread.
class word_encoder {
 public:
  virtual ~word_encoder() = default;

  /// Appends the ids of `word`, which is not empty. Equal words give equal ids.
  /// @return std::nullopt, or a fault whose offset is relative to `word`.
  virtual std::optional<encode_fault> encode(std::string_view word, id_buffer& ids) = 0;

  /// Appends the ids of `word` like encode(), and for each id its span in `word`, as Hugging Face
  /// counts it. The span may begin or end inside a character.
  virtual std::optional<encode_fault> encode_with_offsets(std::string_view word, id_buffer& ids,
                                                          std::vector<byte_span>& spans) = 0;
};

/// Turns words into ids. Immutable; threads may share it.
class word_model {
 public:
  virtual ~word_model() = default;

  /// @return an encoder. This model must outlive the encoder.
  virtual std::unique_ptr<word_encoder> make_encoder() const = 0;
};

/// Encodes each word as one token, or as the unknown token.
///
/// @param unknown  id for words outside the vocabulary; if absent, such a word is a fault
std::unique_ptr<const word_model> make_word_level(std::unique_ptr<const vocabulary> words,
                                                  std::optional<std::int32_t> unknown);

struct word_piece_options {
  std::string prefix = "##";                  ///< marks tokens that continue a word
  std::size_t max_characters_per_word = 100;  ///< longer words are unknown
  std::optional<std::int32_t> unknown;  ///< for words without a token sequence; if absent, a fault
};

/// Encodes a word as the longest token at its beginning, then the longest token at the beginning of
/// the rest, and so on. If no token matches at some place, the whole word is unknown.
///
/// In the worst case, the time is proportional to the length of the word times the length of the
/// longest token.
std::unique_ptr<const word_model> make_word_piece(std::unique_ptr<const vocabulary> pieces,
                                                  word_piece_options options);

}  // namespace millrace::tokenizer::detail
