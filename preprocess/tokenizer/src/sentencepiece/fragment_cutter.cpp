// SPDX-License-Identifier: Apache-2.0
#include "sentencepiece/fragment_cutter.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "split/intrinsics.hpp"
#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {
namespace {

bool is_letter(std::uint32_t c) {
  return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

bool is_digit(std::uint32_t c) {
  return c >= '0' && c <= '9';
}

// The character at `at`, which has three bytes. Reads four.
inline std::uint32_t three_bytes_at(const char* at) {
  std::uint32_t bytes = 0;
  std::memcpy(&bytes, at, sizeof bytes);
  if constexpr (std::endian::native == std::endian::big) bytes = __builtin_bswap32(bytes);
  return (bytes & 0xF) << 12 | (bytes >> 2 & 0xFC0) | (bytes >> 16 & 0x3F);
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
  const code_point y = code_point_at(text, at);
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

// The characters of three bytes, from U+2000, in the window before.
struct fragment_cutter::latest_threes {
  std::uint64_t leads = 0;
  std::uint64_t odd = 0;
  std::uint32_t last = 0;  // the last of them
};

// Of the characters whose bits are set in `leads`, those before which the text is to be cut if a
// character of three bytes, from U+2000, comes before. Chinese, Japanese and Korean texts have long
// runs of such characters, so this takes no branches. `leads` are also of such characters, and four
// bytes of each can be read.
inline std::uint64_t fragment_cutter::cuts_among_threes(std::uint64_t leads, const char* window,
                                                        latest_threes& last) const noexcept {
  std::uint64_t odd = 0;
  std::uint64_t joined = 0;
  std::uint32_t x = last.last;
  for (std::uint64_t rest = leads; rest != 0; rest &= rest - 1) {
    const auto bit = static_cast<unsigned>(std::countr_zero(rest));
    const std::uint32_t y = three_bytes_at(window + bit);
    odd |= std::uint64_t{characters_->is_odd(y)} << bit;
    joined |= std::uint64_t{seams_->joined(x, y)} << bit;
    x = y;
  }
  const std::uint64_t cuts = ~(joined | odd | odd << 3 | last.odd >> 61);
  last = {leads, odd, x};
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

// The loop over windows of 64 bytes. `Windows` reads them in order with one set of instructions,
// and answers with one bit per byte:
//
//   Windows(const ascii_seams&)
//   read(from, number)  reads the next window, of `number` bytes; the bits of others have no
//   meaning high()              bytes that are not ASCII parted()            ASCII characters
//   before which ascii_seams cuts spaces()            ASCII characters that become a space
//   at_least(byte)      bytes that are not less
//   write(bits, at, to) writes `at` plus the number of each bit; may write up to 64 values, and
//   writes
//                       no more than 16 where no more bits are set
template <class Windows>
inline std::size_t fragment_cutter::next_ends_in_windows(
    std::string_view text, std::size_t begin, std::span<std::size_t> ends) const noexcept {
  constexpr std::size_t width = 64;
  const bool sequences = characters_->has_sequences();
  Windows window(ascii_);
  latest last;
  latest_threes three;
  std::size_t count = 0;
  std::uint64_t old_high = 0;
  std::uint64_t old_spaces = 0;
  for (std::size_t at = begin; at < text.size(); at += width) {
    const std::size_t left = text.size() - at;
    const std::uint64_t here = left >= width ? ~std::uint64_t{0} : ~(~std::uint64_t{0} << left);
    window.read(text.data() + at, std::min(left, width));
    const std::uint64_t high = window.high() & here;
    std::uint64_t cuts = window.parted() & here & ~high;
    if (cuts_spaces_) {
      const std::uint64_t spaces = window.spaces() & here;
      const std::uint64_t next =
          spaces >> 1 | (left > width && is_space(text[at + width]) ? std::uint64_t{1} << 63 : 0);
      cuts |= spaces & (spaces << 1 | old_spaces) & ~next;
      old_spaces = spaces >> 63;
    }
    std::uint64_t leads = 0;
    if ((high | old_high) != 0) {
      const std::uint64_t after_high = high << 1 | old_high;
      leads = window.at_least(0xC0) & here;
      const std::uint64_t wide = window.at_least(0xE2);
      // The bits of all places where cuts() may return true.
      std::uint64_t asked = (leads & (wide | ~after_high)) | (~high & after_high & here);
      if (at == begin) asked &= ~std::uint64_t{1};
      std::uint64_t threes = leads & wide & ~window.at_least(0xF0);
      // Four bytes are read of each.
      if (left < width + 3) threes &= left > 3 ? ~std::uint64_t{0} >> (width + 3 - left) : 0;
      const std::uint64_t pairs = threes & (threes << 3 | three.leads >> 61);
      cuts |= pairs & cuts_among_threes(threes, text.data() + at, three);
      cuts |= cuts_among(asked & ~pairs, text, begin, at, last);
      old_high = high >> 63;
    } else {
      three.leads = 0;
    }
    if (sequences && cuts != 0) {
      const bool goes_on = left > width && static_cast<unsigned char>(text[at + width]) >= 0x80;
      const std::uint64_t next_high = leads >> 1 | std::uint64_t{goes_on} << 63;
      cuts &= ~changes_among(cuts & (next_high | high), text, at);
    }
    const auto number = static_cast<std::size_t>(std::popcount(cuts));
    const std::size_t room = ends.size() - count;
    if (number <= 16 ? room >= 16 : room >= width) {
      Windows::write(cuts, at, ends.data() + count);
      count += number;
      continue;
    }
    for (; cuts != 0; cuts &= cuts - 1) {
      if (count == ends.size()) return count;
      ends[count++] = at + static_cast<std::size_t>(std::countr_zero(cuts));
    }
  }
  if (count < ends.size()) ends[count++] = text.size();
  return count;
}

namespace {

// Eight places at a time, without a branch for each. Most windows need two rounds.
inline void write_places(std::uint64_t bits, std::size_t at, std::size_t* to) noexcept {
  for (std::size_t round = 0; round < 2 || bits != 0; ++round) {
    for (std::size_t i = 0; i < 8; ++i) {
      *to++ = at + static_cast<std::size_t>(std::countr_zero(bits));
      bits &= bits - 1;
    }
  }
}

}  // namespace

#if defined(__x86_64__)
#define MILLRACE_AVX2 gnu::target("avx2,bmi,bmi2,lzcnt,popcnt")
namespace {

class avx2_windows {
 public:
  [[MILLRACE_AVX2]] explicit avx2_windows(const ascii_seams& seams) noexcept : seams_(&seams) {}

  [[MILLRACE_AVX2]] void read(const char* from, std::size_t number) noexcept {
    alignas(32) std::array<char, 64> padded;
    if (number < padded.size()) {
      padded.fill(0);
      std::memcpy(padded.data(), from, number);
      from = padded.data();
    }
    const __m256i last = before_high_;
    low_ = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    high_ = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from) + 1);
    const __m256i before_low = look_up(low_, group_low_);
    before_high_ = look_up(high_, group_high_);
    parted_ =
        bits_of(_mm256_cmpeq_epi8(_mm256_and_si256(shifted(last, before_low), group_low_),
                                  _mm256_setzero_si256()),
                _mm256_cmpeq_epi8(_mm256_and_si256(shifted(before_low, before_high_), group_high_),
                                  _mm256_setzero_si256()));
  }
  [[MILLRACE_AVX2]] std::uint64_t high() const noexcept { return bits_of(low_, high_); }
  [[MILLRACE_AVX2]] std::uint64_t parted() const noexcept { return parted_; }
  [[MILLRACE_AVX2]] std::uint64_t spaces() const noexcept {
    return bits_of(group_low_, group_high_);
  }
  [[MILLRACE_AVX2]] std::uint64_t at_least(std::uint8_t least) const noexcept {
    const __m256i all = _mm256_set1_epi8(static_cast<char>(least));
    return bits_of(_mm256_cmpeq_epi8(_mm256_max_epu8(low_, all), low_),
                   _mm256_cmpeq_epi8(_mm256_max_epu8(high_, all), high_));
  }
  [[MILLRACE_AVX2]] static void write(std::uint64_t bits, std::size_t at,
                                      std::size_t* to) noexcept {
    write_places(bits, at, to);
  }

 private:
  // One bit per byte: its top bit.
  [[MILLRACE_AVX2]] static std::uint64_t bits_of(__m256i low, __m256i high) noexcept {
    const auto below = static_cast<std::uint32_t>(_mm256_movemask_epi8(low));
    const auto above = static_cast<std::uint32_t>(_mm256_movemask_epi8(high));
    return below | std::uint64_t{above} << 32;
  }

  // Byte 31 of `last`, then bytes 0 to 30 of `bytes`.
  [[MILLRACE_AVX2]] static __m256i shifted(__m256i last, __m256i bytes) noexcept {
    return _mm256_alignr_epi8(bytes, _mm256_permute2x128_si256(last, bytes, 0x21), 15);
  }

  // Looks up `bytes` in both tables of seams_, 16 characters with the same high nibble per step.
  // The index of a step is below 128 only for these characters; a shuffle gives 0 for any other.
  // Returns what before() has, and -1 for a byte that is not ASCII.
  [[MILLRACE_AVX2]] __m256i look_up(__m256i bytes, __m256i& group) const noexcept {
    __m256i before = _mm256_cmpgt_epi8(_mm256_setzero_si256(), bytes);
    group = _mm256_setzero_si256();
    for (std::size_t row = 0; row < 128; row += 16) {
      const __m256i index =
          _mm256_adds_epu8(_mm256_xor_si256(bytes, _mm256_set1_epi8(static_cast<char>(row))),
                           _mm256_set1_epi8(0x70));
      before = _mm256_or_si256(before, shuffled(seams_->before().data() + row, index));
      group = _mm256_or_si256(group, shuffled(seams_->group().data() + row, index));
    }
    return before;
  }

  [[MILLRACE_AVX2]] static __m256i shuffled(const std::uint8_t* table, __m256i by) noexcept {
    return _mm256_shuffle_epi8(
        _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table))), by);
  }

