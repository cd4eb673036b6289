// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace millrace::parquet::detail {

struct place;

/// Decodes DELTA_BINARY_PACKED: differences of 64 bits, in blocks of miniblocks.
///
/// Keeps no numbers, because few bytes can stand for billions of them. The bytes must stay valid,
/// and be followed by `padding_bytes`.
class delta_decoder {
 public:
  /// @throws format_error
  delta_decoder(std::span<const char> bytes, const place& where);

  /// Reads `count` numbers, modulo 2^64. @throws format_error  there are fewer.
  void read(std::uint64_t* out, std::size_t count);
  std::uint64_t left() const noexcept { return left_; }

  /// Returns the bytes after the last number, without decoding the numbers.
  std::span<const char> rest() const;

 private:
  std::uint64_t varint();
  void next_block();
  void next_miniblock();

  const place* where_;
  const char* at_;
  const char* end_;
  std::uint64_t miniblocks_ = 0;  // per block
  std::uint64_t miniblock_values_ = 0;
  std::uint64_t left_ = 0;
  bool is_first_ = true;
  std::uint64_t last_ = 0;  // the next number, if it is the first
  std::uint64_t least_ = 0;
  const char* widths_ = nullptr;
  std::uint64_t next_miniblock_ = 0;  // of the block
  std::uint64_t miniblock_left_ = 0;
  const char* packed_ = nullptr;
  std::uint64_t first_bit_ = 0;
  unsigned width_ = 0;
};

}  // namespace millrace::parquet::detail
