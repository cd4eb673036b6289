// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "hugging_face/json_value.hpp"
#include "split/splitters.hpp"

namespace millrace::tokenizer::detail {

/// The pattern whose units of raw text the normalizer and the pre-tokenizer of a tokenizer.json
/// treat each by itself (bert_group), so that a unit_engine may have them. Nothing if they are not
/// BERT's: BertPreTokenizer behind BertNormalizer or behind none.
///
/// @param root  of a file whose components have been read, so that they are what they should be
std::optional<pattern> bert_units_of(const json_value& root);

}  // namespace millrace::tokenizer::detail
