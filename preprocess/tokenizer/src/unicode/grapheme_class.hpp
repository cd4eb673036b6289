// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Where one character as its reader sees it ends and the next begins: extended grapheme clusters
/// (UAX #29), in the Unicode version that Hugging Face's tokenizers know them in. The tables are
/// made by scripts/grapheme_tables, which puts the questions to the package itself.
namespace millrace::tokenizer::detail {

/// Grapheme_Cluster_Break of a code point.
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

/// A code point's kind, and what else the rules ask of it.
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

/// Any value is allowed: what is no code point is `other`.
inline grapheme_class grapheme_class_of(std::uint32_t point) noexcept {
  if (point >= grapheme_limit) return {};
  const std::uint32_t block = grapheme_block_of[point / grapheme_block_size];
  return {grapheme_blocks[block * grapheme_block_size + point % grapheme_block_size]};
}

/// Goes through a text character by character and says where clusters begin.
class grapheme_boundaries {
 public:
  /// Whether a cluster begins before the next character, which is of class `next`; before the
  /// first one does.
  bool begins(grapheme_class next) noexcept;

 private:
  // What a sequence of more than two characters still waits for.
  enum class sequence : std::uint8_t {
    none,
    pictograph,  // a pictograph and marks
    joined,      // and a ZWJ: another pictograph goes on with it
    half_flag,   // a regional indicator without its other half
  };
  enum class conjunct : std::uint8_t {
    none,
    open,    // a consonant and marks
    linked,  // a linker among them: another consonant goes on with it
  };

  bool joins(grapheme_class next) const noexcept;
  void go_on(grapheme_class next, bool joined) noexcept;

  grapheme_class last_{static_cast<std::uint8_t>(grapheme_kind::control)};
  sequence sequence_ = sequence::none;
  conjunct conjunct_ = conjunct::none;
};

}  // namespace millrace::tokenizer::detail
