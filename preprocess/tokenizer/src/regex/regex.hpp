// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "regex/alphabet.hpp"
#include "regex/pattern_tree.hpp"
#include "regex/pcre2_pattern.hpp"

namespace millrace::tokenizer::detail {

/// A regular expression, parsed as Oniguruma does (pattern_tree.hpp) and matched by PCRE2.
/// Immutable; threads may share it.
class regex {
 public:
  /// @param pattern  valid UTF-8
  /// @throws pattern_error
  explicit regex(std::string_view pattern,
                 pcre2_pattern::engine how = pcre2_pattern::engine::fastest);

 private:
  friend class regex_search;
  regex(std::string_view pattern, const pattern_tree& tree, pcre2_pattern::engine how);

  std::string text_;
  alphabet letters_;
  pcre2_pattern symbols_;
};

/// Iterates over the matches of a regular expression in a text. Use from one thread only.
class regex_search {
 public:
  struct match {
    std::size_t begin;
    std::size_t end;
  };

  /// @param pattern  must outlive this search
  /// @param text  valid UTF-8; must outlive this search
  /// @param memory  must not be used by another search during this search
  regex_search(const regex& pattern, std::string_view text, regex_memory& memory);

  /// Returns the next match. Skips an empty match that touches the previous match.
  /// @throws unencodable_text  the regex engine gives up
  std::optional<match> next();

 private:
  std::size_t bytes_before(std::size_t symbol) noexcept;

  const regex& pattern_;
  std::string_view text_;
  regex_memory& memory_;
  std::optional<std::size_t> last_end_;  // in symbols, like place_
  std::size_t place_ = 0;
  std::size_t place_bytes_ = 0;  // place_, as an offset in bytes
};

}  // namespace millrace::tokenizer::detail
