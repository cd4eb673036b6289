// SPDX-License-Identifier: Apache-2.0
#ifdef __x86_64__

#include <array>
#include <cstdint>
#include <string_view>

#include "split/intrinsics.hpp"
#include "split/patterns.hpp"
#include "split/splitters.hpp"
#include "split/windowed_splitter.hpp"

// Each function names its own instruction sets. Compiler flags for the whole file would also apply
// to its copies of inline functions from headers. Other files may end up calling such a copy, even
// on a machine without these instruction sets.
namespace millrace::tokenizer::detail {
namespace {

using byte_table = std::array<std::uint8_t, 128>;

/// The role of a letter in a contraction such as 's or 're.
struct contraction_letter {
  static constexpr std::uint8_t alone = 1;     // s t d m
  static constexpr std::uint8_t before_e = 2;  // r v
  static constexpr std::uint8_t e = 4;
  static constexpr std::uint8_t l = 8;
};

constexpr byte_table contraction_letters(bool upper_too) {
  byte_table letters{};
  const auto add = [&](std::string_view some, std::uint8_t what) {
    for (const char c : some) {
      letters[static_cast<unsigned char>(c)] = what;
      if (upper_too) letters[static_cast<unsigned char>(c - 0x20)] = what;
    }
  };
  add("stdm", contraction_letter::alone);
  add("rv", contraction_letter::before_e);
  add("e", contraction_letter::e);
  add("l", contraction_letter::l);
  return letters;
}

template <bool UpperToo>
alignas(64) constexpr byte_table contraction_table = contraction_letters(UpperToo);

alignas(64) constexpr std::array<std::uint8_t, 64> positions = [] {
  std::array<std::uint8_t, 64> p{};
  for (std::size_t i = 0; i < p.size(); ++i) p[i] = static_cast<std::uint8_t>(i);
  return p;
}();

struct avx512 {
  static constexpr std::size_t least_room = 24;
  static constexpr int worth_a_look_up = 6;  // minimum number of characters

  [[gnu::target("bmi2")]] static mask gather(mask bits, mask from) noexcept {
    return _pext_u64(bits, from);
  }
  [[gnu::target("bmi2")]] static mask to_bytes(mask chars, const read_window& read) noexcept {
    return _pdep_u64(chars, read.leads);
  }
  // Each run has one end, and the ends have the same order as the first characters.
  [[gnu::target("bmi2")]] static mask starts_of_runs(mask /*bits*/, mask from, mask ends,
                                                     mask kept) noexcept {
    return _pdep_u64(_pext_u64(kept, ends), from);
  }

  template <class Matcher>
  [[MILLRACE_AVX512]] static bool read_ascii(const char* begin, const kind_tables& tables,
                                             window& w) noexcept {
    const __m512i bytes = _mm512_loadu_si512(begin);
    if (_mm512_movepi8_mask(bytes) != 0) return false;
    w.valid = ~mask{0};
    w.at_end = false;
    set_masks<Matcher>(w, bytes, look_up(bytes, tables.by_byte.data()), w.valid, 0);
    return true;
  }

  template <class Matcher>
  [[MILLRACE_AVX512]] static read_window read(std::string_view section, std::size_t at,
                                              const kind_tables& tables) noexcept {
    const char* begin = section.data() + at;
    const std::size_t left = section.size() - at;
    const std::size_t number = left < 64 ? left : 64;
    const __m512i bytes =
        _mm512_maskz_loadu_epi8(_bzhi_u64(~mask{0}, static_cast<unsigned>(number)), begin);
    __m512i kinds = look_up(bytes, tables.by_byte.data());
    const mask wide = _mm512_movepi8_mask(bytes);

    read_window result;
    result.one_byte_each = wide == 0;
    if (wide == 0) {
      result.chars.valid = _bzhi_u64(~mask{0}, static_cast<unsigned>(number));
      result.leads = result.chars.valid;
      result.chars.at_end = left < 64;
      set_masks<Matcher>(result.chars, bytes, kinds, result.leads, wide);
      return result;
    }
    const __m512i top_two = _mm512_and_si512(bytes, _mm512_set1_epi8(static_cast<char>(0xC0)));
    const mask continuation =
        _mm512_cmpeq_epi8_mask(top_two, _mm512_set1_epi8(static_cast<char>(0x80)));
    find_characters(result, begin, number, continuation, left < 64);
    const __m512i wide_kinds = look_up(bytes, tables.by_byte.data() + 128);
    kinds = _mm512_mask_mov_epi8(kinds, wide, wide_kinds);
    mask varied = _mm512_mask_cmpeq_epi8_mask(
        result.leads & wide, kinds, _mm512_set1_epi8(static_cast<char>(kind_tables::varied)));
    set_east_asian_kinds(kinds, bytes, varied, tables);
    set_kinds_of_pairs(kinds, bytes, begin, varied, tables);
    if (varied != 0) {
      alignas(64) std::array<std::uint8_t, 64> each;
      _mm512_store_si512(each.data(), kinds);
      set_varied_kinds<Matcher>(each, section, at, varied, tables);
      kinds = _mm512_load_si512(each.data());
    }
    set_masks<Matcher>(result.chars, bytes, kinds, result.leads, wide);
    gather_masks<avx512, Matcher>(result.chars, result.leads);
    return result;
  }

