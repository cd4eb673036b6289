// SPDX-License-Identifier: Apache-2.0
#include "text_matcher.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/error.hpp>

namespace millrace::dataset::detail {

/// The least number of bytes by which two occurrences of a text can be apart.
MILLRACE_INLINE std::size_t period_of(std::string_view text) {
  // border[i] is the size of the longest border of the first i + 1 bytes, as in Knuth, Morris and
  // Pratt's search.
  std::vector<std::size_t> border(text.size(), 0);
  for (std::size_t i = 1; i < text.size(); ++i) {
    std::size_t size = border[i - 1];
    while (size > 0 && text[i] != text[size]) size = border[size - 1];
    border[i] = text[i] == text[size] ? size + 1 : 0;
  }
  return text.size() - border.back();
}

MILLRACE_INLINE text_matcher::text_matcher(const std::vector<std::string>& texts) {
  if (texts.size() == 1) {
    one_ = texts.front();
    period_ = period_of(one_);
    // Each call of memmem takes time for the whole query. So it would be slow in a text that
    // consists of dense occurrences.
    use_memmem_ = one_.size() <= 64 || period_ > one_.size() / 2;
  }
  if (!use_memmem_) build(texts);
}

MILLRACE_INLINE void text_matcher::build(const std::vector<std::string>& texts) {
  // A state is a range of sorted texts that share their first `depth` bytes. Ranges of one depth
  // follow each other, so the states come in the order of a breadth-first search.
  struct range {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    std::uint32_t parent = 0;
  };
  std::vector<std::uint32_t> order(texts.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, {},
                           [&](std::uint32_t q) -> std::string_view { return texts[q]; });
  sizes_.reserve(texts.size());
  std::size_t bytes = 1;
  for (const std::string& text : texts) {
    sizes_.push_back(text.size());
    bytes += text.size();
  }
  if (bytes >= none) throw config_error("all texts to search for together have more than 4 GiB");
  next_query_.assign(texts.size(), none);
  std::vector<range> level = {{0, static_cast<std::uint32_t>(order.size()), 0}};
  label_.push_back(0);
  fail_.push_back(0);
  first_child_.push_back(1);
  std::uint32_t first_of_level = 0;
  for (std::size_t depth = 0; !level.empty(); ++depth) {
    std::vector<range> below;
    for (std::size_t i = 0; i < level.size(); ++i) {
      const auto state = first_of_level + static_cast<std::uint32_t>(i);
      auto [at, end, parent] = level[i];
      // The fail link of a state is the child of a fail link of its parent.
      if (depth > 1) {
        std::uint32_t suffix = fail_[parent];
        std::uint32_t next = none;
        while (suffix != 0 && (next = child(suffix, label_[state])) == none) suffix = fail_[suffix];
        fail_[state] = suffix == 0 ? root_[label_[state]] : next;
      }
      query_.push_back(none);
      for (; at < end && texts[order[at]].size() == depth; ++at) {
        next_query_[order[at]] = query_[state];
        query_[state] = order[at];
      }
      hit_link_.push_back(state == 0              ? none
                          : has_hit(fail_[state]) ? fail_[state]
                                                  : hit_link_[fail_[state]]);
      while (at < end) {
        const char byte = texts[order[at]][depth];
        const std::uint32_t begin = at;
        while (at < end && texts[order[at]][depth] == byte) ++at;
        if (depth == 0)
          root_[static_cast<unsigned char>(byte)] = static_cast<std::uint32_t>(label_.size());
        label_.push_back(static_cast<unsigned char>(byte));
        fail_.push_back(0);
        below.push_back({begin, at, state});
      }
      first_child_.push_back(static_cast<std::uint32_t>(label_.size()));
    }
    first_of_level += static_cast<std::uint32_t>(level.size());
    level = std::move(below);
  }
}

}  // namespace millrace::dataset::detail
