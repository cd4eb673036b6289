// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "hugging_face/folder_class.hpp"
#include "hugging_face/json_node.hpp"
#include "hugging_face/read_added_tokens.hpp"

namespace millrace::tokenizer::detail {

/// Refuses a tokenizer_config.json with which `transformers` 4.57 or 5.23 would give other ids than
/// with tokenizer.json alone, unless millrace supports the difference. Refuses:
///
/// - classes that do not read tokenizer.json (`M2M100Tokenizer`, `XLMTokenizer`, ...), and classes
///   that create their own template (`NllbTokenizer`, `MBartTokenizer`, `WhisperTokenizer`, ...) or
///   their own pre-tokenizer (`RoFormerTokenizer`), all with or without the suffix `Fast`; also
///   unknown classes (folder_class.hpp)
/// - options of such classes: src_lang, tgt_lang, language, task, predict_timestamps,
///   legacy_behaviour
/// - auto_map, from_slow, split_special_tokens, fix_mistral_regex
/// - extra_ids (default for T5: 100), and tokens whose names are not in token_names, such as
///   image_token, if tokenizer.json does not add these tokens
///
/// Ignores flags that are false, entries that are null, and all other entries.
///
/// @param opened_as  the class with which `transformers` opens the folder
/// @param added      the tokens that tokenizer.json and the lists in the config add
/// @throws format_error  the config is refused; the offset is that of the refused entry
void refuse_what_is_not_followed(const json_node& config, const folder_class& opened_as,
                                 const added_vocabulary& added);

}  // namespace millrace::tokenizer::detail
