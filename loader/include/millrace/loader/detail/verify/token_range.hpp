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

/// Checks that tokens are ids of a vocabulary. An invalid id would make a device read outside its
/// embedding table, and the run would die without naming the file.

/// Returns the index of the first token outside 0 .. vocab_size - 1, or the number of tokens if
/// there is none. Uses vector instructions to find the maximum of 4096 tokens at a time, in the
/// type on disk.
///
/// @param tokens  bytes as in the file; whole tokens, at any alignment
/// @pre vocab_size > 0; an integer type
MILLRACE_EXPORT std::size_t find_outside(std::span<const std::byte> tokens, formats::dtype type,
                                         std::int64_t vocab_size) noexcept;

/// The token with index `place`.
/// @pre there is such a token; an integer type
MILLRACE_EXPORT std::int64_t token_at(std::span<const std::byte> tokens, formats::dtype type,
                                      std::size_t place) noexcept;

}  // namespace millrace::loader
