// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

/// Where all randomness of the instant order comes from: formats/spec/instant_order.md, section 2.
/// A number altered here alters every order; the golden vectors of the tests would tell.
namespace millrace::dataset {

/// The finalizer of splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators,
/// OOPSLA 2014, in the variant of Vigna's splitmix64.c): a bijection of 64 bits.
constexpr std::uint64_t mix64(std::uint64_t z) noexcept {
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

/// A hash that takes one number more.
constexpr std::uint64_t absorb(std::uint64_t hash, std::uint64_t number) noexcept {
  return mix64((hash ^ number) + 0x9e3779b97f4a7c15);
}

/// Number `i` of the random numbers that belong to a hash, from 0.
constexpr std::uint64_t draw(std::uint64_t hash, std::uint64_t i) noexcept {
  return mix64(hash + (i + 1) * 0x9e3779b97f4a7c15);
}

/// A name as a number: FNV-1a of its bytes, 64 bits. Orders go by the name of a source, not by its
/// place in a list, so that no other source can disturb them.
constexpr std::uint64_t name_hash(std::string_view name) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return hash;
}

/// What is shuffled: each has keys of its own under the same seed and name.
enum class shuffle_of : std::uint64_t {
  windows = 0x73776f646e6977,      ///< the bytes of "windows", little-endian
  bins = 0x736e6962,               ///< those of "bins"
  documents = 0x746e656d75636f64,  ///< those of "document"
};

/// The hash of everything that an order of `what` depends on but the epoch.
constexpr std::uint64_t order_hash(shuffle_of what, std::uint64_t seed,
                                   std::uint64_t name) noexcept {
  return absorb(absorb(mix64(static_cast<std::uint64_t>(what)), seed), name);
}

inline constexpr std::size_t feistel_rounds = 6;

/// The keys of one permutation.
using feistel_keys = std::array<std::uint64_t, feistel_rounds>;

/// Draws 0 to 5 of `hash`. They do not depend on each other, so a processor makes them at once.
constexpr feistel_keys keys_of(std::uint64_t hash) noexcept {
  feistel_keys keys{};
  for (std::size_t i = 0; i < feistel_rounds; ++i) keys[i] = draw(hash, i);
  return keys;
}

/// Draw 6 of `hash` as a number from 0 to `limit` - 1, each as likely as another but for one in
/// 2^64 / limit.
///
/// @pre 1 <= limit
constexpr std::uint64_t draw_below(std::uint64_t hash, std::uint64_t limit) noexcept {
  __extension__ using wide = unsigned __int128;
  return static_cast<std::uint64_t>(wide{draw(hash, feistel_rounds)} * limit >> 64);
}

}  // namespace millrace::dataset
