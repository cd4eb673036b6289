// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "unicode/reference_sets.hpp"

namespace millrace::tokenizer::detail {

/// A set of code points, one bit each: 136 KiB, of which a text touches the few lines that its
/// scripts lie in.
class code_point_set {
 public:
  static constexpr std::uint32_t limit = 0x110000;

  code_point_set() : words_(limit / 64) {}  ///< empty
  explicit code_point_set(inversion_list bounds) : code_point_set() { add(bounds); }
  explicit code_point_set(reference_set set) : code_point_set(bounds_of(set)) {}

  /// Those of one general category ("Lu") or of one letter's categories ("L"); false if there are
  /// no such categories.
  bool add_category(std::string_view name);

  void add(inversion_list bounds);
  /// Adds first to last, both of them.
  /// @pre last < limit
  void add(std::uint32_t first, std::uint32_t last) noexcept;
  void add(const code_point_set& other) noexcept;
  void intersect(const code_point_set& other) noexcept;
  void invert() noexcept;

  bool contains(std::uint32_t point) const noexcept {
    return point < limit && (words_[point / 64] >> (point % 64) & 1) != 0;
  }
  /// Whether any member is in first .. last.
  bool meets(std::uint32_t first, std::uint32_t last) const noexcept;
  /// Where membership changes, ascending; what an inversion_list views.
  std::vector<std::uint32_t> bounds() const;
  bool operator==(const code_point_set&) const = default;

 private:
  std::vector<std::uint64_t> words_;
};

}  // namespace millrace::tokenizer::detail
