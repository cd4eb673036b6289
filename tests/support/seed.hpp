// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>

namespace millrace::test {

/// Returns the seed of a property test: `MILLRACE_SEED` if that variable is set, otherwise `usual`.
/// Prints the seed, so that a failure can be reproduced.
inline std::uint64_t seed(std::uint64_t usual) {
  const char* given = std::getenv("MILLRACE_SEED");
  const std::uint64_t value = given != nullptr ? std::strtoull(given, nullptr, 0) : usual;
  std::cout << "MILLRACE_SEED=" << value << '\n';
  return value;
}

}  // namespace millrace::test
