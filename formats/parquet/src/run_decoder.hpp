// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace millrace::parquet::detail {

/// Loads eight bytes. Buffers may be read `padding_bytes` past their ends.
inline std::uint64_t load_word(const char* at) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

/// Decodes the encoding RLE: runs of equal numbers, and of numbers of a fixed number of bits.
///
/// The bytes must stay valid, and be followed by `padding_bytes`.
class run_decoder {
 public:
  run_decoder() = default;
  /// @param width  bits of a number, at most 32
  run_decoder(std::span<const char> bytes, unsigned width) noexcept
      : at_(bytes.data()), end_(bytes.data() + bytes.size()), width_(width) {}

  /// Reads `count` numbers. @return false if the bytes end before, or are no runs
  template <class T>
  bool read(T* out, std::size_t count) {
    while (count != 0) {
      if (left_ == 0 && !next_run()) return false;
      const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(count, left_));
      if (packed_ == nullptr) {
        std::fill_n(out, n, static_cast<T>(value_));
      } else {
        unpack(out, n);
      }
      out += n;
      count -= n;
      left_ -= n;
    }
    return true;
  }

 private:
  template <class T>
  void unpack(T* out, std::size_t count) noexcept {
    const std::uint64_t mask = (std::uint64_t{1} << width_) - 1;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t bit = first_bit_ + i * width_;
      out[i] = static_cast<T>(load_word(packed_ + bit / 8) >> (bit % 8) & mask);
    }
    first_bit_ += count * width_;
  }

  bool next_run() noexcept {
    std::uint64_t head = 0;
    for (unsigned shift = 0;; shift += 7) {
      if (at_ == end_ || shift > 28) return false;
      const auto byte = static_cast<unsigned char>(*at_++);
      head |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) break;
    }
    const auto bytes_left = static_cast<std::uint64_t>(end_ - at_);
    if ((head & 1) != 0) {
      // Groups of eight numbers. The last group may be cut off after what is needed.
      const std::uint64_t bytes = std::min<std::uint64_t>((head >> 1) * width_, bytes_left);
      packed_ = at_;
      first_bit_ = 0;
      left_ = width_ == 0 ? (head >> 1) * 8 : bytes * 8 / width_;
      at_ += bytes;
      return left_ != 0;
    }
    const unsigned bytes = (width_ + 7) / 8;
    if (bytes > bytes_left) return false;
    packed_ = nullptr;
    value_ = 0;
    std::memcpy(&value_, at_, bytes);
    at_ += bytes;
    left_ = head >> 1;
    return left_ != 0;
  }

  const char* at_ = nullptr;
  const char* end_ = nullptr;
  unsigned width_ = 0;
  std::uint64_t left_ = 0;  // numbers of the current run
  const char* packed_ = nullptr;
  std::uint64_t first_bit_ = 0;
  std::uint32_t value_ = 0;
};

}  // namespace millrace::parquet::detail
