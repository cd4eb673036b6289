// SPDX-License-Identifier: Apache-2.0
#include "regex/regex.hpp"

#include <millrace/formats/detail/in_quotes.hpp>

#include "core/interfaces.hpp"
#include "regex/alphabet.hpp"
#include "regex/pattern_tree.hpp"
#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {

regex::regex(std::string_view pattern, pcre2_pattern::engine how)
    : regex(pattern, parse_pattern(pattern), how) {}

regex::regex(std::string_view pattern, const pattern_tree& tree, pcre2_pattern::engine how)
    : text_(pattern), letters_(tree.sets), symbols_(symbol_pattern(tree, letters_), how) {}

regex_search::regex_search(const regex& pattern, std::string_view text, regex_memory& memory)
    : pattern_(pattern), text_(text), memory_(memory) {
  pattern.letters_.translate(text, memory.symbols);
}

// Returns the next match. If a match is empty and touches the previous match, skips it and
// continues after the next whole character.
std::optional<regex_search::match> regex_search::next() {
  using outcome = pcre2_pattern::result::kind;
  const std::string_view symbols = memory_.symbols;
  std::size_t from = last_end_.value_or(0);
  while (from <= symbols.size()) {
    const auto found = pattern_.symbols_.find(symbols, from, memory_.engine);
    if (found.what == outcome::nothing) return std::nullopt;
    if (found.what == outcome::problem) {
      throw unencodable_text("the regular expression " + formats::in_quotes(pattern_.text_) +
                             " gives up at byte " + std::to_string(bytes_before(from)) +
                             " of a piece of " + std::to_string(text_.size()) + ": " +
                             std::string(found.problem));
    }
    if (found.begin != found.end || found.end != last_end_) {
      last_end_ = found.end;
      const std::size_t begin = bytes_before(found.begin);
      return match{begin, bytes_before(found.end)};
    }
    from = found.end + 1;
  }
  return std::nullopt;
}

// Converts an offset in symbols to an offset in bytes. Starts counting at the place of the previous
// call, because matches come in order.
std::size_t regex_search::bytes_before(std::size_t symbol) noexcept {
  if (memory_.symbols.size() == text_.size()) return symbol;
  while (place_ < symbol) {
    place_bytes_ += code_point_at(text_, place_bytes_).size_bytes;
    ++place_;
  }
  return place_bytes_;
}

}  // namespace millrace::tokenizer::detail