  // Always performs three stores, so there is no branch to mispredict. Most text needs no more than
  // three. Uses masked intrinsics with full masks, because GCC 12 reports uninitialized operands
  // for the unmasked intrinsics.
  [[MILLRACE_AVX512]] static void write(mask bits, std::size_t at, std::size_t* out) noexcept {
    const __m512i packed = _mm512_maskz_compress_epi8(bits, _mm512_load_si512(positions.data()));
    const __m128i low = _mm512_maskz_extracti32x4_epi32(0xF, packed, 0);
    write_eight(low, at, out);
    write_eight(_mm_bsrli_si128(low, 8), at, out + 8);
    write_eight(_mm512_maskz_extracti32x4_epi32(0xF, packed, 1), at, out + 16);
    const auto number = static_cast<std::size_t>(_mm_popcnt_u64(bits));
    if (number <= least_room) return;
    alignas(64) std::array<std::uint8_t, 64> rest;
    _mm512_store_si512(rest.data(), packed);
    for (std::size_t i = least_room; i < number; i += 8) {
      write_eight(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(rest.data() + i)), at, out + i);
    }
  }

 private:
  [[MILLRACE_AVX512]] static void write_eight(__m128i eight, std::size_t at,
                                              std::size_t* out) noexcept {
    const __m512i base = _mm512_set1_epi64(static_cast<long long>(at));
    _mm512_storeu_si512(out, _mm512_add_epi64(base, _mm512_maskz_cvtepu8_epi64(0xFF, eight)));
  }

  // Looks up each byte by its low seven bits.
  [[MILLRACE_AVX512]] static __m512i look_up(__m512i bytes, const std::uint8_t* table) noexcept {
    return _mm512_permutex2var_epi8(_mm512_load_si512(table), bytes, _mm512_load_si512(table + 64));
  }

  // Looks up all characters of the ranges that most varied characters of Chinese and Japanese texts
  // are in, without branches, and removes them from `varied`.
  [[MILLRACE_AVX512]] static void set_east_asian_kinds(__m512i& kinds, __m512i bytes, mask& varied,
                                                       const kind_tables& tables) noexcept {
    const mask usual =
        equal(bytes, static_cast<char>(0xE3)) | equal(bytes, static_cast<char>(0xE4));
    if ((varied & usual) == 0) return;
    const __m512i next = _mm512_add_epi8(_mm512_load_si512(positions.data()), _mm512_set1_epi8(1));
    const __m512i second = _mm512_mask_permutexvar_epi8(bytes, ~mask{0}, next, bytes);
    const __m512i third = _mm512_mask_permutexvar_epi8(second, ~mask{0}, next, second);

    const mask from_4000 = varied & equal(bytes, static_cast<char>(0xE4));
    kinds = _mm512_mask_permutexvar_epi8(kinds, from_4000, second,
                                         _mm512_load_si512(tables.rows_from_4000.data()));
    varied &= ~from_4000 | equal(kinds, static_cast<char>(kind_tables::varied));
    set_kinds_from<0x2000>(kinds, bytes, second, third, varied, tables);
    set_kinds_from<0x3000>(kinds, bytes, second, third, varied, tables);
    set_kinds_from<0xFF00>(kinds, bytes, second, third, varied, tables);
  }

  // Looks up the characters from `First` to `First + 0xFF`, which have three bytes.
  template <std::uint32_t First>
  [[MILLRACE_AVX512]] static void set_kinds_from(__m512i& kinds, __m512i bytes, __m512i second,
                                                 __m512i third, mask& varied,
                                                 const kind_tables& tables) noexcept {
    static_assert(First >= 0x800 && First % 0x100 == 0);
    constexpr auto lead = static_cast<char>(0xE0 | First >> 12);
    constexpr auto first_second = static_cast<char>(0x80 | (First >> 6 & 0x3F));
    const mask in =
        varied & equal(bytes, lead) &
        equal(_mm512_and_si512(second, _mm512_set1_epi8(static_cast<char>(0xFC))), first_second);
    const mask upper = in & _mm512_test_epi8_mask(second, _mm512_set1_epi8(2));
    // The last seven bits of the code point: one of the second byte, six of the third.
    const __m512i low = _mm512_ternarylogic_epi32(
        _mm512_set1_epi8(0x40), _mm512_maskz_slli_epi16(~__mmask32{0}, second, 6), third, 0xCA);
    const std::uint8_t* const table = tables.by_point.data() + First;
    kinds = _mm512_mask_mov_epi8(kinds, in, look_up(low, table));
    kinds = _mm512_mask_mov_epi8(kinds, upper, look_up(low, table + 128));
    varied &= ~in;
  }

