// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace millrace::tokenizer::detail {

/// The pairs of ASCII characters between which a text is cut, in a form for vectorized look-up. The
/// second character of a pair belongs to one of up to 7 groups, and each group has its own bit. The
/// first character of a pair has a mask with the bits of all groups before which the text must not
/// be cut. If a group has several characters, a few cuts may be lost, but none is added. Immutable.
class ascii_seams {
 public:
  static constexpr std::size_t max_groups = 7;
  static constexpr std::uint8_t space_bit = 0x80;

  using characters = std::array<std::uint64_t, 2>;  // a set: one bit per character

  /// @param kept    for each second character: the first characters from which it must not be cut
  ///                off
  /// @param spaces  the characters whose group() includes space_bit
  ascii_seams(std::array<characters, 128> kept, const characters& spaces);

  bool cuts(unsigned char first, unsigned char second) const noexcept {
    return (before_[first] & group_[second]) == 0;
  }

  /// For each first character: the bits of the groups before which the text is not cut.
  const std::array<std::uint8_t, 128>& before() const noexcept { return before_; }
  /// For each second character: the bit of its group, and space_bit if the character is a space.
  const std::array<std::uint8_t, 128>& group() const noexcept { return group_; }

 private:
  std::array<std::uint8_t, 128> before_{};
  std::array<std::uint8_t, 128> group_{};
};

}  // namespace millrace::tokenizer::detail
