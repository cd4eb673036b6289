// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "record/text_key.hpp"
#include "record/wanted_texts.hpp"

namespace millrace::preprocess {

/// Extracts texts from ordinary records in one pass, and leaves all other records to `exact_json`.
///
/// parse() accepts a line only if exact_json accepts it with the same texts. It refuses all bad
/// records, and also good ones that are rare: a key with an escape beside a wanted key, a lone
/// surrogate in a text, NaN, Infinity, an integer of more than `max_integer_digits` digits, and
/// values nested deeper than 64 levels. It checks everything that it skips. Not thread-safe.
class quick_json {
 public:
  /// @param keys  at least one; distinct
  explicit quick_json(std::span<const text_key> keys);

  /// Parses a line, which is passed without its line end.
  ///
  /// @pre `text_padding_bytes` can be read after `line`
  /// @return false if exact_json must parse the line. Then texts() is meaningless.
  bool parse(std::string_view line);

  /// As in record_parser. A text without escapes points into the line.
  std::span<const std::string_view> texts(std::size_t key) const { return slots_[key].texts; }

 private:
  class reading;

  /// A key of a wanted path. The root is the record itself.
  struct node {
    std::string key;
    std::optional<std::size_t> slot;  ///< the wanted text, if a path ends here
    std::vector<node> inner;          ///< the next keys of longer paths
  };
  struct slot {
    bool found = false;
    std::vector<std::string_view> texts;
  };

  void forget_values(const node& of);

  node root_;
  std::vector<slot> slots_;
  text_room room_;  // texts with escapes, decoded
};

}  // namespace millrace::preprocess
