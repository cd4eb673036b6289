// SPDX-License-Identifier: Apache-2.0
// The same headers a second time, and the library that is compiled, not only included.
#include <cstdint>

#include "every_header.hpp"

std::int64_t vocabulary_seen_by_the_second_unit() {
  return millrace::tokenizer::make_tokenizer({})->vocab_size();
}
