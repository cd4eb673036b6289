// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <simdjson.h>

#include "hugging_face/json_node.hpp"
#include "split/splitters.hpp"

/// Properties of a normalizer and a pre-tokenizer that a tokenizer needs to know before it builds
/// them.
namespace millrace::tokenizer::detail {

/// Returns the pattern that cuts raw text into units which the normalizer and the pre-tokenizer of
/// a tokenizer.json process independently (bert_group explains why). A unit_engine can then use
/// these components. Such a pattern exists for BERT's components, and for components that do not
/// look beyond the next white space. For other components, returns std::nullopt.
///
/// @param root  root of a file whose components have been read and so are valid
std::optional<pattern> raw_units_of(const json_node& root);

/// A Metaspace whose prepend_scheme is "first" treats a piece differently if it is at the beginning
/// of the text. Hugging Face tests this by comparing the offset of the piece in the original text
/// with 0. A normalizer can change which pieces have offset 0. Both functions below return false if
/// there is no such Metaspace.

/// True if the first piece might have an offset other than 0, because the normalizer removes
/// characters or replaces several characters at once. But if the replacement already begins with
/// the text that the Metaspace prepends, the offset does not matter, and the result is false.
bool may_move_the_start(simdjson::dom::element normalizer, simdjson::dom::element pre_tokenizer);

/// True if the second piece might also have offset 0. This can happen if the normalizer replaces
/// one character with several, and an added token matches the first of these.
bool may_split_the_start(simdjson::dom::element normalizer, simdjson::dom::element pre_tokenizer);

}  // namespace millrace::tokenizer::detail
