// SPDX-License-Identifier: Apache-2.0
#include "split/splitters.hpp"

#include <cassert>

#include "split/portable_splitter.hpp"

namespace millrace::tokenizer::detail {

std::unique_ptr<const word_splitter> make_splitter(pattern pattern, instruction_set set) {
  assert(can_run(set));
  return make_portable_splitter(pattern);
}

}  // namespace millrace::tokenizer::detail
