// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace millrace::preprocess {

/// What `--drop-duplicates` compares: a document is dropped if it equals an earlier one in this.
enum class duplicates_by : std::uint8_t {
  ids,   ///< the token ids
  text,  ///< the texts, as given to the tokenizer
};

}  // namespace millrace::preprocess
