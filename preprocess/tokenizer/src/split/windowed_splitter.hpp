// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "split/bert_matcher.hpp"
#include "split/cl100k_matcher.hpp"
#include "split/deepseek_matcher.hpp"
#include "split/local_matchers.hpp"
#include "split/o200k_matcher.hpp"
#include "split/r50k_matcher.hpp"
#include "split/splitters.hpp"
#include "split/window.hpp"

namespace millrace::tokenizer::detail {

/// For one group of patterns, maps the first byte of a character to the kinds (letter, number, ...)
/// of that character.
///
/// ASCII bytes map to their kinds, and continuation bytes map to 0. Any other byte maps to the
/// kinds that all characters with this first byte share, or to `varied` if their kinds differ.
///
/// Vectors of 64 bytes are loaded from by_byte, rows_from_4000 and by_point.
struct kind_tables {
  static constexpr std::uint8_t varied = 0xFF;  // no character has all kinds
  alignas(64) std::array<std::uint8_t, 256> by_byte{};

  /// The kinds of ASCII bytes, for shuffles of 16 bytes. A group is a set of high nibbles and a set
  /// of low nibbles; all bytes of a group have the same kinds, and a byte is in at most one group.
  /// Bit g of of_low[low nibble] & of_high[high nibble] tells whether the byte is in group g.
  struct ascii_groups {
    bool suffice = true;  ///< false if eight groups are too few; then the rest is not valid
    std::array<std::uint8_t, 16> of_low{};
    std::array<std::uint8_t, 16> of_high{};
    /// The kinds of the group among groups 0 to 3, and among 4 to 7, whose bit is set in the index.
    std::array<std::array<std::uint8_t, 16>, 2> kinds{};
  };
  ascii_groups groups;

  /// The kinds that the 64 characters from U+4000 on, from U+4040 on and so on share, or `varied`.
  alignas(64) std::array<std::uint8_t, 64> rows_from_4000{};

