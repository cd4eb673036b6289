// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "record/record_parser.hpp"
#include "record/text_key.hpp"

namespace millrace::preprocess {

/// Of one sequence, the end of its document among them: the index has its length as an int32
/// (megatron-core, indexed_dataset.py).
inline constexpr std::int64_t most_sequence_tokens = std::numeric_limits<std::int32_t>::max();

/// A text made a sequence that is longer.
///
/// @param tokens  of the sequence, its end of document included where it has one
/// @param most    most_sequence_tokens; less only to test it
inline record_fault too_many_tokens(const text_key& key, std::int64_t tokens, std::int64_t most) {
  return {fault_kind::not_encodable, 0,
          "text of key \"" + key.name + "\" has " + std::to_string(tokens) +
              " tokens, more than the " + std::to_string(most) + " that a sequence can hold"};
}

}  // namespace millrace::preprocess
