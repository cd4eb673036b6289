// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "regex/pattern_tree.hpp"
#include "unicode/code_point_set.hpp"

namespace millrace::tokenizer::detail {

struct symbol_run;

/// Maps characters to the symbols of one regular expression. Characters that belong to exactly the
/// same sets of the expression share a symbol, which is one byte. Immutable; threads may share it.
///
/// A pattern typically distinguishes about ten kinds of characters. Both the pattern and the text
/// are translated to symbols, so both become plain bytes. The regex engine then needs no Unicode
/// support, and its Unicode version does not matter. A character class takes only a few bytes, no
/// matter how many characters it has, and every character is matched as fast as ASCII.
class alphabet {
 public:
  static constexpr std::size_t most_symbols = 256;
  using symbols = std::bitset<most_symbols>;

  /// @throws pattern_error  `sets` distinguish more than most_symbols kinds of characters
  explicit alphabet(std::span<const code_point_set> sets);

  /// The symbols of the characters in `sets[set]`, where `sets` is the constructor's argument.
  const symbols& symbols_of(std::size_t set) const noexcept { return members_[set]; }

  /// Writes one symbol per character of `text`.
  /// @param out  overwritten
  void translate(std::string_view text, std::string& out) const;

 private:
  static constexpr std::uint32_t page_size = 256;
  using page = std::array<char, page_size>;

  void make_pages(const std::vector<symbol_run>& runs);
  char symbol_of(std::uint32_t point) const noexcept;

  std::vector<std::uint16_t> page_numbers_;  // by code point / page_size
  std::vector<page> pages_;                  // the first one contains ASCII
  std::vector<symbols> members_;
};

/// Writes `tree` as a regular expression over symbols, in the syntax of PCRE2 (and Perl) without
/// any options. Uses explicit classes of bytes, non-capturing groups, and look-around for anchors.
///
/// @param letters  the alphabet that was built from the sets of `tree`
std::string symbol_pattern(const pattern_tree& tree, const alphabet& letters);

}  // namespace millrace::tokenizer::detail
