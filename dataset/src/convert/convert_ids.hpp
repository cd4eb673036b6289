// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace millrace::dataset::detail {

/// Converts tokens, which must be ids: 0 to the largest number that both types hold.
/// @return true if all of them are
template <class From, class To>
bool convert_ids(const From* __restrict from, To* __restrict to, std::size_t count) noexcept {
  using unsigned_from = std::make_unsigned_t<From>;
  // All limits are powers of two less 1, so that the bits of all tokens tell whether one exceeds
  // it.
  constexpr auto limit = static_cast<std::uint64_t>(
      std::min<std::uint64_t>(std::numeric_limits<To>::max(), std::numeric_limits<From>::max()));
  unsigned_from bits = 0;
  for (std::size_t i = 0; i < count; ++i) {
    bits = static_cast<unsigned_from>(bits | static_cast<unsigned_from>(from[i]));
    to[i] = static_cast<To>(from[i]);
  }
  return bits <= limit;
}

/// The first token that `convert_ids` cannot convert. @pre there is one
template <class To, class From>
const From* first_bad_id(const From* from, std::size_t count) noexcept {
  return std::find_if(from, from + count, [](From value) {
    return value < 0 || static_cast<std::uint64_t>(value) >
                            static_cast<std::uint64_t>(std::numeric_limits<To>::max());
  });
}

}  // namespace millrace::dataset::detail
