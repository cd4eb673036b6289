// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/verify/token_range.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>

#include <millrace/formats/dtype.hpp>

namespace millrace::loader {

namespace detail {

/// Uses memcpy because tokens may be unaligned. The memcpy costs nothing.
template <class Id>
Id load_id(const std::byte* at) noexcept {
  Id id;
  std::memcpy(&id, at, sizeof(Id));
  return id;
}

/// Returns the largest id, as an unsigned number. Negative ids then are larger than all others, so
/// one comparison finds both negative ids and ids that are too large.
template <class Id>
[[gnu::always_inline]] inline Id largest_of(const std::byte* tokens, std::size_t count) noexcept {
  // Uses steps of a fixed length, which compilers vectorize even at lower optimization levels.
  constexpr std::size_t step = 128;
  Id largest = 0;
  std::size_t i = 0;
  for (; i + step <= count; i += step) {
    for (std::size_t k = 0; k < step; ++k) {
      largest = std::max(largest, load_id<Id>(tokens + (i + k) * sizeof(Id)));
    }
  }
  for (; i < count; ++i) largest = std::max(largest, load_id<Id>(tokens + i * sizeof(Id)));
  return largest;
}

#if defined(__x86_64__)
/// Uses AVX2, because baseline x86-64 has no vector maximum of unsigned 16-bit or 32-bit integers.
template <class Id>
[[gnu::target("avx2")]] inline Id largest_of_avx2(const std::byte* tokens,
                                                  std::size_t count) noexcept {
  return largest_of<Id>(tokens, count);
}
#endif

template <class Id>
Id largest_id(const std::byte* tokens, std::size_t count) noexcept {
#if defined(__x86_64__)
  static const bool wide = __builtin_cpu_supports("avx2") != 0;
  if (wide) return largest_of_avx2<Id>(tokens, count);
#endif
  return largest_of<Id>(tokens, count);
}

template <class Id>
std::size_t find_outside(std::span<const std::byte> bytes, std::int64_t vocab_size) noexcept {
  const std::size_t count = bytes.size() / sizeof(Id);
  const auto limit = static_cast<std::uint64_t>(vocab_size);
  // `Id` is unsigned: a negative id of the file's type appears as an id above the limit.
  constexpr std::size_t block = 4096;
  for (std::size_t first = 0; first < count; first += block) {
    const std::size_t some = std::min(block, count - first);
    const std::byte* at = bytes.data() + first * sizeof(Id);
    if (largest_id<Id>(at, some) < limit) continue;
    for (std::size_t i = 0;; ++i) {
      if (load_id<Id>(at + i * sizeof(Id)) >= limit) return first + i;
    }
  }
  return count;
}

}  // namespace detail

MILLRACE_INLINE std::size_t find_outside(std::span<const std::byte> tokens, formats::dtype type,
                                         std::int64_t vocab_size) noexcept {
  return formats::with_type(type, [&]<class T>(T) -> std::size_t {
    if constexpr (std::is_floating_point_v<T>) {
      return tokens.size() / sizeof(T);
    } else {
      // If the vocabulary is larger than the signed type's range, negative ids are still invalid.
      constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<T>::max()) + 1;
      const auto limit = std::min(static_cast<std::uint64_t>(vocab_size), most);
      return detail::find_outside<std::make_unsigned_t<T>>(tokens,
                                                           static_cast<std::int64_t>(limit));
    }
  });
}

MILLRACE_INLINE std::int64_t token_at(std::span<const std::byte> tokens, formats::dtype type,
                                      std::size_t place) noexcept {
  return formats::with_type(type, [&]<class T>(T) -> std::int64_t {
    if constexpr (std::is_floating_point_v<T>) {
      return 0;
    } else {
      return detail::load_id<T>(tokens.data() + place * sizeof(T));
    }
  });
}

}  // namespace millrace::loader
