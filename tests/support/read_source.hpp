// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "input/byte_source.hpp"

namespace millrace::test {

/// Returns the next `size` bytes of a source, or fewer if the source ends earlier. Reads at most
/// `step` bytes at a time.
inline std::string read_source(preprocess::byte_source& source, std::uint64_t size = UINT64_MAX,
                               std::size_t step = 100'000) {
  std::string all;
  std::string part(step, '?');
  while (all.size() < size) {
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(step, size - all.size()));
    const std::size_t n = source.read(std::as_writable_bytes(std::span(part.data(), wanted)));
    if (n == 0) break;
    all.append(part, 0, n);
  }
  return all;
}

}  // namespace millrace::test
