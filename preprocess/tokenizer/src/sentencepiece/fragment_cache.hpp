// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>
#include <type_traits>
#include <utility>

namespace millrace::tokenizer::detail {

/// Remembers what short texts came to, for one encoder; a fixed number of places.
///
/// Two places to a bucket. A newcomer takes the second; if it is asked for again, it changes places
/// with the first, so that what comes only once never drives out what comes often. It holds only
/// what an engine has computed, so nothing but speed depends on its contents.
///
/// @tparam Words  the longest text has 8 * Words - 1 bytes
/// @tparam Value  trivially copyable
template <std::size_t Words, class Value>
class fragment_cache {
 public:
  static constexpr std::size_t max_bytes = 8 * Words - 1;

  /// A text, zeros behind it, and its length in the last byte; all zero is none.
  using key = std::array<std::uint64_t, Words>;

  struct entry {
    key text{};
    Value value{};
  };

  /// @param buckets  a power of two
  explicit fragment_cache(std::size_t buckets)
      : shift_(64 - static_cast<unsigned>(std::countr_zero(std::max<std::size_t>(buckets, 2)))),
        buckets_(allocate(std::max<std::size_t>(buckets, 2))) {}

  /// @param readable  bytes that may be read at `text`, at least `size`; 8 * Words make it fast
  /// @pre 1 <= size <= max_bytes
  static key make_key(const char* text, std::size_t size, std::size_t readable) noexcept {
    key k{};
    if (readable >= sizeof k) {
      std::memcpy(k.data(), text, sizeof k);
      for (std::size_t i = 0; i < Words; ++i) {
        const std::size_t kept = size <= 8 * i ? 0 : std::min<std::size_t>(size - 8 * i, 8);
        k[i] &= kept == 8 ? ~std::uint64_t{0} : ~(~std::uint64_t{0} << 8 * kept);
      }
    } else {
      std::memcpy(k.data(), text, size);
    }
    k[Words - 1] |= std::uint64_t{size} << 56;
    return k;
  }

  /// The bucket of a text.
  std::size_t home(const key& text) const noexcept {
    std::uint64_t mixed = text[0];
    for (std::size_t i = 1; i < Words; ++i) {
      mixed = (mixed ^ mixed >> 32) * 0x9FB21C651E98DF25U ^ text[i];
    }
    return (mixed ^ mixed >> 32) * 0x9E3779B97F4A7C15U >> shift_;
  }

  void prefetch(std::size_t home) const noexcept { __builtin_prefetch(&buckets_[home]); }

  /// What is known of a text, or null. Valid until the next call.
  /// @pre home is the text's
  const Value* find(std::size_t home, const key& text) noexcept {
    bucket& b = buckets_[home];
    if (same(b[0].text, text)) return &b[0].value;
    if (!same(b[1].text, text)) return nullptr;
    std::swap(b[0], b[1]);
    return &b[0].value;
  }

  /// @pre home is the text's
  void put(std::size_t home, const key& text, const Value& value) noexcept {
    buckets_[home][1] = {text, value};
  }

 private:
  using bucket = std::array<entry, 2>;

  // std::array's own operator calls memcmp, which costs more than all the rest.
  static bool same(const key& a, const key& b) noexcept {
    std::uint64_t different = 0;
    for (std::size_t i = 0; i < Words; ++i) different |= a[i] ^ b[i];
    return different == 0;
  }

  struct release {
    void operator()(bucket* buckets) const noexcept { std::free(buckets); }
  };

  // Zeros, in large pages where there are some: a look-up goes anywhere, and would otherwise wait
  // for the address of its page as well.
  static std::unique_ptr<bucket[], release> allocate(std::size_t count) {
    static_assert(std::is_trivially_copyable_v<entry>);
    constexpr std::size_t page = std::size_t{1} << 21;
    const std::size_t bytes = count * sizeof(bucket);
    const std::size_t alignment = bytes >= page ? page : std::size_t{64};
    const std::size_t whole = (bytes + alignment - 1) / alignment * alignment;
    void* memory = std::aligned_alloc(alignment, whole);
    if (memory == nullptr) throw std::bad_alloc();
    if (bytes >= page) (void)::madvise(memory, whole, MADV_HUGEPAGE);
    std::memset(memory, 0, whole);
    return std::unique_ptr<bucket[], release>(static_cast<bucket*>(memory));
  }

  unsigned shift_;
  std::unique_ptr<bucket[], release> buckets_;
};

}  // namespace millrace::tokenizer::detail
