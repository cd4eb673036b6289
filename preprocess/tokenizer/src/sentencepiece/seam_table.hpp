// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace millrace::tokenizer::detail {

/// Finds seams. A seam is a place where a text can be cut without changing its ids. It lies between
/// two characters that no piece contains side by side. Immutable.
///
/// While a model encodes, it looks only at single characters and at the texts of pieces. Neither
/// spans a seam, so the two sides of a seam encode independently. (Unknown characters on both sides
/// of a seam still become one id. The engines handle that.)
class seam_table {
 public:
  seam_table() = default;
  /// @param pieces  all pieces that text can match, including user-defined ones; valid UTF-8
  explicit seam_table(std::span<const std::string_view> pieces);

  /// True if a piece contains `x` directly before `y`. The result is exact if both are ASCII.
  /// Otherwise, false positives are possible but rare.
  bool joined(std::uint32_t x, std::uint32_t y) const noexcept {
    if ((x | y) < 0x80) return (ascii_[x][y / 64] >> (y % 64) & 1) != 0;
    const std::uint64_t h = hash(x, y) >> shift_;
    return (bits_[h / 64] >> (h % 64) & 1) != 0;
  }

  /// True if no piece contains a space directly after a character other than a space.
  bool always_parts_before_space() const noexcept { return always_parts_before_space_; }

  /// End of the fragment of `text` that begins at `begin`: the next seam, or the end of `text`.
  /// @pre begin < text.size()
  std::size_t fragment_end(std::string_view text, std::size_t begin) const noexcept;

 private:
  static std::uint64_t hash(std::uint32_t x, std::uint32_t y) noexcept {
    return (std::uint64_t{x} << 21 | y) * 0x9E3779B97F4A7C15U;
  }

  std::array<std::array<std::uint64_t, 2>, 128> ascii_{};
  std::vector<std::uint64_t> bits_ = std::vector<std::uint64_t>(1);
  unsigned shift_ = 58;
  bool always_parts_before_space_ = true;
};

/// The pairs of ASCII characters between which a text is cut, in a form for vectorized look-up. The
/// second character of a pair belongs to one of up to 7 groups, and each group has its own bit. The
/// first character of a pair has a mask with the bits of all groups before which the text must not
/// be cut. If a group has several characters, a few cuts may be lost, but none is added. Immutable.
class ascii_seams {
 public:
  static constexpr std::size_t max_groups = 7;
  static constexpr std::uint8_t space_bit = 0x80;

  using characters = std::array<std::uint64_t, 2>;  // a set: one bit per character

  /// @param kept    [second]: the characters after which a text must not be cut if `second` comes
  ///                next
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
