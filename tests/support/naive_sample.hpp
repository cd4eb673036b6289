// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

/// The rule of `--sample-rate`, written from formats/spec/meta.md, "Samples of records".
namespace millrace::test {

inline std::uint64_t sample_mix(std::uint64_t z) {
  z ^= z >> 30;
  z *= 0xbf58476d1ce4e5b9;
  z ^= z >> 27;
  z *= 0x94d049bb133111eb;
  z ^= z >> 31;
  return z;
}

/// The 64-bit number that belongs to a record. `what` names the decision that it is for.
inline std::uint64_t record_number(std::string_view what, std::uint64_t seed, std::string_view name,
                                   std::uint64_t byte) {
  constexpr std::uint64_t step = 0x9e3779b97f4a7c15;
  std::uint64_t of_name = 0xcbf29ce484222325;
  for (const char c : name) {
    of_name ^= static_cast<unsigned char>(c);
    of_name *= 0x100000001b3;
  }
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < what.size(); ++i) hash |= std::uint64_t(what[i]) << (8 * i);
  hash = sample_mix(hash);
  hash = sample_mix((hash ^ seed) + step);
  hash = sample_mix((hash ^ of_name) + step);
  return sample_mix(hash + step * (byte + 1));
}

/// The number of a record, from 0 to 2^53 - 1. A rate takes it if it is below rate * 2^53.
inline std::uint64_t sample_number(std::uint64_t seed, std::string_view name, std::uint64_t byte) {
  return record_number("records", seed, name, byte) >> 11;
}

}  // namespace millrace::test
