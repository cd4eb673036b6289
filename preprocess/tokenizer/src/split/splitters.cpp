// SPDX-License-Identifier: Apache-2.0
#include "split/splitters.hpp"

#include <cassert>

#include "split/patterns.hpp"

namespace millrace::tokenizer::detail {
namespace {

// A splitter that calls the walkers (walk.hpp) directly. Works on any machine.
template <class Matcher>
class walking_splitter final : public word_splitter {
 public:
  std::size_t next_ends(std::string_view section, std::size_t begin,
                        std::span<std::size_t> ends) const noexcept override {
    std::size_t count = 0;
    while (count < ends.size() && begin < section.size()) {
      begin = Matcher::end(section, begin);
      ends[count++] = begin;
    }
    return count;
  }
};

}  // namespace

std::unique_ptr<const word_splitter> make_splitter(pattern pattern, instruction_set set) {
  assert(can_run(set));
#if defined(__AARCH64EL__)
  if (set == instruction_set::neon) return make_neon_splitter(pattern);
#elif defined(__x86_64__)
  if (set == instruction_set::avx512) return make_avx512_splitter(pattern);
  if (set == instruction_set::avx2) return make_avx2_splitter(pattern);
#endif
  return make_for<walking_splitter>(pattern);
}

}  // namespace millrace::tokenizer::detail
