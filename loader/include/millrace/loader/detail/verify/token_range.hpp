// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>

#include <millrace/detail/export.hpp>
#include <millrace/formats/dtype.hpp>

namespace millrace::loader {

/// Whether tokens are ids of a vocabulary. One that is none makes a device read outside its
/// embedding, which ends a run without a word of the file that it came from.

/// The first token outside 0 .. vocab_size - 1, or the number of tokens. Runs at the pace of
/// vectors: the largest of some thousand at a time, in the type on disk.
///
/// @param tokens  as they lie in the file: whole ones, at any address
/// @pre vocab_size > 0; the type is one of integers
MILLRACE_EXPORT std::size_t find_outside(std::span<const std::byte> tokens, formats::dtype type,
                                         std::int64_t vocab_size) noexcept;

/// The token at `place`.
/// @pre it is there; the type is one of integers
MILLRACE_EXPORT std::int64_t token_at(std::span<const std::byte> tokens, formats::dtype type,
                                      std::size_t place) noexcept;

}  // namespace millrace::loader
