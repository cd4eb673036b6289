// SPDX-License-Identifier: Apache-2.0
#include "core/pair_filter.hpp"

#include <algorithm>
#include <bit>
#include <span>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__AARCH64EL__)
#include <arm_neon.h>
#endif

namespace millrace::tokenizer::detail {
namespace {

constexpr std::size_t groups = 8;

std::uint8_t byte_at(std::string_view text, std::size_t at) {
  return static_cast<std::uint8_t>(text[at]);
}

// Assigns words to groups in turn. All words with the same first two bytes get the same group. If
// there are more such pairs of bytes than groups, all words with the same first byte get the same
// group.
class grouping {
 public:
  explicit grouping(const std::vector<std::string_view>& words) {
    std::bitset<65536> pairs;
    for (const std::string_view word : words) pairs.set(key_of(word));
    by_pair_ = pairs.count() <= groups;
  }

  std::uint8_t group_of(std::string_view word) {
    std::uint8_t& known = by_pair_ ? of_key_[key_of(word)] : of_key_[byte_at(word, 0)];
    if (known == 0) known = static_cast<std::uint8_t>(1U << (next_++ % groups));
    return known;
  }

 private:
  // A word of one byte gets a zero as its second byte, because zeros are rare in words.
  static std::size_t key_of(std::string_view word) {
    return std::size_t{byte_at(word, 0)} << 8 | (word.size() > 1 ? byte_at(word, 1) : 0);
  }

  bool by_pair_ = true;
  std::vector<std::uint8_t> of_key_ = std::vector<std::uint8_t>(65536);
  std::size_t next_ = 0;
};

#if defined(__x86_64__)
__attribute__((target("avx2"))) inline __m128i half_table(const std::uint8_t* bytes) noexcept {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
}

// Tests 32 places per step. A place is a candidate if some group may have a word that begins with
// the two bytes at that place.
__attribute__((target("avx2"))) std::size_t skip_avx2(const std::uint8_t* low0,
                                                      const std::uint8_t* high0,
                                                      const std::uint8_t* low1,
                                                      const std::uint8_t* high1, const char* text,
                                                      std::size_t from, std::size_t size) noexcept {
  const __m256i first_low = _mm256_broadcastsi128_si256(half_table(low0));
  const __m256i first_high = _mm256_broadcastsi128_si256(half_table(high0));
  const __m256i second_low = _mm256_broadcastsi128_si256(half_table(low1));
  const __m256i second_high = _mm256_broadcastsi128_si256(half_table(high1));
  const __m256i half = _mm256_set1_epi8(0x0F);
  for (; from + 33 <= size; from += 32) {
    const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(text + from));
    const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(text + from + 1));
    const __m256i a_high = _mm256_and_si256(_mm256_srli_epi16(a, 4), half);
    const __m256i b_high = _mm256_and_si256(_mm256_srli_epi16(b, 4), half);
    const __m256i in_a = _mm256_and_si256(_mm256_shuffle_epi8(first_low, _mm256_and_si256(a, half)),
                                          _mm256_shuffle_epi8(first_high, a_high));
    const __m256i in_b =
        _mm256_and_si256(_mm256_shuffle_epi8(second_low, _mm256_and_si256(b, half)),
                         _mm256_shuffle_epi8(second_high, b_high));
    const __m256i both = _mm256_and_si256(in_a, in_b);
    const auto without = static_cast<std::uint32_t>(
        _mm256_movemask_epi8(_mm256_cmpeq_epi8(both, _mm256_setzero_si256())));
    if (without != 0xFFFFFFFF) {
      return from + static_cast<std::size_t>(std::countr_one(without));
    }
  }
  return from;
}

__attribute__((target("avx2"), always_inline)) inline __m256i is_pair(const char* text,
                                                                      __m256i first,
                                                                      __m256i second) noexcept {
  const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(text));
  const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(text + 1));
  return _mm256_and_si256(_mm256_cmpeq_epi8(a, first), _mm256_cmpeq_epi8(b, second));
}

// Like skip_avx2, but compares each place with each of a few pairs, and tests 64 places per step.
template <std::size_t Count>
__attribute__((target("avx2"))) std::size_t skip_listed_avx2(
    std::span<const std::array<char, 2>, Count> pairs, const char* text, std::size_t from,
    std::size_t size) noexcept {
  __m256i first[Count];
  __m256i second[Count];
  for (std::size_t k = 0; k < Count; ++k) {
    first[k] = _mm256_set1_epi8(pairs[k][0]);
    second[k] = _mm256_set1_epi8(pairs[k][1]);
  }
  for (; from + 65 <= size; from += 64) {
    __m256i low = is_pair(text + from, first[0], second[0]);
    __m256i high = is_pair(text + from + 32, first[0], second[0]);
    for (std::size_t k = 1; k < Count; ++k) {
      low = _mm256_or_si256(low, is_pair(text + from, first[k], second[k]));
      high = _mm256_or_si256(high, is_pair(text + from + 32, first[k], second[k]));
    }
    const __m256i any = _mm256_or_si256(low, high);
    if (_mm256_testz_si256(any, any) != 0) continue;
    const auto bits = static_cast<std::uint32_t>(_mm256_movemask_epi8(low)) |
                      std::uint64_t{static_cast<std::uint32_t>(_mm256_movemask_epi8(high))} << 32;
    return from + static_cast<std::size_t>(std::countr_zero(bits));
  }
  return from;
}

