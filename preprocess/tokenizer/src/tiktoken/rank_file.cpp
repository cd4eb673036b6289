// SPDX-License-Identifier: Apache-2.0
#include "tiktoken/rank_file.hpp"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <system_error>

#include <millrace/error.hpp>

#include "messages/in_quotes.hpp"
#include "text/base64.hpp"

namespace millrace::tokenizer::detail {
namespace {

// Adds the token of one line. Returns a description of what is wrong with the line, or an empty
// string.
std::string add_line(std::string_view line, std::string& bytes, ranked_tokens& tokens) {
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos) {
    return "expected a token in base64, a space and its rank, found " + in_quotes(line);
  }
  const std::string_view token = line.substr(0, space);
  const std::string_view digits = line.substr(space + 1);
  if (!decode_base64(token, bytes)) return "expected base64, found " + in_quotes(token);
  std::int64_t rank = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
  if (end != digits.data() + digits.size() || error == std::errc::invalid_argument) {
    return "expected a rank, found " + in_quotes(digits);
  }
  if (error != std::errc() || rank < 0 || rank > ranked_tokens::max_id) {
    return "rank " + in_quotes(digits) + " is outside 0.." + std::to_string(ranked_tokens::max_id);
  }
  if (tokens.tokens.has(rank)) {
    return "rank " + std::to_string(rank) + " occurs twice, for " +
           in_quotes(tokens.tokens.bytes(rank)) + " and " + in_quotes(bytes);
  }
  return tokens.add(static_cast<std::int32_t>(rank), bytes);
}

}  // namespace

void parse_rank_file(std::string_view text, ranked_tokens& tokens) {
  std::string bytes;
  tokens.tokens.reserve(text.size());
  std::size_t number = 1;
  for (std::size_t begin = 0; begin < text.size(); ++number) {
    const std::size_t newline = text.find('\n', begin);
    const bool ended = newline != std::string_view::npos;
    const std::size_t end = ended ? newline : text.size();
    std::string_view line = text.substr(begin, end - begin);
    if (ended && line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) {
      if (const std::string fault = add_line(line, bytes, tokens); !fault.empty()) {
        throw format_error(begin, "line " + std::to_string(number) + ": " + fault);
      }
    }
    begin = end + 1;
  }
  if (tokens.tokens.count() == 0) {
    throw format_error(0, "the file has no line, expected tokens in base64 with their ranks");
  }
}

}  // namespace millrace::tokenizer::detail
