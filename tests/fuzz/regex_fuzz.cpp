// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <vector>

#include <simdjson.h>

#include "core/interfaces.hpp"
#include "regex/regex.hpp"

namespace {

namespace detail = millrace::tokenizer::detail;
using engine = detail::pcre2_pattern::engine;

std::optional<std::vector<std::size_t>> places(std::string_view pattern, std::string_view text,
                                               engine how) try {
  const detail::regex compiled(pattern, how);
  detail::regex_memory memory;
  detail::regex_search search(compiled, text, memory);
  std::vector<std::size_t> found;
  while (const auto match = search.next()) {
    found.push_back(match->begin);
    found.push_back(match->end);
  }
  if (!std::ranges::is_sorted(found) || (!found.empty() && found.back() > text.size())) {
    std::abort();
  }
  return found;
} catch (const millrace::error&) {
  return std::nullopt;
}

}  // namespace

/// The input is a regular expression, a newline, and a text. Each expression is refused with a
/// library error, or finds the same matches in both engines: machine code and interpreter.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t longest_text = 32;  // a bad pattern takes seconds on longer texts
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t newline = std::min(input.find('\n'), size);
  const std::string_view pattern = input.substr(0, newline);
  const std::string_view text =
      newline == size ? std::string_view() : input.substr(newline + 1, longest_text);
  if (!simdjson::validate_utf8(pattern)) return 0;
  const auto fast = places(pattern, text, engine::fastest);
  const auto interpreted = places(pattern, text, engine::interpreter);
  if (fast && interpreted && *fast != *interpreted) std::abort();
  return 0;
}