  // Looks up all two-byte characters with the same first byte at once, because a text has few
  // different first bytes. Removes them from `varied`. The caller looks up the remaining characters
  // one by one.
  [[MILLRACE_AVX512]] static void set_kinds_of_pairs(__m512i& kinds, __m512i bytes,
                                                     const char* begin, mask& varied,
                                                     const kind_tables& tables) noexcept {
    mask done = 0;
    while (_mm_popcnt_u64(varied) >= worth_a_look_up) {
      const char lead = begin[_tzcnt_u64(varied)];
      const mask same = varied & equal(bytes, lead);
      if (static_cast<unsigned char>(lead) >= 0xE0) break;
      const std::size_t first = std::size_t{static_cast<unsigned char>(lead) & 0x1FU} << 6;
      kinds = _mm512_mask_permutexvar_epi8(kinds, same << 1, bytes,
                                           _mm512_load_si512(tables.by_point.data() + first));
      varied &= ~same;
      done |= same;
    }
    // Copy the kinds of each character from its second byte to its first byte.
    const __m512i next = _mm512_add_epi8(_mm512_load_si512(positions.data()), _mm512_set1_epi8(1));
    kinds = _mm512_mask_permutexvar_epi8(kinds, done, next, kinds);
  }

  template <class Matcher, unsigned Kind>
  [[MILLRACE_AVX512]] static mask of_kind(__m512i kinds, mask leads) noexcept {
    if constexpr ((Matcher::used_kinds & Kind) == 0) return 0;
    return _mm512_mask_test_epi8_mask(leads, kinds, _mm512_set1_epi8(static_cast<char>(Kind)));
  }

  [[MILLRACE_AVX512]] static mask equal(__m512i bytes, char wanted) noexcept {
    return _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(wanted));
  }

  // Sets the masks of `w`, with one bit per byte. Only the first byte of a character can have its
  // bit set.
  template <class Matcher>
  [[MILLRACE_AVX512]] static void set_masks(window& w, __m512i bytes, __m512i kinds, mask leads,
                                            mask wide) noexcept {
    w.letter = of_kind<Matcher, kind::letter>(kinds, leads);
    w.number = of_kind<Matcher, kind::number>(kinds, leads);
    w.space = of_kind<Matcher, kind::space>(kinds, leads);
    w.newline = of_kind<Matcher, kind::newline>(kinds, leads);
    w.upper = of_kind<Matcher, kind::upper>(kinds, leads);
    w.lower = of_kind<Matcher, kind::lower>(kinds, leads);
    w.mark = of_kind<Matcher, kind::mark>(kinds, leads);
    w.han = of_kind<Matcher, kind::han>(kinds, leads);
    w.ascii = leads & ~wide;
    w.blank = equal(bytes, ' ');
    w.slash = Matcher::uses_slash ? equal(bytes, '/') : 0;
    w.apostrophe = w.contraction2 = w.contraction3 = 0;
    if constexpr (Matcher::contractions != contraction_case::none) {
      w.apostrophe = equal(bytes, '\'');
      if (w.apostrophe != 0) set_contractions<Matcher>(w, bytes, wide);
    }
  }

  // @pre w.apostrophe is set
  template <class Matcher>
  [[MILLRACE_AVX512]] static void set_contractions(window& w, __m512i bytes, mask wide) noexcept {
    constexpr bool either = Matcher::contractions == contraction_case::either;
    const __m512i letters = look_up(bytes, contraction_table<either>.data());
    const mask alone = letter<contraction_letter::alone>(letters, ~wide);
    const mask before_e = letter<contraction_letter::before_e>(letters, ~wide);
    const mask e = letter<contraction_letter::e>(letters, ~wide);
    const mask l = letter<contraction_letter::l>(letters, ~wide);
    w.contraction2 = w.apostrophe & (alone >> 1);
    w.contraction3 = w.apostrophe & (((before_e >> 1) & (e >> 2)) | ((l >> 1) & (l >> 2)));
    if (either && wide != 0) {  // U+017F folds to s
      w.contraction2 |= w.apostrophe & (equal(bytes, static_cast<char>(0xC5)) >> 1) &
                        (equal(bytes, static_cast<char>(0xBF)) >> 2);
    }
  }

  template <std::uint8_t Letter>
  [[MILLRACE_AVX512]] static mask letter(__m512i letters, mask ascii) noexcept {
    return _mm512_mask_test_epi8_mask(ascii, letters, _mm512_set1_epi8(static_cast<char>(Letter)));
  }
};

template <class Matcher>
class avx512_splitter final : public word_splitter {
 public:
  [[MILLRACE_AVX512, gnu::flatten]] std::size_t next_ends(
      std::string_view section, std::size_t begin,
      std::span<std::size_t> ends) const noexcept override {
    return windowed_ends<avx512, Matcher>(section, begin, ends, tables_);
  }

 private:
  kind_tables tables_ = make_kind_tables<Matcher>();
};

}  // namespace

std::unique_ptr<const word_splitter> make_avx512_splitter(pattern pattern) {
  return make_for<avx512_splitter>(pattern);
}

}  // namespace millrace::tokenizer::detail

#endif