  __m256i low_{};
  __m256i high_{};
  __m256i group_low_{};
  __m256i group_high_{};
  __m256i before_high_ = _mm256_set1_epi8(-1);  // no cut before the first character
  const ascii_seams* seams_;
  std::uint64_t parted_ = 0;
};

class avx512_windows {
 public:
  [[MILLRACE_AVX512]] explicit avx512_windows(const ascii_seams& seams) noexcept
      : before_low_(_mm512_loadu_si512(seams.before().data())),
        before_high_(_mm512_loadu_si512(seams.before().data() + 64)),
        group_low_(_mm512_loadu_si512(seams.group().data())),
        group_high_(_mm512_loadu_si512(seams.group().data() + 64)) {}

  [[MILLRACE_AVX512]] void read(const char* from, std::size_t number) noexcept {
    // Indices that select byte 63 of the previous vector, then bytes 0 to 62 of this vector.
    static constexpr auto shift = [] {
      std::array<std::uint8_t, 64> indices{};
      for (std::size_t i = 0; i < 64; ++i) indices[i] = static_cast<std::uint8_t>(63 + i);
      return indices;
    }();
    bytes_ =
        _mm512_maskz_loadu_epi8(_bzhi_u64(~std::uint64_t{0}, static_cast<unsigned>(number)), from);
    const __m512i last = before_;
    before_ = _mm512_permutex2var_epi8(before_low_, bytes_, before_high_);
    before_ = _mm512_mask_set1_epi8(before_, high(), -1);
    group_ = _mm512_permutex2var_epi8(group_low_, bytes_, group_high_);
    group_ = _mm512_maskz_mov_epi8(~high(), group_);
    parted_ = _mm512_testn_epi8_mask(
        _mm512_permutex2var_epi8(last, _mm512_loadu_si512(shift.data()), before_), group_);
  }
  [[MILLRACE_AVX512]] std::uint64_t high() const noexcept { return _mm512_movepi8_mask(bytes_); }
  [[MILLRACE_AVX512]] std::uint64_t parted() const noexcept { return parted_; }
  [[MILLRACE_AVX512]] std::uint64_t spaces() const noexcept { return _mm512_movepi8_mask(group_); }
  [[MILLRACE_AVX512]] std::uint64_t at_least(std::uint8_t least) const noexcept {
    return _mm512_cmpge_epu8_mask(bytes_, _mm512_set1_epi8(static_cast<char>(least)));
  }
  [[MILLRACE_AVX512]] static void write(std::uint64_t bits, std::size_t at,
                                        std::size_t* to) noexcept {
    write_places(bits, at, to);
  }

