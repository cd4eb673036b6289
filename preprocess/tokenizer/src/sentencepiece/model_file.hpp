// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::tokenizer::detail {

enum class piece_type : std::uint8_t {
  normal = 1,  // the values are those in the file
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6,
};

enum class model_type : std::uint8_t { unigram = 1, bpe = 2, word = 3, character = 4 };

/// The rules by which text is normalized before encoding, or denormalized after decoding.
struct normalizer_spec {
  std::string charsmap;               ///< as in the file; empty if there are no rules
  std::uint64_t charsmap_offset = 0;  ///< in bytes from the start of the file
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
};

/// The contents of a SentencePiece `.model` file that encoding and decoding need.
struct sentencepiece_model {
  struct piece {
    std::string_view text;  ///< valid UTF-8, not empty; points into the file's bytes
    float score = 0;        ///< finite
    piece_type type = piece_type::normal;
  };

  std::vector<piece> pieces;  ///< by id
  model_type type = model_type::unigram;
  bool byte_fallback = false;
  bool whitespace_as_suffix = false;
  std::string unk_surface = " \xE2\x81\x87 ";
  normalizer_spec normalizer;
  std::optional<normalizer_spec> denormalizer;  ///< absent if its charsmap is empty
  std::int32_t unk_id = -1;                     ///< -1 only with byte_fallback
  std::int32_t eos_id = -1;
  std::array<std::int32_t, 256> byte_ids{};  ///< set only with byte_fallback
};

/// Reads a model and checks it as SentencePiece does when it loads one.
///
/// @param file  must outlive the result, whose pieces point into it
/// @throws format_error  `file` is not a SentencePiece model, or SentencePiece refuses the model:
///                       it has an empty or duplicate piece, no unknown piece, or a byte without a
///                       piece. Also thrown for a piece that is not UTF-8 or a score that is not
///                       finite, which SentencePiece may accept.
sentencepiece_model parse_sentencepiece_model(std::string_view file);

/// U+2581, which stands for a space in a model's pieces.
inline constexpr std::string_view space_symbol = "\xE2\x96\x81";

}  // namespace millrace::tokenizer::detail
