// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "record/json_scanner.hpp"
#include "record/record_parser.hpp"
#include "record/text_key.hpp"
#include "record/wanted_texts.hpp"

namespace millrace::preprocess {

/// The reference behavior of `record_parser`, for every line: Python 3.11's `json.loads(line)` of a
/// line decoded strictly as UTF-8, then `[path[0]][path[1]]...` for every key, where only objects
/// have keys.
///
/// One pass, without recursion. The only memory is one buffer for the decoded texts. If there are
/// several faults, it reports the first of: invalid_utf8, invalid_json, not_an_object, then
/// missing_key or wrong_type in the order of the keys. For one thread.
class exact_json {
 public:
  /// @param keys  at least one; distinct; UTF-8 (so none matches a key with a lone surrogate)
  explicit exact_json(std::span<const text_key> keys);
  /// The same, for keys that are not paths.
  explicit exact_json(std::vector<std::string> keys);

  /// Parses a line, passed without its line end. Reads nothing after it.
  ///
  /// @return nothing, or the fault; texts() is meaningless after a fault.
  std::optional<record_fault> parse(std::string_view line);

  /// As in record_parser. Valid until the next parse().
  std::span<const std::string_view> texts(std::size_t key) const { return wanted_.texts(key); }
  std::int64_t lone_surrogates() const noexcept { return wanted_.lone_surrogates(); }

  std::span<const text_key> keys() const noexcept { return wanted_.keys(); }

 private:
  class reading;

  void make_room(std::size_t line_bytes);

  wanted_texts wanted_;
  std::unique_ptr<char[]> room_;  // decoded texts
  std::size_t room_bytes_ = 0;
};

}  // namespace millrace::preprocess
