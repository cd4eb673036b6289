// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "pre_tokenize/piece_stage.hpp"

/// The pre-tokenizers of Hugging Face's tokenizer.json, with their names in that file. Split with a
/// regular expression is in hugging_face/read_components.hpp.
namespace millrace::tokenizer::detail {

/// BertPreTokenizer: drops white space, isolates punctuation
stage_pointer make_bert_stage();

/// ByteLevel: splits by GPT-2's pattern if `use_regex`, and replaces each byte with the character
/// that represents it in GPT-2's files
stage_pointer make_byte_level_stage(bool add_prefix_space, bool use_regex);

/// CharDelimiterSplit: splits at a character and drops it
stage_pointer make_delimiter_stage(std::uint32_t delimiter);

enum class prepend_scheme : std::uint8_t { always, first, never };

/// Metaspace: replaces each space with `replacement`. May also prepend a `replacement`, and may
/// split before each `replacement`.
stage_pointer make_metaspace_stage(std::uint32_t replacement, prepend_scheme scheme, bool split);

/// Whitespace: the pieces are the matches of `\w+|[^\w\s]+`; all other text is dropped
stage_pointer make_whitespace_stage();

/// WhitespaceSplit: splits at white space and drops it
stage_pointer make_whitespace_split_stage();

/// Split with a String pattern: treats the matches of `pattern` according to `behavior`
/// @pre pattern is not empty
stage_pointer make_split_stage(std::string pattern, split_behavior behavior, bool invert);

/// Punctuation: each punctuation character is a match, treated according to `behavior`
stage_pointer make_punctuation_stage(split_behavior behavior);

/// Digits: splits off numbers of any script and kind, individually or in runs
stage_pointer make_digits_stage(bool individual);

/// UnicodeScripts: splits where the script changes; drops text before the first script
stage_pointer make_scripts_stage();

/// FixedLength: each piece has `length` characters
/// @pre length > 0
stage_pointer make_fixed_length_stage(std::size_t length);

}  // namespace millrace::tokenizer::detail
