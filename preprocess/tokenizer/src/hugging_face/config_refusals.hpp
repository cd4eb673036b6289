// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "hugging_face/folder_class.hpp"
#include "hugging_face/json_node.hpp"
#include "hugging_face/read_added_tokens.hpp"

namespace millrace::tokenizer::detail {

/// Refuses a tokenizer_config.json by which `transformers`, in its release 4.57 or 5.23, would
/// give other ids than tokenizer.json does, where that is not followed here:
///
/// - classes that do not read tokenizer.json (`M2M100Tokenizer`, `XLMTokenizer`, ...), that make a
///   template of their own (`NllbTokenizer`, `MBartTokenizer`, `WhisperTokenizer`, ...) or another
///   pre-tokenizer (`RoFormerTokenizer`); with or without `Fast` behind the name; and those of
///   which nothing is known here (class_tokens.hpp)
/// - what such classes are told: src_lang, tgt_lang, language, task, predict_timestamps,
///   legacy_behaviour
/// - auto_map, from_slow, split_special_tokens, fix_mistral_regex
/// - extra_ids (of T5: 100 where it is not given) and tokens with names of their own, such as
///   image_token, that tokenizer.json does not add
///
/// Flags that are false and entries that are null say nothing. All other entries are left alone.
///
/// @param opened_as  the class of the folder
/// @param added      what tokenizer.json and the config's lists add
/// @throws format_error  with the place in the config
void refuse_what_is_not_followed(const json_node& config, const folder_class& opened_as,
                                 const added_vocabulary& added);

}  // namespace millrace::tokenizer::detail