  /// The kinds of each code point below 0x10000. In UTF-8, these characters have up to three bytes.
  alignas(64) std::array<std::uint8_t, 0x10000> by_point{};
};

/// Finds the groups: for each row of 16 bytes and each value of kinds in it, the low nibbles with
/// these kinds. Rows with equal sets share a group.
inline kind_tables::ascii_groups ascii_groups_of(
    std::span<const std::uint8_t, 128> kinds) noexcept {
  struct group {
    std::uint8_t kinds;
    unsigned low;  // bit n: low nibble n
  };
  std::array<group, 8> found;
  std::size_t count = 0;
  kind_tables::ascii_groups groups;
  for (std::size_t high = 0; high < 8; ++high) {
    const auto row = kinds.subspan(16 * high, 16);
    for (std::size_t first = 0; first < 16; ++first) {
      if (row[first] == 0) continue;
      unsigned low = 0;
      for (std::size_t n = 0; n < 16; ++n) low |= unsigned{row[n] == row[first]} << n;
      if (static_cast<std::size_t>(std::countr_zero(low)) != first) continue;  // seen in this row
      std::size_t g = 0;
      while (g < count && (found[g].kinds != row[first] || found[g].low != low)) ++g;
      if (g == found.size()) return {.suffice = false};
      if (g == count) found[count++] = {row[first], low};
      groups.of_high[high] |= static_cast<std::uint8_t>(1U << g);
    }
  }
  for (std::size_t g = 0; g < count; ++g) {
    groups.kinds[g / 4][std::size_t{1} << g % 4] = found[g].kinds;
    for (std::size_t n = 0; n < 16; ++n) {
      groups.of_low[n] |= static_cast<std::uint8_t>((found[g].low >> n & 1) << g);
    }
  }
  return groups;
}

inline std::uint8_t kinds_of_range(const kind_tables& tables, std::size_t first,
                                   std::size_t end) noexcept {
  const std::uint8_t shared = tables.by_point[first];
  for (std::size_t point = first + 1; point < end; ++point) {
    if (tables.by_point[point] != shared) return kind_tables::varied;
  }
  return shared;
}

template <class Matcher>
kind_tables make_kind_tables() noexcept {
  kind_tables tables;
  for (std::uint32_t point = 0; point < tables.by_point.size(); ++point) {
    tables.by_point[point] = static_cast<std::uint8_t>(Matcher::kinds(point) & Matcher::used_kinds);
  }
  for (std::size_t byte = 0; byte < 0x80; ++byte) tables.by_byte[byte] = tables.by_point[byte];
  for (std::size_t byte = 0xC0; byte < 0x100; ++byte) {
    tables.by_byte[byte] = kind_tables::varied;  // four-byte characters are too many to check
    const std::size_t two = (byte & 0x1F) << 6;
    const std::size_t three = (byte & 0x0F) << 12;
    if (byte >= 0xC2 && byte < 0xE0) tables.by_byte[byte] = kinds_of_range(tables, two, two + 64);
    if (byte > 0xE0 && byte < 0xF0 && byte != 0xED) {
      tables.by_byte[byte] = kinds_of_range(tables, three, three + 0x1000);
    }
  }
  for (std::size_t row = 0; row < tables.rows_from_4000.size(); ++row) {
    const std::size_t first = 0x4000 + 64 * row;
    tables.rows_from_4000[row] = kinds_of_range(tables, first, first + 64);
  }
  tables.by_byte[0xED] = kinds_of_range(tables, 0xD000, 0xD800);  // the rest are surrogates
  tables.groups = ascii_groups_of(std::span(tables.by_byte).template first<128>());
  return tables;
}

/// The result of the `read` function of an Isa. (An Isa is a class for one instruction set.)
struct read_window {
  window chars;
  mask leads;          ///< bytes that begin a character
  bool one_byte_each;  ///< all characters are one byte
};

/// Finds the characters in the loaded bytes. The `read` functions of all Isas share it.
///
/// @param bytes         number of bytes loaded
/// @param continuation  bytes that continue a character
/// @param section_ends  true if no byte of the section follows the loaded bytes
[[gnu::always_inline]] inline void find_characters(read_window& read, const char* begin,
                                                   std::size_t bytes, mask continuation,
                                                   bool section_ends) noexcept {
  mask leads = (~mask{0} >> (64 - bytes)) & ~continuation;
  leads |= 1;  // always, so that invalid UTF-8 is split too
  const int last = 63 - std::countl_zero(leads);
  const auto byte = static_cast<unsigned char>(begin[last]);
  const std::size_t size = byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
  const bool whole = static_cast<std::size_t>(last) + size <= bytes;
  if (!whole) leads &= ~(mask{1} << last);
  const int count = std::popcount(leads);
  read.leads = leads;
  read.chars.valid = count == 0 ? 0 : ~mask{0} >> (64 - count);
  read.chars.at_end = section_ends && whole;
}

/// Looks up, one by one, the characters whose first byte does not determine their kinds.
template <class Matcher>
[[gnu::always_inline]] inline void set_varied_kinds(std::array<std::uint8_t, 64>& each,
                                                    std::string_view section, std::size_t at,
                                                    mask varied,
                                                    const kind_tables& tables) noexcept {
  const auto* const bytes = reinterpret_cast<const unsigned char*>(section.data()) + at;
  const std::size_t left = section.size() - at;
  for (; varied != 0; varied &= varied - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(varied));
    if (bytes[i] >> 4 == 0xE && i + 2 < left) [[likely]] {
      // The bits that tell the bytes of a character from others add up to a constant.
      const std::uint32_t sum =
          (std::uint32_t{bytes[i]} << 12) + (std::uint32_t{bytes[i + 1]} << 6) + bytes[i + 2];
      each[i] = tables.by_point[static_cast<std::uint16_t>(sum - 0xE2080)];
      continue;
    }
    const std::uint32_t point = code_point_at(section, at + i).value;
    each[i] = point < tables.by_point.size()
                  ? tables.by_point[point]
                  : static_cast<std::uint8_t>(Matcher::kinds(point) & Matcher::used_kinds);
  }
}

/// Converts the masks of `w` from one bit per byte to one bit per character, with PEXT.
template <class Isa, class Matcher>
[[gnu::always_inline]] inline void gather_masks(window& w, mask leads) noexcept {
  constexpr unsigned used = Matcher::used_kinds;
  w.letter = Isa::gather(w.letter, leads);
  w.number = Isa::gather(w.number, leads);
  w.space = Isa::gather(w.space, leads);
  if ((used & kind::newline) != 0) w.newline = Isa::gather(w.newline, leads);
  if ((used & kind::upper) != 0) w.upper = Isa::gather(w.upper, leads);
  if ((used & kind::lower) != 0) w.lower = Isa::gather(w.lower, leads);
  if ((used & kind::mark) != 0) w.mark = Isa::gather(w.mark, leads);
  if ((used & kind::han) != 0) w.han = Isa::gather(w.han, leads);
  w.ascii = Isa::gather(w.ascii, leads);
  w.blank = Isa::gather(w.blank, leads);
  if (Matcher::uses_slash) w.slash = Isa::gather(w.slash, leads);
  if (w.apostrophe == 0) return;
  w.apostrophe = Isa::gather(w.apostrophe, leads);
  w.contraction2 = Isa::gather(w.contraction2, leads);
  w.contraction3 = Isa::gather(w.contraction3, leads);
}

