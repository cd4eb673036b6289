// SPDX-License-Identifier: Apache-2.0
#ifdef __AARCH64EL__

#include <arm_neon.h>

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "split/patterns.hpp"
#include "split/splitters.hpp"
#include "split/walk.hpp"
#include "split/windowed_splitter.hpp"

// AArch64 has no instruction that collects the top bits of a vector, and none that gathers bits by
// a mask. So a window is never turned into one mask at a time: its 64 bytes of kinds are transposed
// into eight masks at once, and if it has longer characters, the bytes are gathered before.
namespace millrace::tokenizer::detail {
namespace {

/// Kinds that this splitter adds for single ASCII characters, in bits that the matcher leaves free.
/// 0 if no bit is left, or if the matcher has no use for it.
template <class Matcher>
struct extra_kinds {
  static constexpr unsigned free = 0xFF & ~Matcher::used_kinds;
  static constexpr unsigned lowest(unsigned bits) { return bits & (0U - bits); }

  static constexpr unsigned blank = lowest(free);
  static constexpr unsigned apostrophe =
      Matcher::contractions == contraction_case::none ? 0 : lowest(free & ~blank);
  static constexpr unsigned slash = Matcher::uses_slash ? lowest(free & ~(blank | apostrophe)) : 0;
  static constexpr unsigned ascii = lowest(free & ~(blank | apostrophe | slash));
};

/// For each set of 8 bits, the positions of its bits.
alignas(64) constexpr std::array<std::array<std::uint8_t, 8>, 256> positions = [] {
  std::array<std::array<std::uint8_t, 8>, 256> all{};
  for (unsigned bits = 0; bits < 256; ++bits) {
    std::size_t count = 0;
    for (std::uint8_t i = 0; i < 8; ++i) {
      if ((bits >> i & 1) != 0) all[bits][count++] = i;
    }
  }
  return all;
}();

struct neon {
  static constexpr std::size_t least_room = 16;

  struct reading : read_window {
    /// The byte where each character begins, if not all characters are one byte.
    std::array<std::uint8_t, 64> places;
  };

  static mask to_bytes(mask chars, const reading& read) noexcept {
    mask bytes = 0;
    for (; chars != 0; chars &= chars - 1) bytes |= mask{1} << read.places[lowest(chars)];
    return bytes;
  }

  // Follows the runs from their ends to their starts: in reverse, a carry goes down.
  static mask starts_of_runs(mask bits, mask from, mask /*ends*/, mask kept) noexcept {
    return from & reversed(flooded(reversed(bits), reversed(kept >> 1)));
  }

  template <class Matcher>
  static bool read_ascii(const char* begin, const kind_tables& tables, window& w) noexcept {
    const uint8x16x4_t bytes = load(begin);
    if (!is_ascii(bytes)) return false;
    w.valid = ~mask{0};
    w.at_end = false;
    set_ascii_masks<Matcher>(w, bytes, ascii_kinds(bytes, tables));
    set_contractions<Matcher>(w, {begin, 64}, [](std::size_t character) { return character; });
    return true;
  }

  template <class Matcher>
  static reading read(std::string_view section, std::size_t at,
                      const kind_tables& tables) noexcept {
    const char* const begin = section.data() + at;
    const std::size_t left = section.size() - at;
    const std::size_t number = left < 64 ? left : 64;
    const uint8x16x4_t bytes = load(begin, number);
    uint8x16x4_t kinds = ascii_kinds(bytes, tables);

    reading result;
    result.one_byte_each = is_ascii(bytes);
    if (result.one_byte_each) {
      result.chars.valid = ~mask{0} >> (64 - number);
      result.leads = result.chars.valid;
      result.chars.at_end = left < 64;
      set_ascii_masks<Matcher>(result.chars, bytes, kinds);
    } else {
      // As signed numbers, continuation bytes are the smallest of all bytes.
      uint8x16x4_t continuation;
      for (int i = 0; i < 4; ++i) {
        continuation.val[i] =
            vcltq_s8(vreinterpretq_s8_u8(bytes.val[i]), vdupq_n_s8(static_cast<std::int8_t>(0xC0)));
      }
      find_characters(result, begin, number, top_bits(continuation), left < 64);
      gather<Matcher>(result, kinds, bytes, section, at, tables);
    }
    set_contractions<Matcher>(result.chars, section.substr(at, number),
                              [&](std::size_t character) -> std::size_t {
                                return result.one_byte_each ? character : result.places[character];
                              });
    return result;
  }

