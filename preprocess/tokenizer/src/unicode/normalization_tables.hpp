// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

/// The tables for normalization.hpp. They use Unicode 9.0, the version of the library in Hugging
/// Face's tokenizers. scripts/normalization_tables generates them. They omit Hangul syllables,
/// which follow a formula.
namespace millrace::tokenizer::detail {

struct decomposition {
  std::uint32_t point;
  std::uint32_t begin;  ///< index in decomposed_points
  std::uint32_t count;
};
/// Full decompositions, sorted by code point. `compatible_decompositions` has only the
/// decompositions that differ from the canonical ones.
extern const decomposition canonical_decompositions[];
extern const std::size_t canonical_decompositions_size;
extern const decomposition compatible_decompositions[];
extern const std::size_t compatible_decompositions_size;
extern const std::uint32_t decomposed_points[];
extern const std::size_t decomposed_points_size;

struct composition {
  std::uint32_t first;
  std::uint32_t second;
  std::uint32_t composed;
};
/// Sorted by `first`, then by `second`.
extern const composition compositions[];
extern const std::size_t compositions_size;

/// Each entry is: first code point of the run << 8 | combining class.
extern const std::uint32_t combining_class_runs[];
extern const std::size_t combining_class_runs_size;

/// Flags of characters, in blocks of 128 code points. Bit f is set if two conditions hold: form f
/// does not change the character, and text that begins with the character is normalized
/// independently of the text before it. Bit 4 + f is set if form f does not change the character as
/// long as all marks are in the order of their combining classes.
extern const std::uint8_t stable_block_of[];
extern const std::size_t stable_block_of_size;
extern const std::uint8_t stable_blocks[];
extern const std::size_t stable_blocks_size;

}  // namespace millrace::tokenizer::detail
