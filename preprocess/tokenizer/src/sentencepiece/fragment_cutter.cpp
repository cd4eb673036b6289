// SPDX-License-Identifier: Apache-2.0
#include "sentencepiece/fragment_cutter.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "bpe/intrinsics.hpp"
#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {
namespace {

bool is_letter(std::uint32_t c) {
  return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

bool is_digit(std::uint32_t c) {
  return c >= '0' && c <= '9';
}

// Like code_point_at, but faster for characters of three bytes.
inline code_point point_at(std::string_view text, std::size_t at) {
  if (text.size() - at >= 4) {
    std::uint32_t bytes = 0;
    std::memcpy(&bytes, text.data() + at, sizeof bytes);
    if constexpr (std::endian::native == std::endian::little) {
      if ((bytes & 0xC0C0F0) == 0x8080E0) {
        return {(bytes & 0xF) << 12 | (bytes >> 2 & 0xFC0) | (bytes >> 16 & 0x3F), 3};
      }
    }
  }
  return code_point_at(text, at);
}

// Scripts below this code point separate words with spaces, with few exceptions.
constexpr std::uint32_t first_without_spaces = 0x2000;

ascii_seams ascii_seams_of(const seam_table& seams, const raw_characters& characters) {
  // True if no piece contains `c` next to another character. (For a digit, this means next to
  // another digit.) Such a character always gives its own id. The text is cut on both sides of it,
  // because a fragment of many such characters would have too many ids. Most models have this
  // property for control characters, and some also for digits.
  const auto is_alone = [&](std::uint32_t c) {
    for (std::uint32_t other = 0; other < 128; ++other) {
      const bool counts = !is_digit(c) || is_digit(other);
      if (counts && (seams.joined(c, other) || seams.joined(other, c))) return false;
    }
    return true;
  };
  std::array<bool, 128> alone{};
  for (std::uint32_t c = 0; c < 128; ++c) alone[c] = is_alone(c);
  const auto goes_with = [&](std::uint32_t x, std::uint32_t y) {
    return !alone[x] && !alone[y] && is_letter(x) == is_letter(y) && is_digit(x) == is_digit(y);
  };
  ascii_seams::characters spaces{};
  std::array<ascii_seams::characters, 128> kept{};
  for (std::uint32_t y = 0; y < 128; ++y) {
    const bool space = characters.is_space(y);
    if (space) spaces[y / 64] |= std::uint64_t{1} << (y % 64);
    for (std::uint32_t x = 0; x < 128; ++x) {
      const bool keeps = characters.is_space(x) || characters.is_odd(x) || characters.is_odd(y) ||
                         seams.joined(x, space ? ' ' : y) || (!space && goes_with(x, y));
      if (keeps) kept[y][x / 64] |= std::uint64_t{1} << (x % 64);
    }
  }
  return {kept, spaces};
}

}  // namespace

fragment_cutter::fragment_cutter(const seam_table& seams, const raw_characters& characters,
                                 bool joins_spaces, instruction_set set)
    : seams_(&seams),
      characters_(&characters),
      // Cut inside a run of spaces only if no piece contains a space after another character.
      cuts_spaces_(joins_spaces && seams.always_parts_before_space() && !seams.joined(' ', ' ')),
      set_(set),
      ascii_(ascii_seams_of(seams, characters)) {}

std::size_t fragment_cutter::next_ends(std::string_view text, std::size_t begin,
                                       std::span<std::size_t> ends) const noexcept {
  if (begin >= text.size()) return 0;
#if defined(__x86_64__)
  if (set_ == instruction_set::avx512) return next_ends_avx512(text, begin, ends);
#elif defined(__AARCH64EL__)
  if (set_ == instruction_set::neon) return next_ends_neon(text, begin, ends);
#endif
  return next_ends_portable(text, begin, ends);
}

// True if a text is to be cut between `x` and `y`. At least one of the two must not be ASCII, and
// neither may be odd (raw_characters).
bool fragment_cutter::cuts(std::uint32_t x, std::uint32_t y) const noexcept {
  // In other scripts whose words are separated by spaces, cut only at the ends of words.
  if (y < first_without_spaces && y >= 0x80 && (x >= 0x80 || is_letter(x))) return false;
  if (x < first_without_spaces && x >= 0x80 && is_letter(y)) return false;
  if (x < 0x80 && characters_->is_space(x)) return false;
  return !seams_->joined(x, characters_->is_space(y) ? ' ' : y);
}

// The last character that cuts_before() decoded, so that the next call need not decode it again.
struct fragment_cutter::latest {
  std::size_t end = 0;  // 0: none
  std::uint32_t value = 0;
  bool is_odd = false;
};

// True if the text is to be cut before the character at `at`. The preceding character begins at
// `begin` or later.
inline bool fragment_cutter::cuts_before(std::string_view text, std::size_t begin, std::size_t at,
                                         latest& last) const noexcept {
  const code_point y = point_at(text, at);
  const latest right = {at + y.size_bytes, y.value, characters_->is_odd(y.value)};
  if (last.end != at) {
    std::size_t before = at - 1;
    while (before > begin && at - before < 4 && is_continuation(text[before])) --before;
    const std::uint32_t x = code_point_at(text, before).value;
    last = {at, x, characters_->is_odd(x)};
  }
  const latest left = std::exchange(last, right);
  if (left.is_odd || right.is_odd) return false;
  if (std::min(left.value, right.value) >= first_without_spaces) {
    return !seams_->joined(left.value, right.value);
  }
  return cuts(left.value, right.value);
}

// True if a rule may combine the character at `at` with the next character. The second character of
// such a pair is never ASCII.
bool fragment_cutter::may_change(std::string_view text, std::size_t at) const noexcept {
  const std::size_t next = at + code_point_at(text, at).size_bytes;
  return next < text.size() && static_cast<unsigned char>(text[next]) >= 0x80 &&
         characters_->is_odd(code_point_at(text, next).value);
}

// Of the characters at `at` whose bits are set in `asked`, those before which the text is to be
// cut.
inline std::uint64_t fragment_cutter::cuts_among(std::uint64_t asked, std::string_view text,
                                                 std::size_t begin, std::size_t at,
                                                 latest& last) const noexcept {
  std::uint64_t cuts = 0;
  for (; asked != 0; asked &= asked - 1) {
    const auto bit = static_cast<unsigned>(std::countr_zero(asked));
    cuts |= std::uint64_t{cuts_before(text, begin, at + bit, last)} << bit;
  }
  return cuts;
}

// Likewise, those that may_change().
inline std::uint64_t fragment_cutter::changes_among(std::uint64_t asked, std::string_view text,
                                                    std::size_t at) const noexcept {
  std::uint64_t changes = 0;
  for (; asked != 0; asked &= asked - 1) {
    const auto bit = static_cast<unsigned>(std::countr_zero(asked));
    changes |= std::uint64_t{may_change(text, at + bit)} << bit;
  }
  return changes;
}

std::size_t fragment_cutter::next_ends_portable(std::string_view text, std::size_t begin,
                                                std::span<std::size_t> ends) const noexcept {
  std::size_t count = 0;
  latest last;
  for (std::size_t at = begin + 1; at < text.size(); ++at) {
    const auto x = static_cast<unsigned char>(text[at - 1]);
    const auto y = static_cast<unsigned char>(text[at]);
    bool cut = false;
    if ((x | y) < 0x80) {
      cut = ascii_.cuts(x, y) ||
            (cuts_spaces_ && characters_->is_space(x) && characters_->is_space(y) &&
             !(at + 1 < text.size() && is_space(text[at + 1])));
    } else if (!is_continuation(text[at])) {
      cut = cuts_before(text, begin, at, last);
    }
    if (!cut || (characters_->has_sequences() && may_change(text, at))) continue;
    ends[count++] = at;
    if (count == ends.size()) return count;
  }
  ends[count++] = text.size();
  return count;
}

#if defined(__x86_64__)
#define MILLRACE_AVX512 \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi,bmi2")))

MILLRACE_AVX512 std::size_t fragment_cutter::next_ends_avx512(
    std::string_view text, std::size_t begin, std::span<std::size_t> ends) const noexcept {
  constexpr std::size_t width = 64;
  const __m512i before_low = _mm512_loadu_si512(ascii_.before().data());
  const __m512i before_high = _mm512_loadu_si512(ascii_.before().data() + width);
  const __m512i group_low = _mm512_loadu_si512(ascii_.group().data());
  const __m512i group_high = _mm512_loadu_si512(ascii_.group().data() + width);
  // Indices that select byte 63 of the previous vector, then bytes 0 to 62 of this vector.
  alignas(64) std::array<std::uint8_t, width> shifted_by_one;
  for (std::size_t i = 0; i < width; ++i) shifted_by_one[i] = static_cast<std::uint8_t>(63 + i);
  const __m512i shift = _mm512_load_si512(shifted_by_one.data());

  const bool sequences = characters_->has_sequences();
  latest last;
  std::size_t count = 0;
  __m512i old_before = _mm512_set1_epi8(-1);  // no cut before the first character
  std::uint64_t old_high = 0;
  std::uint64_t old_spaces = 0;
  for (std::size_t at = begin; at < text.size(); at += width) {
    const std::size_t left = text.size() - at;
    const __mmask64 here = left >= width ? ~std::uint64_t{0} : ~(~std::uint64_t{0} << left);
    const __m512i bytes = _mm512_maskz_loadu_epi8(here, text.data() + at);
    const __mmask64 high = _mm512_movepi8_mask(bytes);
    __m512i before = _mm512_permutex2var_epi8(before_low, bytes, before_high);
    __m512i group = _mm512_permutex2var_epi8(group_low, bytes, group_high);
    before = _mm512_mask_set1_epi8(before, high, -1);
    group = _mm512_mask_set1_epi8(group, high, 0);
    const __m512i previous = _mm512_permutex2var_epi8(old_before, shift, before);
    std::uint64_t cuts = _mm512_mask_testn_epi8_mask(here & ~high, previous, group);
    if (cuts_spaces_) {
      const std::uint64_t spaces = _mm512_movepi8_mask(group) & here;
      const std::uint64_t next =
          spaces >> 1 | (left > width && is_space(text[at + width]) ? std::uint64_t{1} << 63 : 0);
      cuts |= spaces & (spaces << 1 | old_spaces) & ~next;
      old_spaces = spaces >> 63;
    }
    __mmask64 leads = 0;
    if ((high | old_high) != 0) {
      const std::uint64_t after_high = high << 1 | old_high;
      leads = _mm512_cmpge_epu8_mask(bytes, _mm512_set1_epi8(static_cast<char>(0xC0)));
      const __mmask64 wide =
          _mm512_cmpge_epu8_mask(bytes, _mm512_set1_epi8(static_cast<char>(0xE2)));
      // The bits of all places where cuts() may return true.
      std::uint64_t asked = (leads & (wide | ~after_high)) | (~high & after_high & here);
      if (at == begin) asked &= ~std::uint64_t{1};
      cuts |= cuts_among(asked, text, begin, at, last);
      old_high = high >> 63;
    }
    if (sequences && cuts != 0) {
      const std::uint64_t next_high =
          leads >> 1 | (left > width && text[at + width] < 0 ? std::uint64_t{1} << 63 : 0);
      cuts &= ~changes_among(cuts & (next_high | high), text, at);
    }
    old_before = before;
    for (; cuts != 0; cuts &= cuts - 1) {
      if (count == ends.size()) return count;
      ends[count++] = at + static_cast<std::size_t>(std::countr_zero(cuts));
    }
  }
  if (count < ends.size()) ends[count++] = text.size();
  return count;
}
#undef MILLRACE_AVX512
#elif defined(__AARCH64EL__)
namespace {

using four_vectors = uint8x16x4_t;

// One bit per byte, which must be 0 or 0xFF.
inline std::uint64_t bits_of(const four_vectors& bytes) noexcept {
  const uint8x16_t bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201U));
  const uint8x16_t low = vpaddq_u8(vandq_u8(bytes.val[0], bit), vandq_u8(bytes.val[1], bit));
  const uint8x16_t high = vpaddq_u8(vandq_u8(bytes.val[2], bit), vandq_u8(bytes.val[3], bit));
  const uint8x16_t all = vpaddq_u8(low, high);
  return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(all, all)), 0);
}