 private:
  __m512i before_low_;
  __m512i before_high_;
  __m512i group_low_;
  __m512i group_high_;
  __m512i bytes_{};
  __m512i before_ = _mm512_set1_epi8(-1);  // no cut before the first character
  __m512i group_{};
  std::uint64_t parted_ = 0;
};

}  // namespace

[[MILLRACE_AVX2, gnu::flatten]] std::size_t fragment_cutter::next_ends_avx2(
    std::string_view text, std::size_t begin, std::span<std::size_t> ends) const noexcept {
  return next_ends_in_windows<avx2_windows>(text, begin, ends);
}

[[MILLRACE_AVX512, gnu::flatten]] std::size_t fragment_cutter::next_ends_avx512(
    std::string_view text, std::size_t begin, std::span<std::size_t> ends) const noexcept {
  return next_ends_in_windows<avx512_windows>(text, begin, ends);
}
#undef MILLRACE_AVX2
#elif defined(__AARCH64EL__)
namespace {

class neon_windows {
 public:
  explicit neon_windows(const ascii_seams& seams) noexcept : seams_(&seams) {}

  void read(const char* from, std::size_t number) noexcept {
    alignas(16) std::array<char, 64> padded;
    if (number < padded.size()) {
      padded.fill(0);
      std::memcpy(padded.data(), from, number);
      from = padded.data();
    }
    bytes_ = vld1q_u8_x4(reinterpret_cast<const std::uint8_t*>(from));
    for (int i = 0; i < 4; ++i) {
      group_.val[i] = looked_up(seams_->group(), bytes_.val[i]);
      const uint8x16_t before = vorrq_u8(looked_up(seams_->before(), bytes_.val[i]),
                                         vcgeq_u8(bytes_.val[i], vdupq_n_u8(0x80)));
      parted_.val[i] = vceqzq_u8(vandq_u8(vextq_u8(before_, before, 15), group_.val[i]));
      before_ = before;
    }
  }
  std::uint64_t high() const noexcept {
    const uint8x16_t any =
        vorrq_u8(vorrq_u8(bytes_.val[0], bytes_.val[1]), vorrq_u8(bytes_.val[2], bytes_.val[3]));
    return vmaxvq_u8(any) < 0x80 ? 0 : at_least(0x80);
  }
  std::uint64_t parted() const noexcept { return bits_of(parted_); }
  std::uint64_t spaces() const noexcept { return at_least(group_, ascii_seams::space_bit); }
  std::uint64_t at_least(std::uint8_t least) const noexcept { return at_least(bytes_, least); }
  static void write(std::uint64_t bits, std::size_t at, std::size_t* to) noexcept {
    write_places(bits, at, to);
  }

