// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "support/paths.hpp"

namespace millrace::test {

/// A file of 102 bytes that Megatron wrote: lengths 3 2 3, pointers 0 6 10, document index 0 1 1 3,
/// type uint16. Its .bin has 16 bytes.
inline auto golden_idx() {
  return read_bytes(golden("megatron/idx_uint16_3docs.idx"));
}

/// Byte offsets of the arrays in the file.
inline constexpr std::size_t lengths_at = 34;
inline constexpr std::size_t pointers_at = lengths_at + 3 * sizeof(std::int32_t);
inline constexpr std::size_t document_index_at = pointers_at + 3 * sizeof(std::int64_t);

}  // namespace millrace::test
