// SPDX-License-Identifier: Apache-2.0
// Includes the same headers in a second source, and calls a function that is compiled into the
// library.
#include <cstdint>

#include "every_header.hpp"

std::int64_t vocabulary_seen_by_the_second_unit() {
  return millrace::tokenizer::make_tokenizer({})->vocab_size();
}
