// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

/// Computes all random numbers of the instant order (formats/spec/instant_order.md, section 2).
/// If a constant here changes, every order changes, and the tests' golden vectors fail.
namespace millrace::dataset {

/// The finalizer of splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators,
/// OOPSLA 2014, in the variant of Vigna's splitmix64.c): a bijection of 64 bits.
constexpr std::uint64_t mix64(std::uint64_t z) noexcept {
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

/// Mixes one more number into a hash.
constexpr std::uint64_t absorb(std::uint64_t hash, std::uint64_t number) noexcept {
  return mix64((hash ^ number) + 0x9e3779b97f4a7c15);
}

/// Random number `i`, counted from 0, of the random sequence that `hash` seeds.
constexpr std::uint64_t draw(std::uint64_t hash, std::uint64_t i) noexcept {
  return mix64(hash + (i + 1) * 0x9e3779b97f4a7c15);
}

/// 64-bit FNV-1a hash of a name. The order of a source depends on its name, not on its place in a
/// list. So adding or removing other sources does not change that order.
constexpr std::uint64_t name_hash(std::string_view name) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return hash;
}

/// The kinds of things that are shuffled. Each kind has its own keys, even for the same seed and
/// name.
enum class shuffle_of : std::uint64_t {
  windows = 0x73776f646e6977,      ///< the bytes of "windows", little-endian
  bins = 0x736e6962,               ///< the bytes of "bins"
  documents = 0x746e656d75636f64,  ///< the bytes of "document"
};

/// Hash of everything that determines an order of `what`, except the epoch.
constexpr std::uint64_t order_hash(shuffle_of what, std::uint64_t seed,
                                   std::uint64_t name) noexcept {
  return absorb(absorb(mix64(static_cast<std::uint64_t>(what)), seed), name);
}

inline constexpr std::size_t feistel_rounds = 6;

/// The keys of one permutation.
using feistel_keys = std::array<std::uint64_t, feistel_rounds>;

/// Random numbers 0 to 5 of `hash` (see `draw`). They do not depend on each other, so a processor
/// can compute them in parallel.
constexpr feistel_keys keys_of(std::uint64_t hash) noexcept {
  feistel_keys keys{};
  for (std::size_t i = 0; i < feistel_rounds; ++i) keys[i] = draw(hash, i);
  return keys;
}

/// Random number 6 of `hash` (see `draw`), scaled to 0 .. `limit` - 1. All results are equally
/// likely, except for a relative error below limit / 2^64.
///
/// @pre 1 <= limit
constexpr std::uint64_t draw_below(std::uint64_t hash, std::uint64_t limit) noexcept {
  __extension__ using wide = unsigned __int128;
  return static_cast<std::uint64_t>(wide{draw(hash, feistel_rounds)} * limit >> 64);
}

}  // namespace millrace::dataset
