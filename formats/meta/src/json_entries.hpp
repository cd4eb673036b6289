// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/formats/detail/in_quotes.hpp>
#include <millrace/formats/detail/json.hpp>

/// Helpers that check the entries of one of our JSON files. Errors name the place of the fault.
namespace millrace::formats {

[[noreturn]] inline void fail_at(const json_value& value, const std::string& problem) {
  throw format_error(value.offset(), problem);
}

// Each function below throws format_error if the value has the wrong type. `name` is the name of
// the value in the message.

template <class T>
const T& value_of(const json_value& value, const char* name, const char* expected) {
  if (const T* found = value.as<T>()) return *found;
  fail_at(value, std::string(name) + " is not " + expected);
}
inline const std::string& string_of(const json_value& value, const char* name) {
  return value_of<std::string>(value, name, "a string");
}
inline const json_array& array_of(const json_value& value, const char* name) {
  return value_of<json_array>(value, name, "an array");
}
inline bool bool_of(const json_value& value, const char* name) {
  if (const bool* found = value.as<bool>()) return *found;
  fail_at(value, std::string(name) + " is neither true nor false");
}
/// Returns an integer from 0 to 2^63 - 1.
inline std::int64_t count_of(const json_value& value, const char* name) {
  const auto* found = value.as<std::int64_t>();
  if (found != nullptr && *found >= 0) return *found;
  fail_at(value, std::string(name) + " is not an integer of 0.." +
                     std::to_string(std::numeric_limits<std::int64_t>::max()));
}

/// The entries of a JSON object. The caller requests every entry that it knows. After that,
/// finish() refuses an object that has other entries.
class json_entries {
 public:
  /// @param object  must outlive this json_entries
  /// @param name    name of the object, for messages
  /// @throws format_error  the value is not an object.
  json_entries(const json_value& object, const char* name)
      : object_(object),
        name_(name),
        members_(value_of<json_object>(object, name, "an object")),
        asked_(members_.size()) {}

  /// Returns an entry, which may be a JSON null.
  /// @throws format_error  the entry does not exist.
  const json_value& at(std::string_view key) {
    if (const auto* value = find(key)) return *value;
    fail_at(object_, std::string(name_) + " has no entry " + in_quotes(key));
  }
  /// Returns an entry; null if it does not exist.
  const json_value* find(std::string_view key) {
    const auto found = std::ranges::find(members_, key, &json_member::name);
    if (found == members_.end()) return nullptr;
    asked_[static_cast<std::size_t>(found - members_.begin())] = true;
    return &found->value;
  }

  /// @throws format_error  the object has an entry that was not requested.
  void finish() const {
    const auto unasked = std::ranges::find(asked_, false);
    if (unasked == asked_.end()) return;
    const auto& member = members_[static_cast<std::size_t>(unasked - asked_.begin())];
    fail_at(member.value, std::string(name_) + " has an unknown entry, " + in_quotes(member.name));
  }

 private:
  const json_value& object_;
  const char* name_;
  const json_object& members_;
  std::vector<bool> asked_;
};

}  // namespace millrace::formats
