// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
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

/// The reference parser: `record_parser` must give the same results for every line. Decodes the
/// line strictly as UTF-8 and parses it as Python 3.11's `json.loads(line)` does. Then looks up
/// every key as `[path[0]][path[1]]...`, where only objects have keys.
///
/// Parses in one pass, without recursion. Allocates only one buffer, for the decoded texts. If a
/// record has several faults, only one is reported: the first of invalid_utf8, invalid_json and
/// not_an_object, or else the missing_key or wrong_type of the first faulty key. Not thread-safe.
class exact_json {
 public:
  /// @param keys  at least one; distinct; valid UTF-8, so no key in `keys` has a lone surrogate
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

  wanted_texts wanted_;
  text_room room_;
};

}  // namespace millrace::preprocess
