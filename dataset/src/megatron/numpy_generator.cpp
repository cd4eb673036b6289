// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/megatron/numpy_generator.hpp>

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>

namespace millrace::dataset {

namespace detail {

/// SeedSequence(seed).generate_state(8) of numpy, after O'Neill's seed_seq_fe.
MILLRACE_INLINE std::array<std::uint32_t, 8> numpy_seed_words(std::uint32_t seed) noexcept {
  std::uint32_t constant = 0x43B0D7E5;
  const auto hash = [&](std::uint32_t value, std::uint32_t factor) {
    value ^= constant;
    constant *= factor;
    value *= constant;
    return value ^ value >> 16;
  };
  std::array<std::uint32_t, 4> pool{};
  for (std::size_t i = 0; i < pool.size(); ++i) pool[i] = hash(i == 0 ? seed : 0, 0x931E8875);
  for (std::size_t from = 0; from < pool.size(); ++from) {
    for (std::size_t to = 0; to < pool.size(); ++to) {
      if (from == to) continue;
      const std::uint32_t mixed =
          0xCA01F9DDU * pool[to] - 0x4973F715U * hash(pool[from], 0x931E8875);
      pool[to] = mixed ^ mixed >> 16;
    }
  }
  constant = 0x8B51F9DD;
  std::array<std::uint32_t, 8> words{};
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = hash(pool[i % 4], 0x58F38DED);
  return words;
}

}  // namespace detail

MILLRACE_INLINE numpy_generator::numpy_generator(std::uint32_t seed) noexcept {
  const auto words = detail::numpy_seed_words(seed);
  const auto wide = [&](std::size_t i) {  // two words make 64 bits, the upper 64 first
    const auto pair = [&](std::size_t at) {
      return std::uint64_t{words[at + 1]} << 32 | words[at];
    };
    return uint128{pair(4 * i)} << 64 | pair(4 * i + 2);
  };
  increment_ = wide(1) << 1 | 1;
  (void)next64();
  state_ += wide(0);
  (void)next64();
}

MILLRACE_INLINE std::int32_t numpy_generator::integer(std::int32_t low,
                                                      std::int32_t high) noexcept {
  assert(low < high);
  const std::uint32_t count = static_cast<std::uint32_t>(high) - static_cast<std::uint32_t>(low);
  if (count == 1) return low;  // without a draw
  std::uint64_t product = std::uint64_t{next32()} * count;
  if (static_cast<std::uint32_t>(product) < count) {
    const std::uint32_t threshold = (0U - count) % count;
    while (static_cast<std::uint32_t>(product) < threshold) {
      product = std::uint64_t{next32()} * count;
    }
  }
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(low) +
                                   static_cast<std::uint32_t>(product >> 32));
}

}  // namespace millrace::dataset
