// SPDX-License-Identifier: Apache-2.0
#include "split/splitters.hpp"

#include "split/r50k_split.hpp"

namespace millrace::tokenizer::detail {
namespace {

class r50k_splitter final : public word_splitter {
 public:
  std::size_t next_ends(std::string_view section, std::size_t begin,
                        std::span<std::size_t> ends) const noexcept override {
    std::size_t count = 0;
    while (count < ends.size() && begin < section.size()) {
      begin = r50k_end(section, begin);
      ends[count++] = begin;
    }
    return count;
  }
};

}  // namespace

std::unique_ptr<const word_splitter> make_r50k_splitter() {
  return std::make_unique<r50k_splitter>();
}

}  // namespace millrace::tokenizer::detail
