// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace millrace::tokenizer::detail {

/// Where a text may be cut without changing its ids: between two characters that are neighbours in
/// no piece. Immutable.
///
/// Whatever a model looks at while it encodes is a single character or the text of a piece, so
/// nothing ever reaches over such a seam, and what lies before it and behind it encode as texts of
/// their own. (Unknown characters that become one id do reach over it; that is the engines'
/// business.)
class seam_table {
 public:
  seam_table() = default;
  /// @param pieces  all that text can match, user-defined ones included; valid UTF-8
  explicit seam_table(std::span<const std::string_view> pieces);

  /// Whether some piece has `x` before `y`; now and then true where none has.
  bool joined(std::uint32_t x, std::uint32_t y) const noexcept {
    if ((x | y) < 0x80) return (ascii_[x][y / 64] >> (y % 64) & 1) != 0;
    const std::uint64_t h = hash(x, y) >> shift_;
    return (bits_[h / 64] >> (h % 64) & 1) != 0;
  }

  /// Whether a space may be cut off from any character but a space.
  bool always_parts_before_space() const noexcept { return always_parts_before_space_; }

  /// End of the fragment of `text` that begins at `begin`: the first seam, or the end.
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

}  // namespace millrace::tokenizer::detail