  // The first two rounds always run, so they need no branch. Most text needs no third round.
  static void write(mask bits, std::size_t at, std::size_t* out) noexcept {
    const auto number = static_cast<std::size_t>(std::popcount(bits));
    mask left = reversed(bits);
    left = write_eight(left, at, out);
    left = write_eight(left, at, out + 8);
    for (std::size_t i = least_room; i < number; i += 8) left = write_eight(left, at, out + i);
  }

 private:
  // What the matcher uses, but has no bit for.
  template <class Matcher>
  static constexpr bool lacks_blank = extra_kinds<Matcher>::blank == 0;
  template <class Matcher>
  static constexpr bool lacks_apostrophe = extra_kinds<Matcher>::apostrophe == 0 &&
                                           (Matcher::contractions != contraction_case::none);
  template <class Matcher>
  static constexpr bool lacks_slash = extra_kinds<Matcher>::slash == 0 && (Matcher::uses_slash);

  static std::size_t lowest(mask bits) noexcept {
    return static_cast<std::size_t>(std::countr_zero(bits));
  }

  static mask reversed(mask bits) noexcept {
    __asm__("rbit %0, %1" : "=r"(bits) : "r"(bits));
    return bits;
  }

  // Takes and returns the bits from the highest to the lowest, because AArch64 counts zeros there.
  static mask write_eight(mask bits, std::size_t at, std::size_t* out) noexcept {
    for (std::size_t i = 0; i < 8; ++i) {
      const auto place = static_cast<std::size_t>(std::countl_zero(bits));
      out[i] = at + place;
      bits &= ~(mask{1} << 63 >> place % 64);
    }
    return bits;
  }

  static uint8x16x4_t load(const char* begin) noexcept {
    return vld1q_u8_x4(reinterpret_cast<const std::uint8_t*>(begin));
  }
  static uint8x16x4_t load(const char* begin, std::size_t number) noexcept {
    if (number == 64) return load(begin);
    alignas(16) std::array<char, 64> padded{};
    std::memcpy(padded.data(), begin, number);
    return load(padded.data());
  }

  static bool is_ascii(const uint8x16x4_t& bytes) noexcept {
    const uint8x16_t any =
        vorrq_u8(vorrq_u8(bytes.val[0], bytes.val[1]), vorrq_u8(bytes.val[2], bytes.val[3]));
    return vmaxvq_u8(any) < 0x80;
  }

  static uint8x16x4_t equal(const uint8x16x4_t& bytes, char wanted) noexcept {
    const uint8x16_t all = vdupq_n_u8(static_cast<std::uint8_t>(wanted));
    uint8x16x4_t same;
    for (int i = 0; i < 4; ++i) same.val[i] = vceqq_u8(bytes.val[i], all);
    return same;
  }

