// SPDX-License-Identifier: Apache-2.0
#include "gpt2/gpt2_files.hpp"

#include <simdjson.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <unordered_set>

#include <millrace/error.hpp>
#include <millrace/formats/detail/in_quotes.hpp>

#include "json/json_place.hpp"
#include "text/byte_alphabet.hpp"

namespace millrace::tokenizer::detail {
namespace {

merge_rule rule_of(std::string_view line, std::size_t number, std::size_t offset,
                   const token_ids& ids) {
  const auto fail = [&](const std::string& problem) {
    throw format_error(offset, "line " + std::to_string(number) + ": " + problem);
  };
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos) {
    fail("expected two tokens with one space between, found " + formats::in_quotes(line));
  }
  const auto id_of = [&](std::string_view token, const char* role) {
    const auto found = ids.find(token);
    if (found == ids.end()) {
      fail(std::string(role) + " " + formats::in_quotes(token) + " is not in the vocabulary");
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

namespace {

constexpr std::int64_t max_id = (std::int64_t{1} << 22) - 1;  // table sizes grow with ids

bool written_as_special(std::string_view key) {
  return key.size() > 2 &&
         ((key.front() == '<' && key.back() == '>') || (key.front() == '[' && key.back() == ']'));
}

// Describes what is wrong with an entry. Returns an empty string if the entry is valid.
std::string entry_fault(std::string_view key, const simdjson::dom::element& value) {
  if (key.empty()) return "a token is empty";
  if (!bytes_of(key) && !written_as_special(key)) {
    return "token " + formats::in_quotes(key) +
           " has a character outside the byte alphabet and is not written as a special token";
  }
  if (!value.is_int64() && !value.is_uint64()) {
    return "token " + formats::in_quotes(key) + " has an id that is not an integer";
  }
  if (!value.is_int64() || value.get_int64().value_unsafe() < 0 ||
      value.get_int64().value_unsafe() > max_id) {
    return "token " + formats::in_quotes(key) + " has an id outside 0.." + std::to_string(max_id);
  }
  return {};
}

}  // namespace

std::vector<vocab_entry> parse_vocab_json(std::string_view json) {
  if (json.empty()) throw format_error(0, "the file is empty, expected a JSON object of token ids");
  simdjson::dom::parser parser;
  simdjson::dom::element document;
  if (const auto error = parser.parse(simdjson::padded_string(json)).get(document)) {
    throw format_error(json_end(json), std::string("not JSON: ") + simdjson::error_message(error));
  }
  simdjson::dom::object object;
  if (document.get(object) != simdjson::SUCCESS) {
    throw format_error(json_place(json, {}), "expected a JSON object of token ids");
  }

  std::vector<vocab_entry> entries;
  std::unordered_set<std::string_view> keys;
  const auto fail = [&](std::size_t entry, const std::string& problem) {
    throw format_error(json_place(json, std::span(&entry, 1)), problem);
  };
  for (const auto [key, value] : object) {
    if (auto fault = entry_fault(key, value); !fault.empty()) fail(entries.size(), fault);
    if (!keys.insert(key).second)
      fail(entries.size(), "token " + formats::in_quotes(key) + " occurs twice");
    const std::int64_t id = value.get_int64().value_unsafe();
    entries.push_back({std::string(key), static_cast<std::int32_t>(id)});
  }

  std::vector<std::size_t> order(entries.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return entries[a].id != entries[b].id ? entries[a].id < entries[b].id : a < b;
  });
  std::vector<vocab_entry> sorted;
  sorted.reserve(entries.size());
  for (const std::size_t i : order) {
    if (!sorted.empty() && sorted.back().id == entries[i].id) {
      fail(i, "token " + formats::in_quotes(entries[i].spelled) + " has the id of " +
                  formats::in_quotes(sorted.back().spelled) + ", " + std::to_string(entries[i].id));
    }
    sorted.push_back(std::move(entries[i]));
  }
  return sorted;
}

}  // namespace millrace::tokenizer::detail