 private:
  using four_vectors = uint8x16x4_t;

  // One bit per byte, which must be 0 or 0xFF.
  static std::uint64_t bits_of(const four_vectors& bytes) noexcept {
    const uint8x16_t bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201U));
    const uint8x16_t low = vpaddq_u8(vandq_u8(bytes.val[0], bit), vandq_u8(bytes.val[1], bit));
    const uint8x16_t high = vpaddq_u8(vandq_u8(bytes.val[2], bit), vandq_u8(bytes.val[3], bit));
    const uint8x16_t all = vpaddq_u8(low, high);
    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(all, all)), 0);
  }

  static std::uint64_t at_least(const four_vectors& bytes, std::uint8_t least) noexcept {
    four_vectors found;
    for (int i = 0; i < 4; ++i) found.val[i] = vcgeq_u8(bytes.val[i], vdupq_n_u8(least));
    return bits_of(found);
  }

  // 0 for a byte outside ASCII.
  static uint8x16_t looked_up(const std::array<std::uint8_t, 128>& table,
                              uint8x16_t bytes) noexcept {
    return vqtbx4q_u8(vqtbl4q_u8(vld1q_u8_x4(table.data()), bytes), vld1q_u8_x4(table.data() + 64),
                      veorq_u8(bytes, vdupq_n_u8(0x40)));
  }

  const ascii_seams* seams_;
  four_vectors bytes_{};
  four_vectors group_{};
  four_vectors parted_{};
  uint8x16_t before_ = vdupq_n_u8(0xFF);  // no cut before the first character
};

}  // namespace

std::size_t fragment_cutter::next_ends_neon(std::string_view text, std::size_t begin,
                                            std::span<std::size_t> ends) const noexcept {
  return next_ends_in_windows<neon_windows>(text, begin, ends);
}
#endif

std::size_t fragment_cutter::next_ends(std::string_view text, std::size_t begin,
                                       std::span<std::size_t> ends) const noexcept {
  if (begin >= text.size()) return 0;
#if defined(__x86_64__)
  if (set_ == instruction_set::avx512) return next_ends_avx512(text, begin, ends);
  if (set_ == instruction_set::avx2) return next_ends_avx2(text, begin, ends);
#elif defined(__AARCH64EL__)
  if (set_ == instruction_set::neon) return next_ends_neon(text, begin, ends);
#endif
  return next_ends_portable(text, begin, ends);
}

}  // namespace millrace::tokenizer::detail
