// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "composed/interfaces.hpp"
#include "text/charsmap.hpp"
#include "unicode/normalization.hpp"

/// The normalizers of Hugging Face's tokenizer.json, by the names they have there.
namespace millrace::tokenizer::detail {

using normalizer_pointer = std::unique_ptr<const normalizer>;

/// BertNormalizer: its steps in their order.
struct bert_steps {
  bool clean_text = true;            ///< drops controls, makes every white space a space
  bool handle_chinese_chars = true;  ///< a space on both sides of each ideograph
  bool strip_accents = true;         ///< NFD without its nonspacing marks
  bool lowercase = true;
};
normalizer_pointer make_bert_normalizer(const bert_steps& steps);

/// NFC, NFD, NFKC, NFKD
normalizer_pointer make_normal_form(normal_form form);

/// Lowercase: each character by itself, so that a final sigma is like any other
normalizer_pointer make_lowercase();

/// Strip: white space at the ends
normalizer_pointer make_strip(bool left, bool right);

/// StripAccents: drops combining marks; it does not decompose
normalizer_pointer make_strip_accents();

/// Nmt: drops controls, makes some characters without width a space
normalizer_pointer make_nmt();

/// ByteLevel: each byte as the character that stands for it in GPT-2's files
normalizer_pointer make_byte_level_normalizer();

/// Prepend: before a text that is not empty
normalizer_pointer make_prepend(std::string prefix);

/// Replace, its pattern a String: all that do not overlap, from the left
/// @pre pattern is not empty
normalizer_pointer make_replace(std::string pattern, std::string content);

/// Precompiled: SentencePiece's rules for characters, applied to grapheme clusters
normalizer_pointer make_precompiled(charsmap rules);

/// Sequence: one after the other
normalizer_pointer make_normalizer_sequence(std::vector<normalizer_pointer> steps);

}  // namespace millrace::tokenizer::detail
