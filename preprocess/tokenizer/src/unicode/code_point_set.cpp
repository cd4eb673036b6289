// SPDX-License-Identifier: Apache-2.0
#include "unicode/code_point_set.hpp"

#include <algorithm>
#include <bit>

namespace millrace::tokenizer::detail {

bool code_point_set::add_category(std::string_view name) {
  bool known = false;
  for (std::size_t i = 0; i < category_runs_size; ++i) {
    const std::uint32_t category = category_runs[i] & 0xFF;
    if (category >= std::size(category_names)) continue;
    const std::string_view found = category_names[category];
    if (name != found && (name.size() != 1 || found[0] != name[0])) continue;
    known = true;
    const std::uint32_t end = i + 1 < category_runs_size ? category_runs[i + 1] >> 8 : limit;
    add(category_runs[i] >> 8, end - 1);
  }
  return known;
}

void code_point_set::add(inversion_list bounds) {
  for (std::size_t i = 0; i < bounds.size(); i += 2) {
    add(bounds[i], (i + 1 < bounds.size() ? bounds[i + 1] : limit) - 1);
  }
}

void code_point_set::add(std::uint32_t first, std::uint32_t last) noexcept {
  constexpr std::uint64_t ones = ~std::uint64_t{0};
  const std::uint64_t from = ones << (first % 64);
  const std::uint64_t to = ones >> (63 - last % 64);
  if (first / 64 == last / 64) {
    words_[first / 64] |= from & to;
    return;
  }
  words_[first / 64] |= from;
  for (std::uint32_t word = first / 64 + 1; word < last / 64; ++word) words_[word] = ones;
  words_[last / 64] |= to;
}

void code_point_set::add(const code_point_set& other) noexcept {
  for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
}

void code_point_set::intersect(const code_point_set& other) noexcept {
  for (std::size_t i = 0; i < words_.size(); ++i) words_[i] &= other.words_[i];
}

void code_point_set::invert() noexcept {
  for (std::uint64_t& word : words_) word = ~word;
}

bool code_point_set::meets(std::uint32_t first, std::uint32_t last) const noexcept {
  for (std::uint32_t point = first; point <= last; ++point) {
    if (contains(point)) return true;
  }
  return false;
}

std::vector<std::uint32_t> code_point_set::bounds() const {
  std::vector<std::uint32_t> found;
  std::uint64_t last = 0;  // 1 if the code point before this word is a member
  for (std::size_t i = 0; i < words_.size(); ++i) {
    std::uint64_t changes = words_[i] ^ (words_[i] << 1 | last);
    last = words_[i] >> 63;
    for (; changes != 0; changes &= changes - 1) {
      found.push_back(static_cast<std::uint32_t>(i * 64) +
                      static_cast<std::uint32_t>(std::countr_zero(changes)));
    }
  }
  return found;
}

}  // namespace millrace::tokenizer::detail
