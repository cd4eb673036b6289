// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "record/record_parser.hpp"
#include "record/text_key.hpp"

namespace millrace::preprocess {

/// Collects what a line has under some keys, while a `json_scanner` scans the line and reports its
/// keys and brackets. A depth is the number of open lists and objects; the record's is 1.
class wanted_texts {
 public:
  /// What the line has had so far under one key. A later duplicate of this key, or of a key on the
  /// path to it, replaces all of this.
  struct slot {
    bool found = false;
    bool wrong = false;            ///< neither a string nor a list of strings
    bool list = false;             ///< a list; then `wrong` is about element number `strings`
    std::size_t strings = 0;       ///< strings of the value, before the wrong one
    std::size_t value_bytes = 0;   ///< offset of the value
    std::size_t broken_level = 0;  ///< nonzero: this many keys of the path lead to a non-object
    char wrong_byte = 0;           ///< the first byte of the wrong value
    std::size_t offset_bytes = 0;  ///< offset of that byte
    std::int64_t lone_surrogates = 0;
    std::vector<std::string_view> texts;

    std::size_t open_depth = 1;  ///< of the innermost open object that the path leads to
    bool entered = false;        ///< the value of a key on its path comes next
  };

  /// Size in bytes of the longest key of a record that messages show.
  static constexpr std::size_t longest_name = 60;

  /// @param keys  at least one; distinct
  explicit wanted_texts(std::vector<text_key> keys);

  /// Starts a new line and clears what the previous one left.
  void start();

  /// Whether a key of the object at this depth may be on the path to a text.
  bool looks_at(std::size_t depth) const noexcept;

  /// Reports a key of the object at `depth`. Its value comes next and goes to the returned slot, if
  /// any.
  slot* match(std::size_t depth, std::string_view key);

  /// Reports a key of the object at `depth` that is not wanted and cannot be shown: it is too long
  /// or contains a lone surrogate.
  void pass(std::size_t depth) noexcept;

  /// Reports that the value of the last matched key begins here, with the byte `first`.
  void enter(std::size_t depth, char first, std::size_t offset_bytes);

  /// Reports that the object at `depth` ends.
  void leave(std::size_t depth) noexcept;

  /// After the whole line was scanned: the fault of the first key that has no text or a value of
  /// the wrong type.
  ///
  /// @param end_of_record  offset of its closing bracket
  std::optional<record_fault> fault(std::size_t end_of_record) const;

  std::span<const std::string_view> texts(std::size_t key) const { return slots_[key].texts; }
  /// Offset in the line of the value under a key.
  /// @pre fault() returned nothing
  std::size_t value_bytes(std::size_t key) const { return slots_[key].value_bytes; }
  std::int64_t lone_surrogates() const noexcept;
  std::span<const text_key> keys() const noexcept { return keys_; }

 private:
  void note_name(std::string_view name);
  record_fault missing(std::size_t key, std::size_t end_of_record) const;

  std::vector<text_key> keys_;
  std::vector<slot> slots_;
  std::vector<std::string> names_;  // the record's first few keys, for messages
  bool more_names_ = false;
  std::size_t longest_path_ = 1;
  bool any_entered_ = false;
};

/// Clears `texts`. Frees their memory if it is larger than usually needed.
void forget(std::vector<std::string_view>& texts);

/// The name of a JSON value's type in messages, from its first byte: "a list".
const char* name_of_value(char first);

}  // namespace millrace::preprocess
