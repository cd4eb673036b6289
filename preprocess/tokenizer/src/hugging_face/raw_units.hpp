// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "hugging_face/json_value.hpp"
#include "split/splitters.hpp"

namespace millrace::tokenizer::detail {

/// The pattern whose units of raw text the normalizer and the pre-tokenizer of a tokenizer.json
/// treat each by itself (bert_group says why), so that a unit_engine may have them: BERT's, and
/// those that look no farther than to the next white space. Nothing if they are others.
///
/// @param root  of a file whose components have been read, so that they are what they should be
std::optional<pattern> raw_units_of(const json_value& root);

}  // namespace millrace::tokenizer::detail
