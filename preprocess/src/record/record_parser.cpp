// SPDX-License-Identifier: Apache-2.0
#include "record/record_parser.hpp"

#include <simdjson.h>

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include "record/exact_json.hpp"

namespace millrace::preprocess {
namespace {

// Longer lines are parsed by exact_json, because simdjson allocates up to 14 bytes of memory per
// byte of a line and never frees this memory.
constexpr std::size_t longest_for_simdjson = std::size_t{1} << 20;
constexpr std::size_t least_capacity = std::size_t{1} << 14;

// Largest nesting for simdjson, which does not count an empty list or object as a level. A line
// that simdjson accepts therefore has at most `max_nesting` levels. Deeper lines are parsed by
// exact_json.
constexpr std::size_t simdjson_nesting = max_nesting - 1;

static_assert(record_parser::padding_bytes >= simdjson::SIMDJSON_PADDING);

}  // namespace

struct record_parser::state {
  struct field {
    bool found = false;
    simdjson::dom::element value;
    std::vector<std::string_view> texts;
  };

  explicit state(std::span<const text_key> keys) : exact(keys) { fields.resize(keys.size()); }

  bool parse_with_simdjson(std::string_view line);
  void make_room(std::size_t line_bytes);
  bool find_fields(const simdjson::dom::object& object);
  static bool follow(const text_key& key, field& to);
  static bool take_texts(field& from);

  exact_json exact;
  simdjson::dom::parser parser;
  simdjson::dom::document document;  // the parser's own document would grow with every line
  std::size_t capacity_bytes = 0;
  std::vector<field> fields;
  bool exactly = false;  // exact_json parsed the last line
};

void record_parser::state::make_room(std::size_t line_bytes) {
  if (line_bytes <= capacity_bytes) return;
  const std::size_t wanted = std::bit_ceil(std::max(line_bytes, least_capacity));
  if (parser.allocate(wanted, simdjson_nesting) != simdjson::SUCCESS ||
      document.allocate(wanted) != simdjson::SUCCESS) {
    throw std::bad_alloc();
  }
  capacity_bytes = wanted;
}

// Finds the values of the wanted keys. If a key occurs several times, takes its last value, as
// Python does.
bool record_parser::state::find_fields(const simdjson::dom::object& object) {
  const std::span<const text_key> keys = exact.keys();
  for (field& each : fields) each.found = false;
  for (const simdjson::dom::key_value_pair member : object) {
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (member.key != keys[i].path.front()) continue;
      fields[i].found = true;
      fields[i].value = member.value;
    }
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (!follow(keys[i], fields[i])) return false;
  }
  return true;
}

// Replaces the value of the first key in a path by the value of the last key.
bool record_parser::state::follow(const text_key& key, field& to) {
  for (std::size_t level = 1; to.found && level < key.path.size(); ++level) {
    simdjson::dom::object object;
    if (to.value.get(object) != simdjson::SUCCESS) return false;
    to.found = false;
    for (const simdjson::dom::key_value_pair member : object) {
      if (member.key != key.path[level]) continue;
      to.found = true;
      to.value = member.value;
    }
  }
  return to.found;
}

bool record_parser::state::take_texts(field& from) {
  from.texts.clear();
  std::string_view text;
  if (from.value.get(text) == simdjson::SUCCESS) {
    from.texts.push_back(text);
    return true;
  }
  simdjson::dom::array list;
  if (from.value.get(list) != simdjson::SUCCESS) return false;
  for (const simdjson::dom::element element : list) {
    if (element.get(text) != simdjson::SUCCESS) return false;
    from.texts.push_back(text);
  }
  return true;
}

// Returns false for every line that exact_json must parse. These are lines that simdjson rejects,
// because Python may accept them. They also include all bad records, so that error messages never
// depend on simdjson.
bool record_parser::state::parse_with_simdjson(std::string_view line) {
  // Check here that the first byte after spaces is `{`, because later versions of simdjson would
  // skip a byte order mark. Spaces are common: in a pretty-printed array, every element is a line
  // that begins with spaces.
  const std::size_t begin = line.find_first_not_of(" \t");
  if (begin == line.npos || line[begin] != '{' || line.size() > longest_for_simdjson) return false;
  make_room(line.size());
  simdjson::dom::object object;
  if (parser.parse_into_document(document, line.data(), line.size(), false).get(object) !=
      simdjson::SUCCESS) {
    return false;
  }
  return find_fields(object) && std::ranges::all_of(fields, take_texts);
}

record_parser::record_parser(std::span<const text_key> keys)
    : state_(std::make_unique<state>(keys)) {}
record_parser::record_parser(std::vector<std::string> keys)
    : state_(std::make_unique<state>(plain_keys(std::move(keys)))) {}
record_parser::record_parser(record_parser&&) noexcept = default;
record_parser::~record_parser() = default;

std::optional<record_fault> record_parser::parse(std::string_view line) {
  state_->exactly = !state_->parse_with_simdjson(line);
  if (!state_->exactly) return std::nullopt;
  return state_->exact.parse(line);
}

std::span<const std::string_view> record_parser::texts(std::size_t key) const {
  if (state_->exactly) return state_->exact.texts(key);
  return state_->fields[key].texts;
}

// simdjson rejects lines with lone surrogates, so a line that simdjson parsed has none.
std::int64_t record_parser::lone_surrogates() const noexcept {
  return state_->exactly ? state_->exact.lone_surrogates() : 0;
}

}  // namespace millrace::preprocess
