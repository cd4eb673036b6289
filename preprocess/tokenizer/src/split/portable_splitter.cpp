// SPDX-License-Identifier: Apache-2.0
#include "split/portable_splitter.hpp"

#include "split/with_family.hpp"

namespace millrace::tokenizer::detail {
namespace {

template <class Family>
class walking_splitter final : public word_splitter {
 public:
  std::size_t next_ends(std::string_view section, std::size_t begin,
                        std::span<std::size_t> ends) const noexcept override {
    std::size_t count = 0;
    while (count < ends.size() && begin < section.size()) {
      begin = Family::end(section, begin);
      ends[count++] = begin;
    }
    return count;
  }
};

}  // namespace

std::unique_ptr<const word_splitter> make_portable_splitter(pattern pattern) {
  return make_for<walking_splitter>(pattern);
}

}  // namespace millrace::tokenizer::detail
