// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

/// The data of normalization.hpp, as of the Unicode version (9.0) of the library that Hugging
/// Face's tokenizers use. Made by scripts/normalization_tables. Hangul syllables are not in it:
/// they follow a formula.
namespace millrace::tokenizer::detail {

struct decomposition {
  std::uint32_t point;
  std::uint32_t begin;  ///< in decomposed_points
  std::uint32_t count;
};
/// Full decompositions by code point; the second list has those that differ from the first.
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
/// By first, then second.
extern const composition compositions[];
extern const std::size_t compositions_size;

/// first code point << 8 | combining class
extern const std::uint32_t combining_class_runs[];
extern const std::size_t combining_class_runs_size;

/// Bit f of a flag: form f leaves the character as it is, and it begins a stretch of text that is
/// normalized by itself. Bit 4 + f: the first holds as long as marks are in the order of their
/// classes. In blocks of 128 code points.
extern const std::uint8_t stable_block_of[];
extern const std::size_t stable_block_of_size;
extern const std::uint8_t stable_blocks[];
extern const std::size_t stable_blocks_size;

}  // namespace millrace::tokenizer::detail
