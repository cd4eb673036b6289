// SPDX-License-Identifier: Apache-2.0
#include "gpt2/vocab_json.hpp"

#include <simdjson.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <span>
#include <unordered_set>

#include <millrace/error.hpp>

#include "json/json_place.hpp"
#include "messages/in_quotes.hpp"
#include "text/byte_alphabet.hpp"

namespace millrace::tokenizer::detail {
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
    return "token " + in_quotes(key) +
           " has a character outside the byte alphabet and is not written as a special token";
  }
  if (!value.is_int64() && !value.is_uint64()) {
    return "token " + in_quotes(key) + " has an id that is not an integer";
  }
  if (!value.is_int64() || value.get_int64().value_unsafe() < 0 ||
      value.get_int64().value_unsafe() > max_id) {
    return "token " + in_quotes(key) + " has an id outside 0.." + std::to_string(max_id);
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
    if (!keys.insert(key).second) fail(entries.size(), "token " + in_quotes(key) + " occurs twice");
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
      fail(i, "token " + in_quotes(entries[i].spelled) + " has the id of " +
                  in_quotes(sorted.back().spelled) + ", " + std::to_string(entries[i].id));
    }
    sorted.push_back(std::move(entries[i]));
  }
  return sorted;
}

}  // namespace millrace::tokenizer::detail
