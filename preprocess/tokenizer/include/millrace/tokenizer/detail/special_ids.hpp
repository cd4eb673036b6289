// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <millrace/tokenizer/tokenizer.hpp>

namespace millrace::tokenizer {

/// The ids that stand for structure and not for text, ascending: the end-of-document id, the ids of
/// a template, and added tokens that the files mark as special.
std::vector<std::int32_t> special_ids(const tokenizer& of);

/// The ids of the tokens with the spelling `token`, ascending; usually one or none. An added token
/// with this content is preferred to tokens that only decode to this text. Pieces of SentencePiece
/// may be spelled with their U+2581 for a space, e.g. "\u2581<PRE>".
///
/// Decodes the whole vocabulary if no added token has this content: a few milliseconds.
std::vector<std::int32_t> ids_of_token(const tokenizer& of, std::string_view token);

}  // namespace millrace::tokenizer
