// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "unicode/reference_sets.hpp"

namespace millrace::tokenizer::detail {

/// A set of code points. Takes 136 KiB, with one bit per code point. Look-ups for the characters of
/// a text read only the few cache lines that belong to its scripts.
class code_point_set {
 public:
  static constexpr std::uint32_t limit = 0x110000;

  code_point_set() : words_(limit / 64) {}  ///< empty
  explicit code_point_set(inversion_list bounds) : code_point_set() { add(bounds); }
  explicit code_point_set(reference_set set) : code_point_set(bounds_of(set)) {}

  /// Adds all code points of a general category, such as "Lu". The name can also be one letter,
  /// such as "L", for all categories whose names begin with that letter. Returns false if no such
  /// category exists.
  bool add_category(std::string_view name);

  void add(inversion_list bounds);
  /// Adds `first` to `last`, inclusive.
  /// @pre last < limit
  void add(std::uint32_t first, std::uint32_t last) noexcept;
  void add(const code_point_set& other) noexcept;
  void intersect(const code_point_set& other) noexcept;
  void invert() noexcept;

  bool contains(std::uint32_t point) const noexcept {
    return point < limit && (words_[point / 64] >> (point % 64) & 1) != 0;
  }
  /// True if any code point from `first` to `last`, inclusive, is a member.
  bool meets(std::uint32_t first, std::uint32_t last) const noexcept;
  /// The code points where membership changes, in ascending order, as in an inversion_list.
  std::vector<std::uint32_t> bounds() const;
  bool operator==(const code_point_set&) const = default;

 private:
  std::vector<std::uint64_t> words_;
};

}  // namespace millrace::tokenizer::detail
