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

  /// Whether a space may be cut off from a character that ends in `byte`.
  bool parts_before_space(unsigned char byte) const noexcept { return parts_before_space_[byte]; }
  /// Whether a space may be cut off from any character but a space.
  bool always_parts_before_space() const noexcept { return always_parts_before_space_; }

  /// Whether line feeds may be cut off on both sides from any character but each other.
  bool parts_around_line_feeds() const noexcept { return parts_around_line_feeds_; }

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
  std::array<bool, 256> parts_before_space_ = all_true();
  bool always_parts_before_space_ = true;
  bool parts_around_line_feeds_ = true;

  static std::array<bool, 256> all_true() {
    std::array<bool, 256> result{};
    result.fill(true);
    return result;
  }
};

/// Finds where words of a text end: before a space that follows something else, so that words begin
/// with their spaces, and before and behind line feeds, if those may be cut off.
///
/// @param ends  not empty; filled from the front
/// @pre begin is 0 or an end
/// @return the number of ends written: 0 only at the end of the text
std::size_t next_word_ends(const seam_table& seams, std::string_view text, std::size_t begin,
                           std::span<std::size_t> ends) noexcept;

/// Calls `on_short(word, readable, key, home)` with each word from `begin` on that `shorts` has
/// keys for, in order, `on_long` likewise with those that `longs` has, and `on_other(word,
/// readable)` with the rest. Many at a time, so that the memory behind the keys is on its way when
/// it is asked for.
///
/// `readable` is the number of bytes that may be read where the word begins.
template <class Short, class Long, class OnShort, class OnLong, class OnOther>
void for_each_word(const seam_table& seams, std::string_view text, std::size_t begin,
                   const Short& shorts, const Long& longs, OnShort on_short, OnLong on_long,
                   OnOther on_other) {
  constexpr std::size_t batch = 128;
  std::array<std::size_t, batch> ends;
  std::array<std::size_t, batch> homes;
  std::array<typename Short::key, batch> short_keys;
  std::array<typename Long::key, batch> long_keys;
  std::size_t at = begin;
  while (const std::size_t count = next_word_ends(seams, text, at, ends)) {
    std::size_t start = at;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t size = ends[i] - start;
      const std::size_t readable = text.size() - start;
      if (size <= Short::max_bytes) {
        short_keys[i] = Short::make_key(text.data() + start, size, readable);
        homes[i] = shorts.home(short_keys[i]);
        shorts.prefetch(homes[i]);
      } else if (size <= Long::max_bytes) {
        long_keys[i] = Long::make_key(text.data() + start, size, readable);
        homes[i] = longs.home(long_keys[i]);
        longs.prefetch(homes[i]);
      }
      start = ends[i];
    }
    for (std::size_t i = 0; i < count; ++i) {
      const std::string_view word = text.substr(at, ends[i] - at);
      const std::size_t readable = text.size() - at;
      if (word.size() <= Short::max_bytes) {
        on_short(word, readable, short_keys[i], homes[i]);
      } else if (word.size() <= Long::max_bytes) {
        on_long(word, readable, long_keys[i], homes[i]);
      } else {
        on_other(word, readable);
      }
      at = ends[i];
    }
  }
}

}  // namespace millrace::tokenizer::detail
