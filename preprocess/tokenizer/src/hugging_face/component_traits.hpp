// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <simdjson.h>

#include "hugging_face/json_node.hpp"
#include "split/splitters.hpp"

/// Properties of a normalizer and a pre-tokenizer that a tokenizer needs before it builds them.
namespace millrace::tokenizer::detail {

/// Returns the pattern that cuts raw text into units which the normalizer and the pre-tokenizer of
/// a tokenizer.json process independently (bert_group explains why). A unit_engine may then use
/// these components. The pattern exists for BERT's components and for components that do not look
/// beyond the next white space. For other components, returns std::nullopt.
///
/// @param root  root of a file whose components have been read and so are valid
std::optional<pattern> raw_units_of(const json_node& root);

/// The result of a Metaspace whose prepend_scheme is "first" depends on whether a piece is at the
/// beginning of the text. Hugging Face decides that by the piece's offset in the original text,
/// which a normalizer may change to something other than 0. Both functions return false if there is
/// no such Metaspace.

/// True if the first piece may not have offset 0, because the normalizer removes characters or
/// replaces several at once. False if the replacement already begins like the prepended text,
/// because the offset does not matter then.
bool may_move_the_start(simdjson::dom::element normalizer, simdjson::dom::element pre_tokenizer);

/// True if a second piece may also have offset 0: one character may become several, and an added
/// token may match the first of them.
bool may_split_the_start(simdjson::dom::element normalizer, simdjson::dom::element pre_tokenizer);

}  // namespace millrace::tokenizer::detail
