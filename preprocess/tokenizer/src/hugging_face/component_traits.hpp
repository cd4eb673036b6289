// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <simdjson.h>

#include "hugging_face/json_node.hpp"
#include "split/splitters.hpp"

/// What a tokenizer has to know of its normalizer and pre-tokenizer before it builds them.
namespace millrace::tokenizer::detail {

/// The pattern whose units of raw text the normalizer and the pre-tokenizer of a tokenizer.json
/// treat each by itself (bert_group says why), so that a unit_engine may have them: BERT's, and
/// those that look no farther than to the next white space. Nothing if they are others.
///
/// @param root  of a file whose components have been read, so that they are what they should be
std::optional<pattern> raw_units_of(const json_node& root);

/// A Metaspace whose prepend_scheme is "first" asks whether a piece is at the beginning of the
/// text, and the reference answers by where in the original text it has the piece from. Where a
/// normalizer has changed what is there, that is not always 0. Both are false where no Metaspace
/// asks.

/// Whether the first piece may come from elsewhere: where characters are taken away, or several
/// become others. Unless what they become makes the question idle: it begins as what is prepended.
bool may_move_the_start(simdjson::dom::element normalizer, simdjson::dom::element pre_tokenizer);

/// Whether a second piece may come from the beginning as well, since one character may become
/// several, and an added token may be found in the first of them.
bool may_split_the_start(simdjson::dom::element normalizer, simdjson::dom::element pre_tokenizer);

}  // namespace millrace::tokenizer::detail
