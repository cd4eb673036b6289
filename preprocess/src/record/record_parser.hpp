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

/// Ways in which a record can be bad.
enum class fault_kind : std::uint8_t {
  invalid_utf8,   ///< the line is not UTF-8
  invalid_json,   ///< Python's json.loads would reject the line
  not_an_object,  ///< the line is JSON, but not an object
  missing_key,    ///< a wanted key, or a key on its path, is missing
  /// The value of a wanted key is neither a string nor a list of strings, or a value on its path is
  /// not an object.
  wrong_type,
  not_encodable,  ///< the tokenizer rejects the text
  // The other kinds are for conversations only.
  bad_conversation,  ///< the record is not a conversation, or its template cannot render it
  overlong,          ///< the conversation has too many tokens
  untrained,         ///< no token of the conversation is trained
};
inline constexpr std::size_t fault_kinds = 9;
/// The number of kinds that records without conversations may have, which come first.
inline constexpr std::size_t text_fault_kinds = 6;

/// The name of each fault_kind in files and messages.
inline constexpr std::array<std::string_view, fault_kinds> fault_names = {
    "invalid_utf8",  "invalid_json",     "not_an_object", "missing_key", "wrong_type",
    "not_encodable", "bad_conversation", "overlong",      "untrained"};

/// Describes why a record is bad. It is returned and never thrown: bad_record_policy decides
/// whether a bad record ends the run or is skipped.
struct record_fault {
  fault_kind kind = fault_kind::invalid_json;
  std::size_t offset_bytes = 0;  ///< offset in the line
  std::string what;              ///< one line of text, without the location
  std::string advice = {};       ///< a sentence that says what to do; usually empty
};

/// Extracts the texts of some keys from one line of JSON, as Python's `json.loads(line)[key]` does,
/// or `json.loads(line)[key][key]...` for a path. It accepts exactly the lines that Python accepts:
/// the whole line is validated, the last of duplicate keys wins, and escaped keys match.
///
/// `quick_json` parses nearly every line. It leaves the others to `exact_json`, which also writes
/// the message of every fault. The parser allocates memory only while lines or lists become longer
/// than all earlier ones. Not thread-safe.
class record_parser {
 public:
  /// Every line must be followed by this many readable bytes, of any value.
  static constexpr std::size_t padding_bytes = text_padding_bytes;

  /// @param keys  at least one; distinct
  explicit record_parser(std::span<const text_key> keys);
  /// Constructs a parser for top-level keys of the record (not paths).
  explicit record_parser(std::vector<std::string> keys);
  record_parser(record_parser&&) noexcept;
  ~record_parser();

  /// Parses a line, which is passed without its line end.
  ///
  /// @pre `padding_bytes` can be read after `line`.
  /// @return nothing, or the fault. After a fault, texts() is meaningless.
  std::optional<record_fault> parse(std::string_view line);

  /// The texts of `keys[key]`: one text if the value is a string, any number of texts if it is a
  /// list of strings. The texts are valid UTF-8; each lone surrogate was replaced by U+FFFD. The
  /// result is valid until the next parse(), and as long as the line: some texts point into it.
  std::span<const std::string_view> texts(std::size_t key) const;

  /// Number of lone surrogates in the texts of the last record. Lone surrogates in other values are
  /// not counted.
  std::int64_t lone_surrogates() const noexcept;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace millrace::preprocess
