// SPDX-License-Identifier: Apache-2.0
#include "split/splitters.hpp"

#include <cassert>

#include "split/portable_splitter.hpp"
#include "split/windowed_splitters.hpp"

namespace millrace::tokenizer::detail {

std::unique_ptr<const word_splitter> make_splitter(pattern pattern, instruction_set set) {
  assert(can_run(set));
#ifdef __x86_64__
  if (set == instruction_set::avx512) return make_avx512_splitter(pattern);
  if (set == instruction_set::avx2) return make_avx2_splitter(pattern);
#endif
  return make_portable_splitter(pattern);
}

}  // namespace millrace::tokenizer::detail
