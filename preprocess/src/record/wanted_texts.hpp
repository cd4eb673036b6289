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

#include "record/record_parser.hpp"
#include "record/text_key.hpp"

namespace millrace::preprocess {

/// Collects the values of some keys of a line. A `json_scanner` scans the line and reports its keys
/// and brackets to this class. A depth is the number of open lists and objects; inside the record
/// it is 1.
class wanted_texts {
 public:
  /// The results so far for one wanted key. If the key, or a key on the path to it, occurs again in
  /// the line, the later value replaces all results.
  struct slot {
    bool found = false;
    bool wrong = false;           ///< the value is neither a string nor a list of strings
    bool list = false;            ///< the value is a list
    std::size_t strings = 0;      ///< number of strings in the value before any wrong element
    std::size_t value_bytes = 0;  ///< offset of the value
    /// If nonzero: `path[broken_level - 1]` has a value that is not an object.
    std::size_t broken_level = 0;
    char wrong_byte = 0;           ///< the first byte of the wrong value
    std::size_t offset_bytes = 0;  ///< offset of `wrong_byte` in the line
    std::int64_t lone_surrogates = 0;
    std::vector<std::string_view> texts;

    std::size_t open_depth = 1;  ///< depth of the innermost open object on the path
    bool entered = false;        ///< the value that comes next belongs to a key on the path
  };

  /// A message shows a key of a record only if the key has at most this many bytes.
  static constexpr std::size_t longest_name = 60;

  /// @param keys  at least one; distinct
  explicit wanted_texts(std::vector<text_key> keys);

  /// Clears the results of the previous line, before a new line is scanned.
  void start();

  /// Returns whether the keys of the object at this depth must be reported: one of them may be on
  /// the path to a wanted text.
  bool looks_at(std::size_t depth) const noexcept;

  /// Reports a key of the object at `depth`. Returns the slot that receives the value of this key,
  /// or null if that value is not wanted.
  slot* match(std::size_t depth, std::string_view key);

  /// Reports that the object at `depth` has a key that is not wanted and cannot be shown in a
  /// message, because it is too long or contains a lone surrogate.
  void pass(std::size_t depth) noexcept;

  /// Reports that the value of the last matched key begins here, with the byte `first`.
  void enter(std::size_t depth, char first, std::size_t offset_bytes);

  /// Reports that the object at `depth` ends.
  void leave(std::size_t depth) noexcept;

  /// Call this after the whole line was scanned. Returns the fault of the first key that is missing
  /// or has a value of the wrong type.
  ///
  /// @param end_of_record  offset of the record's closing bracket
  std::optional<record_fault> fault(std::size_t end_of_record) const;

  std::span<const std::string_view> texts(std::size_t key) const { return slots_[key].texts; }
  /// Returns the offset of a key's value in the line.
  ///
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

/// Clears `texts`. Also frees its memory if it is larger than a usual line needs.
void forget(std::vector<std::string_view>& texts);

/// A buffer for the texts of a line. It grows by powers of two up to 4 MiB. If a longer line needs
/// a larger buffer, that buffer is replaced as soon as a line needs no more than 4 MiB.
class text_room {
 public:
  /// Returns room for `bytes` bytes. What an earlier call returned is no longer valid.
  char* of(std::size_t bytes);

 private:
  std::unique_ptr<char[]> room_;
  std::size_t bytes_ = 0;
};

/// Returns the type of the JSON value that starts with byte `first`. The result is for messages,
/// such as "a list".
const char* name_of_value(char first);

}  // namespace millrace::preprocess
