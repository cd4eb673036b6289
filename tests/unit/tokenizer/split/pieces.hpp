// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "split/splitters.hpp"

namespace millrace::test {

using strings = std::vector<std::string>;

/// All ends of the pretokens of `text`, requested `batch` at a time.
inline std::vector<std::size_t> ends_of(const tokenizer::detail::word_splitter& splitter,
                                        std::string_view text, std::size_t batch = 256) {
  std::vector<std::size_t> some(batch);
  std::vector<std::size_t> all;
  std::size_t at = 0;
  while (const std::size_t count = splitter.next_ends(text, at, some)) {
    for (const std::size_t end : std::span(some).first(count)) {
      if (end <= at || end > text.size()) throw std::logic_error("an end that is none");
      at = end;
      all.push_back(end);
    }
  }
  if (at != text.size()) throw std::logic_error("the last end is not the text's");
  return all;
}

inline strings pieces(const tokenizer::detail::word_splitter& splitter, std::string_view text,
                      std::size_t batch = 256) {
  strings parts;
  std::size_t at = 0;
  for (const std::size_t end : ends_of(splitter, text, batch)) {
    parts.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return parts;
}

/// Expects that the pattern cuts each text into the given pieces.
inline void expect_pieces(tokenizer::detail::pattern pattern,
                          const std::vector<std::pair<std::string, strings>>& all) {
  const auto splitter = tokenizer::detail::make_splitter(pattern);
  for (const auto& [text, parts] : all) EXPECT_EQ(pieces(*splitter, text), parts) << text;
}

}  // namespace millrace::test
