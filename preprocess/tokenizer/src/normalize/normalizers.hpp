// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/interfaces.hpp"
#include "text/charsmap.hpp"
#include "unicode/normalization.hpp"

/// The normalizers of Hugging Face's tokenizer.json, with their names in that file.
namespace millrace::tokenizer::detail {

using normalizer_pointer = std::unique_ptr<const normalizer>;

/// The steps of BertNormalizer, in order.
struct bert_steps {
  bool clean_text = true;            ///< drops control characters, replaces white space with spaces
  bool handle_chinese_chars = true;  ///< adds a space on both sides of each ideograph
  bool strip_accents = true;         ///< NFD, then drops nonspacing marks
  bool lowercase = true;
};
normalizer_pointer make_bert_normalizer(const bert_steps& steps);

/// NFC, NFD, NFKC, NFKD: converts text to this normal form
normalizer_pointer make_normal_form(normal_form form);

/// Lowercase: converts each character independently, so a final sigma gets no special treatment
normalizer_pointer make_lowercase();

/// Strip: drops white space at the left and right end
normalizer_pointer make_strip(bool left, bool right);

/// StripAccents: drops combining marks, but does not decompose characters
normalizer_pointer make_strip_accents();

/// Nmt: drops control characters, replaces some zero-width characters with spaces
normalizer_pointer make_nmt();

/// ByteLevel: replaces each byte with the character that represents it in GPT-2's files
normalizer_pointer make_byte_level_normalizer();

/// Prepend: puts `prefix` before a text that is not empty
normalizer_pointer make_prepend(std::string prefix);

/// Replace with a String pattern: replaces all non-overlapping occurrences, searching from the left
/// @pre pattern is not empty
normalizer_pointer make_replace(std::string pattern, std::string content);

/// Precompiled: SentencePiece's rules for characters, applied to grapheme clusters
normalizer_pointer make_precompiled(charsmap rules);

/// Sequence: runs the steps in order
normalizer_pointer make_normalizer_sequence(std::vector<normalizer_pointer> steps);

}  // namespace millrace::tokenizer::detail
