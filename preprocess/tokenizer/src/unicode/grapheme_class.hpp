// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Extended grapheme clusters (UAX #29). A cluster is what a reader sees as one character. The
/// tables use the Unicode version of Hugging Face's tokenizers. scripts/grapheme_tables generates
/// the tables by querying that package.
namespace millrace::tokenizer::detail {

/// The property Grapheme_Cluster_Break of a code point.
enum class grapheme_kind : std::uint8_t {
  other,
  cr,
  lf,
  control,
  extend,
  zwj,
  spacing_mark,
  prepend,
  regional,
  hangul_l,
  hangul_v,
  hangul_t,
  hangul_lv,
  hangul_lvt,
};

/// The kind of a code point, and its other properties that matter for finding clusters.
struct grapheme_class {
  std::uint8_t bits = 0;

  constexpr grapheme_kind kind() const noexcept { return static_cast<grapheme_kind>(bits & 0xF); }
  constexpr bool pictograph() const noexcept { return (bits & 0x10) != 0; }  ///< ExtPict
  constexpr bool consonant() const noexcept { return (bits & 0x20) != 0; }   ///< InCB=Consonant
  constexpr bool linker() const noexcept { return (bits & 0x40) != 0; }      ///< InCB=Linker
  constexpr bool linked() const noexcept { return (bits & 0x80) != 0; }      ///< Linker or Extend
};

inline constexpr std::uint32_t grapheme_block_size = 128;
inline constexpr std::uint32_t grapheme_limit = 7200 * grapheme_block_size;
extern const std::uint8_t grapheme_block_of[];
extern const std::uint8_t grapheme_blocks[];

/// The class of a code point, or `other` if `point` is not a code point.
inline grapheme_class grapheme_class_of(std::uint32_t point) noexcept {
  if (point >= grapheme_limit) return {};
  const std::uint32_t block = grapheme_block_of[point / grapheme_block_size];
  return {grapheme_blocks[block * grapheme_block_size + point % grapheme_block_size]};
}

/// Finds where clusters begin, given the characters of a text in order.
class grapheme_boundaries {
 public:
  /// Takes the next character, whose class is `next`. Returns true if a cluster begins before it,
  /// which is always so for the first character.
  bool begins(grapheme_class next) noexcept;

 private:
  // State of a sequence that may have more than two characters.
  enum class sequence : std::uint8_t {
    none,
    pictograph,  // a pictograph, then any marks
    joined,      // the same, then a ZWJ: another pictograph continues the sequence
    half_flag,   // a regional indicator without its second half
  };
  enum class conjunct : std::uint8_t {
    none,
    open,    // a consonant, then any marks
    linked,  // the same, with a linker among the marks: another consonant continues it
  };

  bool joins(grapheme_class next) const noexcept;
  void go_on(grapheme_class next, bool joined) noexcept;

  grapheme_class last_{static_cast<std::uint8_t>(grapheme_kind::control)};
  sequence sequence_ = sequence::none;
  conjunct conjunct_ = conjunct::none;
};

}  // namespace millrace::tokenizer::detail
