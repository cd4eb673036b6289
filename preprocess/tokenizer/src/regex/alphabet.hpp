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

#include "unicode/code_point_set.hpp"

namespace millrace::tokenizer::detail {

struct symbol_run;

/// The characters as one regular expression sees them: those that are in the same of its sets are
/// one symbol, a byte. Immutable, shared by threads.
///
/// Patterns tell some ten kinds of characters apart. Written in symbols, pattern and text are plain
/// bytes: the engine that matches them needs no Unicode, so that its version of it cannot matter,
/// a class is a few bytes however many characters it has, and each character is as fast as ASCII.
class alphabet {
 public:
  static constexpr std::size_t most_symbols = 256;
  using symbols = std::bitset<most_symbols>;

  /// @throws pattern_error  they tell more than most_symbols kinds of characters apart
  explicit alphabet(std::span<const code_point_set> sets);

  /// The symbols of the characters in sets[set] of the constructor.
  const symbols& symbols_of(std::size_t set) const noexcept { return members_[set]; }

  /// One symbol for each character of `text`.
  /// @param out  overwritten
  void translate(std::string_view text, std::string& out) const;

 private:
  static constexpr std::uint32_t page_size = 256;
  using page = std::array<char, page_size>;

  void make_pages(const std::vector<symbol_run>& runs);
  char symbol_of(std::uint32_t point) const noexcept;

  std::vector<std::uint16_t> page_numbers_;  // by code point / page_size
  std::vector<page> pages_;                  // the first is that of ASCII
  std::vector<symbols> members_;
};

}  // namespace millrace::tokenizer::detail
