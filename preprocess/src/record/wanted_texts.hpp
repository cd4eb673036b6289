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

/// What a line has under some keys, put together while a `json_scanner` passes over it and tells of
/// the keys and brackets that it meets. Depths count open lists and objects; the record's is 1.
class wanted_texts {
 public:
  /// What the line has held so far under one key. A later duplicate, of this key or of one on the
  /// way to it, replaces it all.
  struct slot {
    bool found = false;
    bool wrong = false;            ///< neither a string nor a list of strings
    bool list = false;             ///< then `wrong` is about the element after so many strings:
    std::size_t strings = 0;       ///< of the value, before what is wrong
    std::size_t value_bytes = 0;   ///< where the value begins
    std::size_t broken_level = 0;  ///< not 0: so many keys of the path lead to what is no object
    char wrong_byte = 0;           ///< the first of the value that is wrong
    std::size_t offset_bytes = 0;  ///< and where that is
    std::int64_t lone_surrogates = 0;
    std::vector<std::string_view> texts;

    std::size_t open_depth = 1;  ///< of the innermost open object that the path leads to
    bool entered = false;        ///< the value of a key on its way comes next
  };

  /// Messages show no name of the record that is longer.
  static constexpr std::size_t longest_name = 60;

  /// @param keys  at least one; distinct
  explicit wanted_texts(std::vector<text_key> keys);

  /// Forgets the line before.
  void start();

  /// Whether a key of the object at this depth may be on the way to a text.
  bool looks_at(std::size_t depth) const noexcept;

  /// A key of the object at `depth`. Its value comes next, and goes to the slot, if any.
  slot* match(std::size_t depth, std::string_view key);

  /// A key of the object at `depth` that is no wanted one, and cannot be shown: it is too long, or
  /// holds a lone surrogate.
  void pass(std::size_t depth) noexcept;

  /// The value of the key that was matched last begins here, with this byte.
  void enter(std::size_t depth, char first, std::size_t offset_bytes);

  /// The object at `depth` ends.
  void leave(std::size_t depth) noexcept;

  /// The first key that has no text, or the wrong kind, once the whole line was seen.
  ///
  /// @param end_of_record  offset of its closing bracket
  std::optional<record_fault> fault(std::size_t end_of_record) const;

  std::span<const std::string_view> texts(std::size_t key) const { return slots_[key].texts; }
  /// Where in the line the value under a key begins.
  /// @pre fault() says nothing
  std::size_t value_bytes(std::size_t key) const { return slots_[key].value_bytes; }
  std::int64_t lone_surrogates() const noexcept;
  std::span<const text_key> keys() const noexcept { return keys_; }

 private:
  void note_name(std::string_view name);
  record_fault missing(std::size_t key, std::size_t end_of_record) const;

  std::vector<text_key> keys_;
  std::vector<slot> slots_;
  std::vector<std::string> names_;  // the first few keys of the record, for messages
  bool more_names_ = false;
  std::size_t longest_path_ = 1;
  bool any_entered_ = false;
};

/// Forgets texts, and gives memory back that so many of them seldom need.
void forget(std::vector<std::string_view>& texts);

/// What a JSON value is called, by the first of its bytes: "a list".
const char* name_of_value(char first);

}  // namespace millrace::preprocess
