// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

/// Properties of code points, as in Hugging Face's tokenizers. These tokenizers use several
/// libraries with different Unicode versions, so there is one table per library.
/// scripts/normalization_tables generates the tables by querying the tokenizers package.
namespace millrace::tokenizer::detail {

/// The code points where membership changes, in ascending order. U+0000 is a member only if the
/// first entry is 0.
using inversion_list = std::span<const std::uint32_t>;

/// Sets of code points, in the order of `reference_sets`.
enum class reference_set : std::uint8_t {
  bert_control,          ///< characters that BertNormalizer's clean_text removes
  bert_nonspacing_mark,  ///< characters that BertNormalizer's strip_accents removes
  combining_mark,        ///< characters that StripAccents removes
  punctuation,           ///< for Punctuation and BertPreTokenizer
  numeric,               ///< for Digits
  rust_word,             ///< \w in Whitespace
  // All sets below are for regular expressions.
  posix_alnum,
  posix_alpha,
  posix_blank,
  posix_cntrl,
  posix_digit,
  posix_graph,
  posix_lower,
  posix_print,
  posix_punct,
  posix_space,
  posix_upper,
  posix_xdigit,
  posix_word,
  word,         ///< \w
  decimal,      ///< \d
  white_space,  ///< \s
  script_arabic,
  script_armenian,
  script_bengali,
  script_cyrillic,
  script_devanagari,
  script_georgian,
  script_greek,
  script_hangul,
  script_han,
  script_hebrew,
  script_hiragana,
  script_katakana,
  script_latin,
  script_tamil,
  script_telugu,
  script_thai,
};
extern const inversion_list reference_sets[];

inline inversion_list bounds_of(reference_set set) noexcept {
  return reference_sets[static_cast<std::size_t>(set)];
}

/// General categories, in the order of `category_runs`.
inline constexpr const char* category_names[] = {
    "Cc", "Cf", "Cn", "Co", "Ll", "Lm", "Lo", "Lt", "Lu", "Mc", "Me", "Mn", "Nd", "Nl", "No",
    "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "Sc", "Sk", "Sm", "So", "Zl", "Zp", "Zs"};

/// Each entry is: first code point of the run << 8 | index of its general category in
/// category_names. Surrogates have a larger index.
extern const std::uint32_t category_runs[];
extern const std::size_t category_runs_size;

/// Each entry is: first code point of the run << 8 | index of its script in UnicodeScripts. Index 0
/// matches any script.
extern const std::uint32_t script_runs[];
extern const std::size_t script_runs_size;

struct lowercase_pair {
  std::uint32_t from;
  std::uint32_t to;
};
/// Sorted by `from`. Omits U+0130, whose lower case has two characters.
extern const lowercase_pair lowercase_pairs[];
extern const std::size_t lowercase_pairs_size;

}  // namespace millrace::tokenizer::detail
