// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace millrace::tokenizer::detail {

/// Between which two ASCII characters a text is cut, in a form that vectors look up: the second
/// characters are in up to 7 groups, and each first character has the groups that it is not to be
/// cut from. Groups are made so that few cuts are lost; none is ever won. Immutable.
class ascii_seams {
 public:
  static constexpr std::size_t max_groups = 7;
  static constexpr std::uint8_t space_bit = 0x80;

  using characters = std::array<std::uint64_t, 2>;  // a set, one bit each

  /// @param kept    by second character: the first ones that it is not to be cut from
  /// @param spaces  have space_bit among their groups' bits
  ascii_seams(std::array<characters, 128> kept, const characters& spaces);

  bool cuts(unsigned char first, unsigned char second) const noexcept {
    return (before_[first] & group_[second]) == 0;
  }

  /// By first character: the groups that it stays together with.
  const std::array<std::uint8_t, 128>& before() const noexcept { return before_; }
  /// By second character: the bit of its group, and space_bit.
  const std::array<std::uint8_t, 128>& group() const noexcept { return group_; }

 private:
  std::array<std::uint8_t, 128> before_{};
  std::array<std::uint8_t, 128> group_{};
};

}  // namespace millrace::tokenizer::detail
