// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdint>

#include <millrace/dataset/detail/instant/order_keys.hpp>

namespace millrace::dataset {

/// A keyed permutation of 0 .. n-1 that is computed, not stored. Looking up an entry takes constant
/// time, and so does its inverse. The object has 80 bytes.
///
/// A Feistel network of six rounds permutes 0 .. 2^b - 1, where 2^b is the smallest power of two
/// that is at least n (Luby, Rackoff: How to construct pseudorandom permutations, SIAM J. Comput.
/// 17, 1988). If b is odd, the lengths of the two halves differ by one bit. A result of n or more
/// goes through the network again until it is below n ("cycle walking", Black, Rogaway: Ciphers
/// with arbitrary finite domains, CT-RSA 2002). On average, this takes less than one extra pass.
///
/// The exponent b is at least 8, because networks with smaller halves shuffle badly. So for n below
/// 128, a lookup takes 256 / n passes on average.
///
/// This is a shuffle, not encryption. Exact numbers: formats/spec/instant_order.md, section 3. A
/// value type: it may be copied freely and used by any thread.
class feistel {
 public:
  static constexpr int least_bits = 8;
  static constexpr std::int64_t largest = std::int64_t{1} << 62;

  /// @pre 1 <= n <= largest
  constexpr feistel(std::int64_t n, const feistel_keys& keys) noexcept
      : keys_(keys), n_(static_cast<std::uint64_t>(n)) {
    assert(1 <= n && n <= largest);
    const int bits = std::max(static_cast<int>(std::bit_width(n_ - 1)), least_bits);
    high_bits_ = bits / 2;
    low_bits_ = bits - high_bits_;
  }

  constexpr std::int64_t size() const noexcept { return static_cast<std::int64_t>(n_); }

  /// The image of `i`.
  /// @pre 0 <= i < size()
  constexpr std::int64_t operator()(std::int64_t i) const noexcept {
    assert(0 <= i && i < size());
    auto x = static_cast<std::uint64_t>(i);
    do {
      x = forward(x);
    } while (x >= n_);
    return static_cast<std::int64_t>(x);
  }

  /// The preimage of `i`.
  /// @pre 0 <= i < size()
  constexpr std::int64_t inverse(std::int64_t i) const noexcept {
    assert(0 <= i && i < size());
    auto x = static_cast<std::uint64_t>(i);
    do {
      x = backward(x);
    } while (x >= n_);
    return static_cast<std::int64_t>(x);
  }

 private:
  /// The round function. Returns the highest `bits` bits of a product, because every bit of `half`
  /// and `key` affects them.
  static constexpr std::uint64_t round(std::uint64_t key, std::uint64_t half, int bits) noexcept {
    const std::uint64_t y = (half ^ key) * 0xbf58476d1ce4e5b9;
    return (y ^ y >> 32) * 0x94d049bb133111eb >> (64 - bits);
  }

  constexpr std::uint64_t forward(std::uint64_t x) const noexcept {
    std::uint64_t high = x >> low_bits_;
    std::uint64_t low = x & ((std::uint64_t{1} << low_bits_) - 1);
    for (std::size_t i = 0; i < feistel_rounds; i += 2) {
      high ^= round(keys_[i], low, high_bits_);
      low ^= round(keys_[i + 1], high, low_bits_);
    }
    return high << low_bits_ | low;
  }

  constexpr std::uint64_t backward(std::uint64_t x) const noexcept {
    std::uint64_t high = x >> low_bits_;
    std::uint64_t low = x & ((std::uint64_t{1} << low_bits_) - 1);
    for (std::size_t i = feistel_rounds; i != 0; i -= 2) {
      low ^= round(keys_[i - 1], high, low_bits_);
      high ^= round(keys_[i - 2], low, high_bits_);
    }
    return high << low_bits_ | low;
  }

  feistel_keys keys_;
  std::uint64_t n_;
  int high_bits_ = 0;
  int low_bits_ = 0;
};

}  // namespace millrace::dataset
