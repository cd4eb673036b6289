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

/// Defines the behavior of `record_parser` for every line. The line is decoded strictly as UTF-8
/// and parsed as by Python 3.11's `json.loads(line)`. Then every key is looked up as
/// `[path[0]][path[1]]...`, where only objects have keys.
///
/// Parses in one pass, without recursion. The only memory is one buffer for the decoded texts. If a
/// record has several faults, the first of these kinds is reported: invalid_utf8, invalid_json,
/// not_an_object, then missing_key or wrong_type in the order of the keys. Not thread-safe.
class exact_json {
 public:
  /// @param keys  at least one; distinct; valid UTF-8, so none of them matches a key with a lone
  ///              surrogate
  explicit exact_json(std::span<const text_key> keys);
  /// Constructs a parser for top-level keys of the record (not paths).
  explicit exact_json(std::vector<std::string> keys);

  /// Parses a line, which is passed without its line end. Reads no byte after the line.
  ///
  /// @return nothing, or the fault. After a fault, texts() is meaningless.
  std::optional<record_fault> parse(std::string_view line);

  /// As in record_parser. The result is valid until the next parse().
  std::span<const std::string_view> texts(std::size_t key) const { return wanted_.texts(key); }
  std::int64_t lone_surrogates() const noexcept { return wanted_.lone_surrogates(); }

  std::span<const text_key> keys() const noexcept { return wanted_.keys(); }

 private:
  class reading;

  void make_room(std::size_t line_bytes);

  wanted_texts wanted_;
  std::unique_ptr<char[]> room_;  // buffer for decoded texts
  std::size_t room_bytes_ = 0;
};

}  // namespace millrace::preprocess
