// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "pre_tokenize/piece_stage.hpp"

/// The pre-tokenizers of Hugging Face's tokenizer.json, by the names they have there; Split with a
/// regular expression is in hugging_face/regex_components.hpp.
namespace millrace::tokenizer::detail {

/// BertPreTokenizer: drops white space, isolates punctuation
stage_pointer make_bert_stage();

/// ByteLevel: GPT-2's pattern, if asked for, and each byte as the character that its files spell
/// it with
stage_pointer make_byte_level_stage(bool add_prefix_space, bool use_regex);

/// CharDelimiterSplit: drops one character
stage_pointer make_delimiter_stage(std::uint32_t delimiter);

enum class prepend_scheme : std::uint8_t { always, first, never };

/// Metaspace: spaces become `replacement`, one may be put in front, and it begins pieces
stage_pointer make_metaspace_stage(std::uint32_t replacement, prepend_scheme scheme, bool split);

/// Whitespace: `\w+|[^\w\s]+`, the rest dropped
stage_pointer make_whitespace_stage();

/// WhitespaceSplit: drops white space
stage_pointer make_whitespace_split_stage();

/// Split, its pattern a String
/// @pre pattern is not empty
stage_pointer make_split_stage(std::string pattern, split_behavior behavior, bool invert);

/// Punctuation
stage_pointer make_punctuation_stage(split_behavior behavior);

/// Digits: numbers of any script and kind, each by itself or in runs
stage_pointer make_digits_stage(bool individual);

/// UnicodeScripts: cuts where the script changes; drops what belongs to none at the start
stage_pointer make_scripts_stage();

/// FixedLength: so many characters a piece
/// @pre length > 0
stage_pointer make_fixed_length_stage(std::size_t length);

}  // namespace millrace::tokenizer::detail
