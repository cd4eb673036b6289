// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "input/byte_buffer.hpp"
#include "record/text_key.hpp"

namespace millrace::preprocess {

/// What is wrong with a record.
enum class fault_kind : std::uint8_t {
  invalid_utf8,   ///< the line is not UTF-8
  invalid_json,   ///< Python's json.loads would refuse the line
  not_an_object,  ///< JSON, but no object
  missing_key,    ///< the object lacks one of the keys, or one on the way to it
  wrong_type,     ///< the value is neither a string nor a list of strings, or one on the way to it
                  ///< is no object
  not_encodable,  ///< the tokenizer refuses the text
};
inline constexpr std::size_t fault_kinds = 6;

/// How files and answers call each fault_kind.
inline constexpr std::array<std::string_view, fault_kinds> fault_names = {
    "invalid_utf8", "invalid_json", "not_an_object", "missing_key", "wrong_type", "not_encodable"};

/// A bad record: counted, skipped or fatal, as the run's policy says. Never an exception.
struct record_fault {
  fault_kind kind = fault_kind::invalid_json;
  std::size_t offset_bytes = 0;  ///< in the line
  std::string what;              ///< one line, without the place
  std::string advice = {};       ///< a sentence that says what to do; mostly empty
};

/// Takes the texts of some keys out of one line of JSON, with the meaning of Python's
/// `json.loads(line)[key]`, or `[key][key]...` for a path: what that accepts is accepted, what it
/// refuses is refused, the whole line is validated, the last of duplicate keys wins, escaped keys
/// match.
///
/// simdjson decides nearly every line; what it refuses or may judge in another way (see
/// preprocess/README.md) goes to `exact_json`, which also finds the words for every fault, so that
/// they do not depend on simdjson. Takes no memory once lines and lists stop growing. For one
/// thread.
class record_parser {
 public:
  /// Bytes of any value that must be readable after every line.
  static constexpr std::size_t padding_bytes = text_padding_bytes;

  /// @param keys  at least one; distinct
  explicit record_parser(std::span<const text_key> keys);
  /// The same of keys that are no paths.
  explicit record_parser(std::vector<std::string> keys);
  record_parser(record_parser&&) noexcept;
  ~record_parser();

  /// Parses a line, given without its line end.
  ///
  /// @pre `padding_bytes` can be read behind `line`.
  /// @return nothing, or what is wrong; then texts() says nothing.
  std::optional<record_fault> parse(std::string_view line);

  /// The texts under `keys[key]`: one for a string, any number for a list of strings. Valid
  /// UTF-8, each lone surrogate replaced by U+FFFD. Valid until the next parse(), without the line.
  std::span<const std::string_view> texts(std::size_t key) const;

  /// Lone surrogates that the texts of the last record had (in other values they do not count).
  std::int64_t lone_surrogates() const noexcept;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace millrace::preprocess