bool have_avx2() {
  static const bool have = __builtin_cpu_supports("avx2") != 0;
  return have;
}
#elif defined(__AARCH64EL__)
struct nibble_tables {
  uint8x16_t low;
  uint8x16_t high;

  uint8x16_t groups(uint8x16_t bytes) const noexcept {
    return vandq_u8(vqtbl1q_u8(low, vandq_u8(bytes, vdupq_n_u8(0x0F))),
                    vqtbl1q_u8(high, vshrq_n_u8(bytes, 4)));
  }
};

// Like skip_avx2.
std::size_t skip_neon(nibble_tables first, nibble_tables second, const char* text, std::size_t from,
                      std::size_t size) noexcept {
  const auto found_at = [&](std::size_t at) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(text + at);
    return vandq_u8(first.groups(vld1q_u8(bytes)), second.groups(vld1q_u8(bytes + 1)));
  };
  for (; from + 33 <= size; from += 32) {
    const uint8x16_t low = found_at(from);
    const uint8x16_t high = found_at(from + 16);
    if (vmaxvq_u8(vorrq_u8(low, high)) == 0) continue;
    // Of 16 bytes that are 0 or not, makes 16 times 4 bits.
    const auto bits = [](uint8x16_t found) {
      const uint8x8_t narrow = vshrn_n_u16(vreinterpretq_u16_u8(vtstq_u8(found, found)), 4);
      return vget_lane_u64(vreinterpret_u64_u8(narrow), 0);
    };
    const std::uint64_t in_low = bits(low);
    const int place = in_low != 0 ? std::countr_zero(in_low) : 64 + std::countr_zero(bits(high));
    return from + static_cast<std::size_t>(place) / 4;
  }
  return from;
}
#endif

}  // namespace

pair_filter::pair_filter(const std::vector<std::string_view>& words) : empty_(words.empty()) {
  grouping groups_of(words);
  const auto note = [](nibbles& halves, std::uint8_t byte, std::uint8_t group) {
    halves.low[byte & 15] |= group;
    halves.high[byte >> 4] |= group;
  };
  for (const std::string_view word : words) {
    const std::uint8_t first = byte_at(word, 0);
    const std::uint8_t group = groups_of.group_of(word);
    note(first_, first, group);
    if (word.size() > 1) {
      pairs_.set(std::size_t{first} << 8 | byte_at(word, 1));
      note(second_, byte_at(word, 1), group);
      continue;
    }
    alone_.set(first);
    for (std::size_t i = 0; i < 16; ++i) {
      second_.low[i] |= group;
      second_.high[i] |= group;
    }
  }
  if (alone_.any() || pairs_.count() > most_listed) return;
  for (const std::string_view word : words) {
    const std::array<char, 2> pair = {word[0], word[1]};
    const auto end = listed_.begin() + static_cast<std::ptrdiff_t>(listed_count_);
    if (std::find(listed_.begin(), end, pair) == end) listed_[listed_count_++] = pair;
  }
}

bool pair_filter::begins_at(std::string_view text, std::size_t at) const noexcept {
  const std::uint8_t first = byte_at(text, at);
  if (alone_[first]) return true;
  return at + 1 < text.size() && pairs_[std::size_t{first} << 8 | byte_at(text, at + 1)];
}

std::size_t pair_filter::skip_blocks(std::string_view text, std::size_t from) const noexcept {
#if defined(__x86_64__)
  if (have_avx2()) {
    const std::span pairs(listed_);
    const char* const bytes = text.data();
    if (listed_count_ == 1) from = skip_listed_avx2(pairs.first<1>(), bytes, from, text.size());
    if (listed_count_ == 2) from = skip_listed_avx2(pairs.first<2>(), bytes, from, text.size());
    if (listed_count_ == 3) from = skip_listed_avx2(pairs.first<3>(), bytes, from, text.size());
    // Also what is left of a listed search: a match, or fewer than 65 bytes
    return skip_avx2(first_.low.data(), first_.high.data(), second_.low.data(), second_.high.data(),
                     text.data(), from, text.size());
  }
#elif defined(__AARCH64EL__)
  return skip_neon({vld1q_u8(first_.low.data()), vld1q_u8(first_.high.data())},
                   {vld1q_u8(second_.low.data()), vld1q_u8(second_.high.data())}, text.data(), from,
                   text.size());
#endif
  return from;
}

std::size_t pair_filter::next(std::string_view text, std::size_t from) const noexcept {
  if (empty_) return text.size();
  while (from < text.size()) {
    from = skip_blocks(text, from);
    if (from == text.size() || begins_at(text, from)) break;
    ++from;
  }
  return from;
}

}  // namespace millrace::tokenizer::detail
