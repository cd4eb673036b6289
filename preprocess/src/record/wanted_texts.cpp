// SPDX-License-Identifier: Apache-2.0
#include "record/wanted_texts.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <string>
#include <utility>

#include <millrace/command/nearest_name.hpp>
#include <millrace/command/text.hpp>
#include <millrace/formats/detail/free_memory.hpp>

namespace millrace::preprocess {
namespace {

// Memory for up to this many texts is kept for the next line.
constexpr std::size_t kept_texts = std::size_t{64} << 10;

// A message shows at most this many keys of a record.
constexpr std::size_t most_names = 8;

// Returns the key that the user may have meant by `wanted`, or an empty string if there is none.
std::string_view likely_key(std::string_view wanted, std::span<const std::string> names) {
  constexpr std::array<std::string_view, 4> usual = {"text", "content", "raw_content", "body"};
  if (const std::string_view nearest = command::nearest_name(wanted, names); !nearest.empty()) {
    return nearest;
  }
  for (const std::string_view name : usual) {
    if (std::ranges::find(names, name) != names.end()) return name;
  }
  return {};
}

bool needs_no_quotes(std::string_view word) {
  return word.find_first_not_of(
             "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.") == word.npos &&
         !word.empty();
}

void reset(wanted_texts::slot& each) {
  each.found = false;
  each.wrong = false;
  each.list = false;
  each.strings = 0;
  each.broken_level = 0;
  each.lone_surrogates = 0;
  forget(each.texts);
}

}  // namespace

void forget(std::vector<std::string_view>& texts) {
  if (texts.capacity() > kept_texts) formats::free_memory(texts);
  texts.clear();
}

char* text_room::of(std::size_t bytes) {
  constexpr std::size_t kept = std::size_t{4} << 20;
  if (bytes > bytes_ || (bytes_ > kept && bytes <= kept)) {
    room_.reset();
    bytes_ = bytes > kept ? bytes + bytes / 8 : std::bit_ceil(bytes);
    room_ = std::make_unique_for_overwrite<char[]>(bytes_);
  }
  return room_.get();
}

const char* name_of_value(char first) {
  switch (first) {
    case '{':
      return "an object";
    case '[':
      return "a list";
    case '"':
      return "a string";
    case 't':
    case 'f':
      return "a boolean";
    case 'n':
      return "null";
    default:
      return "a number";
  }
}

wanted_texts::wanted_texts(std::vector<text_key> keys)
    : keys_(std::move(keys)), slots_(keys_.size()) {
  assert(!keys_.empty());
  for (const text_key& key : keys_) longest_path_ = std::max(longest_path_, key.path.size());
}

void wanted_texts::start() {
  for (slot& each : slots_) {
    reset(each);
    each.open_depth = 1;
    each.entered = false;
  }
  any_entered_ = false;
  names_.clear();
  more_names_ = false;
}

bool wanted_texts::looks_at(std::size_t depth) const noexcept {
  if (depth == 1) return true;
  return depth <= longest_path_ &&
         std::ranges::any_of(slots_, [&](const slot& each) { return each.open_depth == depth; });
}

wanted_texts::slot* wanted_texts::match(std::size_t depth, std::string_view key) {
  if (depth == 1) note_name(key);
  slot* last_key = nullptr;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const std::vector<std::string>& path = keys_[i].path;
    slot& each = slots_[i];
    if (each.open_depth != depth || depth > path.size() || key != path[depth - 1]) continue;
    reset(each);
    if (depth == path.size()) {
      last_key = &each;
    } else {
      each.entered = any_entered_ = true;
    }
  }
  return last_key;
}

void wanted_texts::pass(std::size_t depth) noexcept {
  if (depth == 1) more_names_ = true;
}

void wanted_texts::enter(std::size_t depth, char first, std::size_t offset_bytes) {
  if (!any_entered_) return;
  any_entered_ = false;
  for (slot& each : slots_) {
    if (!each.entered) continue;
    each.entered = false;
    if (first == '{') {
      each.open_depth = depth + 1;
    } else {
      each.broken_level = depth;
      each.wrong_byte = first;
      each.offset_bytes = offset_bytes;
    }
  }
}

void wanted_texts::leave(std::size_t depth) noexcept {
  if (depth == 1 || depth > longest_path_) return;
  for (slot& each : slots_) {
    if (each.open_depth == depth) --each.open_depth;
  }
}

std::int64_t wanted_texts::lone_surrogates() const noexcept {
  std::int64_t sum = 0;
  for (const slot& each : slots_) sum += each.lone_surrogates;
  return sum;
}

void wanted_texts::note_name(std::string_view name) {
  if (std::ranges::find(names_, name) != names_.end()) return;
  if (names_.size() == most_names || name.size() > longest_name) {
    more_names_ = true;
  } else {
    names_.emplace_back(name);
  }
}

record_fault wanted_texts::missing(std::size_t key, std::size_t end_of_record) const {
  const text_key& wanted = keys_[key];
  record_fault fault{fault_kind::missing_key, end_of_record,
                     "no key \"" + command::one_line(wanted.name) + '"'};
  const std::string& first = wanted.path.front();
  if (wanted.path.size() > 1 && std::ranges::find(names_, first) != names_.end()) {
    fault.what +=
        ": the record has \"" + command::one_line(first) + "\", but not all keys below it";
    return fault;
  }
  if (names_.empty()) {
    fault.what += more_names_ ? "" : "; the record has no keys";
    return fault;
  }
  fault.what += "; the record has: ";
  for (const std::string& name : names_) {
    if (&name != &names_.front()) fault.what += ", ";
    fault.what += command::one_line(name);
  }
  if (more_names_) fault.what += ", ...";
  const std::string_view meant = likely_key(wanted.name, names_);
  if (keys_.size() == 1 && wanted.path.size() == 1 && needs_no_quotes(meant)) {
    fault.advice = "Use --json-keys " + std::string(meant);
  }
  return fault;
}

std::optional<record_fault> wanted_texts::fault(std::size_t end_of_record) const {
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    const slot& each = slots_[i];
    if (each.found && !each.wrong) continue;
    const std::string key = "key \"" + keys_[i].name + '"';
    if (each.broken_level != 0) {
      return record_fault{fault_kind::wrong_type, each.offset_bytes,
                          "key \"" + keys_[i].path[each.broken_level - 1] + "\", on the way to " +
                              key + ", holds " + name_of_value(each.wrong_byte) +
                              ", expected an object"};
    }
    if (!each.found) return missing(i, end_of_record);
    std::string what;
    if (each.list) what = "element " + std::to_string(each.strings) + " of ";
    what += key;
    what += each.list ? " is " : " holds ";
    what += name_of_value(each.wrong_byte);
    what += each.list ? ", expected a string" : ", expected a string or a list of strings";
    return record_fault{fault_kind::wrong_type, each.offset_bytes, std::move(what)};
  }
  return std::nullopt;
}

}  // namespace millrace::preprocess