  // One bit per byte, which must be 0 or 0xFF.
  static mask top_bits(const uint8x16x4_t& bytes) noexcept {
    const uint8x16_t bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201U));
    const uint8x16_t low = vpaddq_u8(vandq_u8(bytes.val[0], bit), vandq_u8(bytes.val[1], bit));
    const uint8x16_t high = vpaddq_u8(vandq_u8(bytes.val[2], bit), vandq_u8(bytes.val[3], bit));
    const uint8x16_t all = vpaddq_u8(low, high);
    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(all, all)), 0);
  }

  // Look-ups in tables of 64 bytes give 0, or keep what is there, for other indices.
  static uint8x16x4_t ascii_kinds(const uint8x16x4_t& bytes, const kind_tables& tables) noexcept {
    const uint8x16x4_t low = vld1q_u8_x4(tables.by_byte.data());
    const uint8x16x4_t high = vld1q_u8_x4(tables.by_byte.data() + 64);
    uint8x16x4_t kinds;
    for (int i = 0; i < 4; ++i) {
      const uint8x16_t some = bytes.val[i];
      kinds.val[i] = vqtbx4q_u8(vqtbl4q_u8(low, some), high, veorq_u8(some, vdupq_n_u8(0x40)));
    }
    return kinds;
  }

  static void add_lead_kinds(uint8x16x4_t& kinds, const uint8x16x4_t& bytes,
                             const kind_tables& tables) noexcept {
    const uint8x16x4_t leads = vld1q_u8_x4(tables.by_byte.data() + 0xC0);
    for (int i = 0; i < 4; ++i) {
      kinds.val[i] = vqtbx4q_u8(kinds.val[i], leads, veorq_u8(bytes.val[i], vdupq_n_u8(0xC0)));
    }
  }

  // Bit k of each of 64 bytes, as mask k.
  struct planes {
    uint64x2_t pairs[4];
    template <unsigned Kind>
    mask of() const noexcept {
      constexpr int k = std::countr_zero(Kind);
      return vgetq_lane_u64(pairs[k / 2], k % 2);
    }
  };

  static uint8x16_t even(uint8x16_t a, uint8x16_t b) noexcept { return vuzp1q_u8(a, b); }
  static uint8x16_t odd(uint8x16_t a, uint8x16_t b) noexcept { return vuzp2q_u8(a, b); }

  // Each step joins the bits of neighbors: first of two bytes, then of two pairs, then of two
  // fours.
  static planes transposed(const uint8x16x4_t& bytes) noexcept {
    const uint8x16_t ones = vdupq_n_u8(0x55);
    const uint8x16_t twos = vdupq_n_u8(0x33);
    uint8x16_t pairs[2][2];  // [bits 0 2 4 6, bits 1 3 5 7][first or second 32 bytes]
    for (int half = 0; half < 2; ++half) {
      const uint8x16_t a = even(bytes.val[2 * half], bytes.val[2 * half + 1]);
      const uint8x16_t b = odd(bytes.val[2 * half], bytes.val[2 * half + 1]);
      pairs[0][half] = vbslq_u8(ones, a, vshlq_n_u8(b, 1));
      pairs[1][half] = vbslq_u8(ones, vshrq_n_u8(a, 1), b);
    }
    uint8x16_t fours[2][2];  // [bits 0 4 and 1 5, or 2 6 and 3 7][even or odd bits]
    for (int k = 0; k < 2; ++k) {
      const uint8x16_t a = even(pairs[k][0], pairs[k][1]);
      const uint8x16_t b = odd(pairs[k][0], pairs[k][1]);
      fours[0][k] = vbslq_u8(twos, a, vshlq_n_u8(b, 2));
      fours[1][k] = vbslq_u8(twos, vshrq_n_u8(a, 2), b);
    }
    planes all;
    for (int k = 0; k < 2; ++k) {
      const uint8x16_t a = even(fours[k][0], fours[k][1]);
      const uint8x16_t b = odd(fours[k][0], fours[k][1]);
      all.pairs[k] = vreinterpretq_u64_u8(vsliq_n_u8(a, b, 4));
      all.pairs[k + 2] = vreinterpretq_u64_u8(vsriq_n_u8(b, a, 4));
    }
    return all;
  }

  template <class Matcher, unsigned Kind>
  static mask of_kind(const planes& kinds, mask valid) noexcept {
    if constexpr (Kind == 0) return 0;
    if constexpr (Kind != 0) return kinds.of<Kind>() & valid;
  }

  // Sets the masks of `w` for the kinds of its characters, except those that `extra_kinds` lacks.
  template <class Matcher>
  static void set_masks(window& w, const uint8x16x4_t& kinds) noexcept {
    using extra = extra_kinds<Matcher>;
    constexpr unsigned used = Matcher::used_kinds;
    const planes all = transposed(kinds);
    w.letter = of_kind<Matcher, used & kind::letter>(all, w.valid);
    w.number = of_kind<Matcher, used & kind::number>(all, w.valid);
    w.space = of_kind<Matcher, used & kind::space>(all, w.valid);
    w.newline = of_kind<Matcher, used & kind::newline>(all, w.valid);
    w.upper = of_kind<Matcher, used & kind::upper>(all, w.valid);
    w.lower = of_kind<Matcher, used & kind::lower>(all, w.valid);
    w.mark = of_kind<Matcher, used & kind::mark>(all, w.valid);
    w.han = of_kind<Matcher, used & kind::han>(all, w.valid);
    w.blank = of_kind<Matcher, extra::blank>(all, w.valid);
    w.apostrophe = of_kind<Matcher, extra::apostrophe>(all, w.valid);
    w.slash = of_kind<Matcher, extra::slash>(all, w.valid);
    w.ascii = of_kind<Matcher, extra::ascii>(all, w.valid);
  }

  // Sets all masks of `w`, except those of contractions, if all its characters are ASCII.
  template <class Matcher>
  static void set_ascii_masks(window& w, const uint8x16x4_t& bytes,
                              const uint8x16x4_t& kinds) noexcept {
    set_masks<Matcher>(w, kinds);
    if constexpr (lacks_blank<Matcher>) w.blank = top_bits(equal(bytes, ' '));
    if constexpr (lacks_apostrophe<Matcher>) w.apostrophe = top_bits(equal(bytes, '\''));
    if constexpr (lacks_slash<Matcher>) w.slash = top_bits(equal(bytes, '/'));
    w.ascii = w.valid;
  }

  // Moves the kinds of the characters to the front, and notes where each character begins.
  template <class Matcher>
  static void gather(reading& result, uint8x16x4_t kinds, const uint8x16x4_t& bytes,
                     std::string_view section, std::size_t at, const kind_tables& tables) noexcept {
    add_lead_kinds(kinds, bytes, tables);
    const mask varied =
        result.leads & top_bits(equal(kinds, static_cast<char>(kind_tables::varied)));
    alignas(16) std::array<std::uint8_t, 64> each;
    vst1q_u8_x4(each.data(), kinds);
    if (varied != 0) set_varied_kinds<Matcher>(each, section, at, varied, tables);

    alignas(16) std::array<std::uint8_t, 64> chars{};
    const uint8x8_t counts = vcnt_u8(vcreate_u8(result.leads));
    const mask sums = vget_lane_u64(vreinterpret_u64_u8(counts), 0) * 0x0101010101010101U;
    std::size_t to = 0;
    for (std::size_t i = 0; i < 64; i += 8) {
      const uint8x8_t from = vld1_u8(positions[result.leads >> i & 0xFF].data());
      vst1_u8(chars.data() + to, vtbl1_u8(vld1_u8(each.data() + i), from));
      vst1_u8(result.places.data() + to, vadd_u8(from, vdup_n_u8(static_cast<std::uint8_t>(i))));
      to = sums >> i & 0xFF;
    }
    set_masks<Matcher>(result.chars, vld1q_u8_x4(chars.data()));
    window& w = result.chars;
    if constexpr (lacks_blank<Matcher>) w.blank = gathered(result, equal(bytes, ' '));
    if constexpr (lacks_apostrophe<Matcher>) w.apostrophe = gathered(result, equal(bytes, '\''));
    if constexpr (lacks_slash<Matcher>) w.slash = gathered(result, equal(bytes, '/'));
    if constexpr (extra_kinds<Matcher>::ascii == 0) {
      uint8x16x4_t ascii;
      for (int i = 0; i < 4; ++i) ascii.val[i] = vcltq_u8(bytes.val[i], vdupq_n_u8(0x80));
      w.ascii = gathered(result, ascii);
    }
  }

  // Converts a mask of few bytes to a mask of characters.
  static mask gathered(const reading& read, const uint8x16x4_t& wanted) noexcept {
    mask chars = 0;
    for (mask bytes = top_bits(wanted) & read.leads; bytes != 0; bytes &= bytes - 1) {
      chars |= mask{1} << std::popcount(read.leads & (bytes - 1) & ~bytes);
    }
    return chars;
  }

  // Looks at each apostrophe by itself, because most windows have none.
  //
  // @param place_of  from the index of a character to the index of its first byte
  template <class Matcher, class PlaceOf>
  static void set_contractions(window& w, std::string_view bytes, PlaceOf place_of) noexcept {
    w.contraction2 = w.contraction3 = 0;
    if constexpr (Matcher::contractions == contraction_case::none) return;
    for (mask left = w.apostrophe; left != 0; left &= left - 1) {
      const std::size_t at = place_of(lowest(left));
      const std::size_t size = Matcher::contractions == contraction_case::either
                                   ? contraction_size(bytes, at)
                                   : lower_contraction_size(bytes, at);
      const mask one = left & (0 - left);
      if (size == 3 && static_cast<unsigned char>(bytes[at + 2]) < 0x80) {
        w.contraction3 |= one;
      } else if (size != 0) {  // also a long s of two bytes
        w.contraction2 |= one;
      }
    }
  }
};

template <class Matcher>
class neon_splitter final : public word_splitter {
 public:
  neon_splitter() {
    using extra = extra_kinds<Matcher>;
    const auto add = [this](char c, unsigned kind) {
      tables_.by_byte[static_cast<unsigned char>(c)] |= static_cast<std::uint8_t>(kind);
    };
    for (int c = 0; c < 0x80; ++c) add(static_cast<char>(c), extra::ascii);
    add(' ', extra::blank);
    add('\'', extra::apostrophe);
    add('/', extra::slash);
  }

  [[gnu::flatten]] std::size_t next_ends(std::string_view section, std::size_t begin,
                                         std::span<std::size_t> ends) const noexcept override {
    return windowed_ends<neon, Matcher>(section, begin, ends, tables_);
  }

 private:
  kind_tables tables_ = make_kind_tables<Matcher>();
};

}  // namespace

std::unique_ptr<const word_splitter> make_neon_splitter(pattern pattern) {
  return make_for<neon_splitter>(pattern);
}

}  // namespace millrace::tokenizer::detail

#endif
