// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hugging_face/json_value.hpp"
#include "messages/in_quotes.hpp"

namespace millrace::preprocess {

/// The entries of a JSON object that must have just those that are asked for: one that is there
/// twice is refused at once, one that nobody asked for by finish().
class json_entries {
 public:
  using json_value = tokenizer::detail::json_value;

  /// @param object  outlives this, and the values that come of it
  /// @param name    of it, for messages
  /// @throws format_error  it is no object, or has a key twice.
  json_entries(const json_value& object, const char* name) : object_(object), name_(name) {
    std::vector<std::string_view> keys;
    for (const auto [key, value] : object.object(name)) {
      entries_.emplace_back(key, json_value(object, value, entries_.size()));
      keys.push_back(key);
    }
    std::ranges::sort(keys);
    const auto twice = std::ranges::adjacent_find(keys);
    if (twice != keys.end()) fail_of(last(*twice), "has an entry twice, ");
    asked_.resize(entries_.size());
  }

  /// The entry, which may be null.
  /// @throws format_error  it is not there.
  json_value at(std::string_view key) {
    if (const auto value = find(key)) return *value;
    object_.fail(std::string(name_) + " has no entry " + tokenizer::detail::in_quotes(key));
  }
  std::optional<json_value> find(std::string_view key) {
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (entries_[i].first != key) continue;
      asked_[i] = true;
      return entries_[i].second;
    }
    return std::nullopt;
  }

  /// All of them, in order.
  const std::vector<std::pair<std::string_view, json_value>>& all() const& noexcept {
    return entries_;
  }
  std::vector<std::pair<std::string_view, json_value>> all() && noexcept {
    return std::move(entries_);
  }

  /// @throws format_error  an entry was not asked for.
  void finish() const {
    const auto unasked = std::ranges::find(asked_, false);
    if (unasked != asked_.end()) {
      fail_of(static_cast<std::size_t>(unasked - asked_.begin()), "has an unknown entry, ");
    }
  }

 private:
  std::size_t last(std::string_view key) const {
    std::size_t i = entries_.size() - 1;
    while (entries_[i].first != key) --i;
    return i;
  }
  [[noreturn]] void fail_of(std::size_t i, const char* problem) const {
    const auto& [key, value] = entries_[i];
    value.fail(std::string(name_) + ' ' + problem + tokenizer::detail::in_quotes(key));
  }

  const json_value& object_;
  const char* name_;
  std::vector<std::pair<std::string_view, json_value>> entries_;
  std::vector<bool> asked_;
};

}  // namespace millrace::preprocess