inline std::uint64_t at_least(const four_vectors& bytes, std::uint8_t least) noexcept {
  four_vectors found;
  for (int i = 0; i < 4; ++i) found.val[i] = vcgeq_u8(bytes.val[i], vdupq_n_u8(least));
  return bits_of(found);
}

// 0 for a byte outside ASCII.
inline uint8x16_t looked_up(const std::array<std::uint8_t, 128>& table, uint8x16_t bytes) noexcept {
  return vqtbx4q_u8(vqtbl4q_u8(vld1q_u8_x4(table.data()), bytes), vld1q_u8_x4(table.data() + 64),
                    veorq_u8(bytes, vdupq_n_u8(0x40)));
}

}  // namespace

std::size_t fragment_cutter::next_ends_neon(std::string_view text, std::size_t begin,
                                            std::span<std::size_t> ends) const noexcept {
  constexpr std::size_t width = 64;
  const bool sequences = characters_->has_sequences();
  latest last;
  std::size_t count = 0;
  uint8x16_t old_before = vdupq_n_u8(0xFF);  // no cut before the first character
  std::uint64_t old_high = 0;
  std::uint64_t old_spaces = 0;
  for (std::size_t at = begin; at < text.size(); at += width) {
    const std::size_t left = text.size() - at;
    const std::uint64_t here = left >= width ? ~std::uint64_t{0} : ~(~std::uint64_t{0} << left);
    alignas(16) std::array<char, width> padded{};
    const char* from = text.data() + at;
    if (left < width) {
      std::memcpy(padded.data(), from, left);
      from = padded.data();
    }
    const four_vectors bytes = vld1q_u8_x4(reinterpret_cast<const std::uint8_t*>(from));
    const uint8x16_t any =
        vorrq_u8(vorrq_u8(bytes.val[0], bytes.val[1]), vorrq_u8(bytes.val[2], bytes.val[3]));
    const std::uint64_t high = vmaxvq_u8(any) < 0x80 ? 0 : at_least(bytes, 0x80);
    four_vectors parted;
    four_vectors spaced;
    for (int i = 0; i < 4; ++i) {
      const uint8x16_t group = looked_up(ascii_.group(), bytes.val[i]);
      const uint8x16_t before = vorrq_u8(looked_up(ascii_.before(), bytes.val[i]),
                                         vcgeq_u8(bytes.val[i], vdupq_n_u8(0x80)));
      parted.val[i] = vceqzq_u8(vandq_u8(vextq_u8(old_before, before, 15), group));
      spaced.val[i] = vcgeq_u8(group, vdupq_n_u8(ascii_seams::space_bit));
      old_before = before;
    }
    std::uint64_t cuts = bits_of(parted) & here & ~high;
    if (cuts_spaces_) {
      const std::uint64_t spaces = bits_of(spaced) & here;
      const std::uint64_t next =
          spaces >> 1 | (left > width && is_space(text[at + width]) ? std::uint64_t{1} << 63 : 0);
      cuts |= spaces & (spaces << 1 | old_spaces) & ~next;
      old_spaces = spaces >> 63;
    }
    std::uint64_t leads = 0;
    if ((high | old_high) != 0) {
      const std::uint64_t after_high = high << 1 | old_high;
      leads = at_least(bytes, 0xC0);
      // The bits of all places where cuts() may return true.
      std::uint64_t asked =
          (leads & (at_least(bytes, 0xE2) | ~after_high)) | (~high & after_high & here);
      if (at == begin) asked &= ~std::uint64_t{1};
      cuts |= cuts_among(asked, text, begin, at, last);
      old_high = high >> 63;
    }
    if (sequences && cuts != 0) {
      const bool goes_on = left > width && static_cast<unsigned char>(text[at + width]) >= 0x80;
      const std::uint64_t next_high = leads >> 1 | std::uint64_t{goes_on} << 63;
      cuts &= ~changes_among(cuts & (next_high | high), text, at);
    }
    for (; cuts != 0; cuts &= cuts - 1) {
      if (count == ends.size()) return count;
      ends[count++] = at + static_cast<std::size_t>(std::countr_zero(cuts));
    }
  }
  if (count < ends.size()) ends[count++] = text.size();
  return count;
}
#endif

}  // namespace millrace::tokenizer::detail
