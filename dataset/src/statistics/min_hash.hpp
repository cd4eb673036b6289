// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "../search/id_scan.hpp"

/// The least values of many hash functions over a set of numbers.
namespace millrace::dataset::detail {

/// Hash functions of a number x: factor * x + term, modulo 2^32.
struct min_hash_functions {
  std::span<const std::uint32_t> factors;  ///< odd; as many as a multiple of 32
  std::span<const std::uint32_t> terms;
};

/// Lowers each least[i] to the least value of function i over `numbers`.
using min_hash = void (*)(std::span<const std::uint32_t> numbers, const min_hash_functions& hashes,
                          std::uint32_t* least);

/// The same code for all instruction sets: the compiler splits the vectors.
[[gnu::always_inline]] inline void min_hash_loop(std::span<const std::uint32_t> numbers,
                                                 const min_hash_functions& hashes,
                                                 std::uint32_t* least) {
  using lanes [[gnu::vector_size(64)]] = std::uint32_t;
  constexpr std::size_t count = 16;
  for (std::size_t i = 0; i + 2 * count <= hashes.factors.size(); i += 2 * count) {
    lanes factor[2];
    lanes term[2];
    lanes low[2];
    std::memcpy(factor, &hashes.factors[i], sizeof(factor));
    std::memcpy(term, &hashes.terms[i], sizeof(term));
    std::memcpy(low, least + i, sizeof(low));
    for (const std::uint32_t number : numbers) {
      const lanes a = factor[0] * number + term[0];
      const lanes b = factor[1] * number + term[1];
      low[0] = a < low[0] ? a : low[0];
      low[1] = b < low[1] ? b : low[1];
    }
    std::memcpy(least + i, low, sizeof(low));
  }
}

inline void min_hash_portable(std::span<const std::uint32_t> numbers,
                              const min_hash_functions& hashes, std::uint32_t* least) {
  min_hash_loop(numbers, hashes, least);
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] inline void min_hash_avx2(std::span<const std::uint32_t> numbers,
                                                  const min_hash_functions& hashes,
                                                  std::uint32_t* least) {
  min_hash_loop(numbers, hashes, least);
}
[[gnu::target("avx512f,avx512bw")]] inline void min_hash_avx512(
    std::span<const std::uint32_t> numbers, const min_hash_functions& hashes,
    std::uint32_t* least) {
  min_hash_loop(numbers, hashes, least);
}
#endif

inline min_hash min_hash_with(scan_set set) noexcept {
#if defined(__x86_64__)
  if (set == scan_set::avx512) return min_hash_avx512;
  if (set == scan_set::avx2) return min_hash_avx2;
#endif
  static_cast<void>(set);
  return min_hash_portable;
}

}  // namespace millrace::dataset::detail