template <class Matcher>
[[gnu::noinline]] std::size_t walked_end(std::string_view section, std::size_t at) noexcept {
  return Matcher::end(section, at);
}

/// The cuts found in a window, in masks of bytes.
struct byte_cuts {
  mask starts;    ///< bytes behind the first one that certainly begin a pretoken
  mask resume;    ///< a byte behind the first one, in the last pretoken, where the next window may
                  ///< begin, or 0; not below the highest of `starts`
  bool finished;  ///< everything is decided, and the section ends after the window
};

template <class Isa, class Matcher>
[[gnu::always_inline]] inline byte_cuts cuts_at(std::string_view section, std::size_t at,
                                                const kind_tables& tables) noexcept {
  constexpr mask not_first = ~mask{1};
  if (section.size() - at >= 64) {
    window w;
    if (Isa::template read_ascii<Matcher>(section.data() + at, tables, w)) {
      const cuts found = cuts_of<Isa>(Matcher{}, w);
      return {found.starts & found.decided & not_first, found.resume & not_first, false};
    }
  }
  const auto read = Isa::template read<Matcher>(section, at, tables);
  const cuts found = cuts_of<Isa>(Matcher{}, read.chars);
  const mask starts = found.starts & found.decided & not_first;
  const mask resume = found.resume & not_first;
  if (read.one_byte_each) return {starts, resume, found.finished};
  return {Isa::to_bytes(starts, read), Isa::to_bytes(resume, read), found.finished};
}

/// Splits a section one window at a time. If a window has no decided cut and no place to resume,
/// the walker (walk.hpp) finds the next cut.
///
/// Isa provides:
///   read_ascii<Matcher>(text, tables, window&) -> whether the next 64 bytes are ASCII; if so, they
///                         are in the window
///   read<Matcher>(section, at, tables) -> read_window, or what is derived from it
///   write(bits, at, out): for each bit that is set, writes `at` plus the position of the bit, in
///                         ascending order. Then writes meaningless values, until the number of
///                         values is a multiple of 8 and at least `least_room`.
///   to_bytes(chars, read): converts a mask of one bit per character to one bit per byte
///   starts_of_runs(bits, from, ends, kept): for the runs of `bits` whose first characters are in
///                         `from`, and behind each of which is a bit of `ends`: the first
///                         characters of those with a bit of `kept` there
///
/// This function and all of Isa are inlined into a function that is compiled for the instruction
/// set.
template <class Isa, class Matcher>
[[gnu::always_inline]] inline std::size_t windowed_ends(std::string_view section, std::size_t at,
                                                        std::span<std::size_t> ends,
                                                        const kind_tables& tables) noexcept {
  // A window has at most 63 starts behind its first byte, and `write` at most 64 values.
  constexpr std::size_t room = word_splitter::room_for_window;
  static_assert(Isa::least_room <= room && room >= 64);
  std::array<std::size_t, room> few;  // if `ends` has less room
  std::size_t* const out = ends.size() < room ? few.data() : ends.data();
  const std::size_t last_fit = std::max(ends.size(), room) - room;
  std::size_t count = 0;
  std::size_t word = at;  // where the pretoken that contains the window's first byte begins
  while (count <= last_fit && at < section.size()) {
    const byte_cuts found = cuts_at<Isa, Matcher>(section, at, tables);
    if (found.starts == 0 && !found.finished) {
      if (found.resume != 0) {
        at += static_cast<std::size_t>(std::countr_zero(found.resume));
      } else {
        at = word = walked_end<Matcher>(section, word);
        out[count++] = at;
      }
      continue;
    }
    Isa::write(found.starts, at, out + count);
    count += static_cast<std::size_t>(std::popcount(found.starts));
    if (found.finished) {
      out[count++] = section.size();
      break;
    }
    word = at + 63 - static_cast<std::size_t>(std::countl_zero(found.starts));
    // Without a branch, which would be hard to predict.
    at += 63 - static_cast<std::size_t>(std::countl_zero(found.starts | found.resume));
  }
  if (out == ends.data()) return count;
  count = std::min(count, ends.size());
  std::copy_n(few.begin(), count, ends.begin());
  return count;
}

}  // namespace millrace::tokenizer::detail
