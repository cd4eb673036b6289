// SPDX-License-Identifier: Apache-2.0
#include "gpt2/merges_txt.hpp"

#include <cstddef>
#include <string>

#include <millrace/error.hpp>

#include "messages/in_quotes.hpp"

namespace millrace::tokenizer::detail {
namespace {

merge_rule rule_of(std::string_view line, std::size_t number, std::size_t offset,
                   const token_ids& ids) {
  const auto fail = [&](const std::string& problem) {
    throw format_error(offset, "line " + std::to_string(number) + ": " + problem);
  };
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos) {
    fail("expected two tokens with one space between, found " + in_quotes(line));
  }
  const auto id_of = [&](std::string_view token, const char* role) {
    const auto found = ids.find(token);
    if (found == ids.end()) {
      fail(std::string(role) + " " + in_quotes(token) + " is not in the vocabulary");
    }
    return found->second;
  };
  const std::string_view left = line.substr(0, space);
  const std::string_view right = line.substr(space + 1);
  return {id_of(left, "left part"), id_of(right, "right part"),
          id_of(std::string(left).append(right), "merged token")};
}

}  // namespace

std::vector<merge_rule> parse_merges_txt(std::string_view text, const token_ids& ids) {
  if (text.empty()) throw format_error(0, "the file is empty, expected one merge per line");
  std::vector<merge_rule> rules;
  std::size_t number = 1;
  for (std::size_t begin = 0; begin < text.size(); ++number) {
    const std::size_t newline = text.find('\n', begin);
    const bool ended = newline != std::string_view::npos;
    const std::size_t end = ended ? newline : text.size();
    std::string_view line = text.substr(begin, end - begin);
    if (ended && line.ends_with('\r')) line.remove_suffix(1);
    if (!line.starts_with("#version")) rules.push_back(rule_of(line, number, begin, ids));
    begin = end + 1;
  }
  return rules;
}

}  // namespace millrace::tokenizer::detail
