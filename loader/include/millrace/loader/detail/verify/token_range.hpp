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

/// Checks that tokens are ids of a vocabulary. With an invalid id, a device would read outside its
/// embedding table, and the run would end without an error that names the file.

/// Returns the index of the first token outside 0 to vocab_size - 1. If all tokens are valid,
/// returns the number of tokens. Uses vector instructions to find the maximum of 4096 tokens at a
/// time, in the file's token type.
///
/// @param tokens  the bytes of whole tokens, as in the file; any alignment
/// @pre vocab_size > 0, and `type` is an integer type
MILLRACE_EXPORT std::size_t find_outside(std::span<const std::byte> tokens, formats::dtype type,
                                         std::int64_t vocab_size) noexcept;

/// Returns the token with index `place`.
/// @pre the token exists, and `type` is an integer type
MILLRACE_EXPORT std::int64_t token_at(std::span<const std::byte> tokens, formats::dtype type,
                                      std::size_t place) noexcept;

}  // namespace millrace::loader
