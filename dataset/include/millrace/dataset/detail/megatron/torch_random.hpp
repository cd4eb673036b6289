// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>

#include <millrace/dataset/detail/megatron/mersenne_twister.hpp>

namespace millrace::dataset {

/// From this length on, torch.randperm draws 64 bits per number and uses the inside-out shuffle.
inline constexpr std::size_t torch_randperm_wide = std::numeric_limits<std::uint32_t>::max() / 20;

/// Produces the same permutation of 0 .. n - 1, with n = out.size(), as
/// torch.randperm(n, generator=torch.Generator().manual_seed(seed)) on a CPU. torch uses the lower
/// 32 bits of the seed.
///
/// @param wide_from  `torch_randperm_wide`, except in tests
/// @pre T can represent n - 1
template <class T>
void torch_randperm(std::uint64_t seed, std::span<T> out,
                    std::size_t wide_from = torch_randperm_wide) noexcept;

// ---------------------------------------------------------------------------------------------

template <class T>
void torch_randperm(std::uint64_t seed, std::span<T> out, std::size_t wide_from) noexcept {
  mersenne_twister twister(static_cast<std::uint32_t>(seed));
  const std::size_t n = out.size();
  const bool wide = n >= wide_from;
  if (!wide) {
    for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<T>(i);
  }
  // The indices to swap do not depend on the elements, so they are drawn and prefetched in advance.
  std::array<std::size_t, 64> places;
  // Without `wide`, the last element needs no swap.
  const std::size_t last = wide ? n : std::max<std::size_t>(n, 1) - 1;
  for (std::size_t begin = 0; begin < last; begin += places.size()) {
    const std::size_t count = std::min(places.size(), last - begin);
    for (std::size_t k = 0; k < count; ++k) {
      const std::size_t i = begin + k;
      const auto left = static_cast<std::uint32_t>(n - i);
      assert(wide || left > 0);
      places[k] = wide ? twister.next64() % (i + 1) : i + twister() % left;
      __builtin_prefetch(&out[places[k]], 1);
    }
    for (std::size_t k = 0; k < count; ++k) {
      const std::size_t i = begin + k;
      if (wide) {
        out[i] = out[places[k]];  // if places[k] is i, the next line overwrites the unset value
        out[places[k]] = static_cast<T>(i);
      } else {
        std::swap(out[i], out[places[k]]);
      }
    }
  }
}

}  // namespace millrace::dataset
