// SPDX-License-Identifier: Apache-2.0
#ifdef __x86_64__

#include <immintrin.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "split/patterns.hpp"
#include "split/splitters.hpp"
#include "split/windowed_splitter.hpp"

// Each function names its own instruction sets. Compiler flags for the whole file would also apply
// to its copies of inline functions from headers. Other files may end up calling such a copy, even
// on a machine without these instruction sets.
namespace millrace::tokenizer::detail {
namespace {

struct avx2 {
  static constexpr std::size_t least_room = 16;

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
  [[gnu::target("avx2,bmi,bmi2,lzcnt,popcnt")]] static bool read_ascii(const char* begin,
                                                                       const kind_tables& tables,
                                                                       window& w) noexcept {
    const halves bytes = load(begin);
    if (_mm256_movemask_epi8(_mm256_or_si256(bytes.low, bytes.high)) != 0) return false;
    w.valid = ~mask{0};
    w.at_end = false;
    set_masks<Matcher>(w, bytes, ascii_kinds(bytes, tables), w.valid, 0);
    return true;
  }

  template <class Matcher>
  [[gnu::target("avx2,bmi,bmi2,lzcnt,popcnt")]] static read_window read(
      std::string_view section, std::size_t at, const kind_tables& tables) noexcept {
    const std::size_t left = section.size() - at;
    const std::size_t number = left < 64 ? left : 64;
    const halves bytes = load(section.data() + at, number);
    halves kinds = ascii_kinds(bytes, tables);
    const mask wide = top_bits(bytes);

    read_window result;
    result.one_byte_each = wide == 0;
    if (wide == 0) {
      result.chars.valid = _bzhi_u64(~mask{0}, static_cast<unsigned>(number));
      result.leads = result.chars.valid;
      result.chars.at_end = left < 64;
      set_masks<Matcher>(result.chars, bytes, kinds, result.leads, wide);
      return result;
    }
    // As signed numbers, continuation bytes are the smallest of all bytes.
    const __m256i end = _mm256_set1_epi8(static_cast<char>(0xC0));
    const mask continuation =
        top_bits({_mm256_cmpgt_epi8(end, bytes.low), _mm256_cmpgt_epi8(end, bytes.high)});
    find_characters(result, section.data() + at, number, continuation, left < 64);
    kinds = {_mm256_or_si256(kinds.low, lead_kinds(bytes.low, tables)),
             _mm256_or_si256(kinds.high, lead_kinds(bytes.high, tables))};
    const mask varied = result.leads & wide & equal(kinds, static_cast<char>(kind_tables::varied));
    if (varied != 0) {
      alignas(32) std::array<std::uint8_t, 64> each;
      _mm256_store_si256(reinterpret_cast<__m256i*>(each.data()), kinds.low);
      _mm256_store_si256(reinterpret_cast<__m256i*>(each.data() + 32), kinds.high);
      set_varied_kinds<Matcher>(each, section, at, varied, tables);
      kinds = load(reinterpret_cast<const char*>(each.data()));
    }
    set_masks<Matcher>(result.chars, bytes, kinds, result.leads, wide);
    gather_masks<avx2, Matcher>(result.chars, result.leads);
    return result;
  }

  // The first two rounds always run, so they need no branch. Most text needs no third round.
  [[gnu::target("avx2,bmi,bmi2,lzcnt,popcnt")]] static void write(mask bits, std::size_t at,
                                                                  std::size_t* out) noexcept {
    const auto number = static_cast<std::size_t>(_mm_popcnt_u64(bits));
    bits = write_eight(bits, at, out);
    bits = write_eight(bits, at, out + 8);
    for (std::size_t i = least_room; i < number; i += 8) bits = write_eight(bits, at, out + i);
  }

 private:
  struct halves {
    __m256i low;
    __m256i high;
  };

  [[gnu::target("avx2,bmi,bmi2,lzcnt,popcnt")]] static mask write_eight(mask bits, std::size_t at,
                                                                        std::size_t* out) noexcept {
#pragma GCC unroll 8
    for (std::size_t i = 0; i < 8; ++i) {
      const mask later = _blsr_u64(bits);
      out[i] = at + _tzcnt_u64(bits);
      bits = later;
    }
    return bits;
  }

  [[gnu::target("avx2,bmi,bmi2,lzcnt,popcnt")]] static halves load(const char* begin) noexcept {
    const auto* from = reinterpret_cast<const __m256i*>(begin);
    return {_mm256_loadu_si256(from), _mm256_loadu_si256(from + 1)};
  }
  [[gnu::target("avx2,bmi,bmi2,lzcnt,popcnt")]] static halves load(const char* begin,
                                                                   std::size_t number) noexcept {
    if (number == 64) return load(begin);
    alignas(32) std::array<char, 64> padded{};
    std::memcpy(padded.data(), begin, number);
    return load(padded.data());
  }

  [[gnu::target("avx2,bmi,bmi2,lzcnt,popcnt")]] static mask top_bits(const halves& bytes) noexcept {
    const auto low = static_cast<std::uint32_t>(_mm256_movemask_epi8(bytes.low));
    const auto high = static_cast<std::uint32_t>(_mm256_movemask_epi8(bytes.high));
    return low | mask{high} << 32;
  }

  [[gnu::target("avx2,bmi,bmi2,lzcnt,popcnt")]] static mask equal(const halves& bytes,
                                                                  char wanted) noexcept {
    const __m256i all = _mm256_set1_epi8(wanted);
    return top_bits({_mm256_cmpeq_epi8(bytes.low, all), _mm256_cmpeq_epi8(bytes.high, all)});
  }

  // Performs one step of a look-up in a table that has the kind of every byte value: one shuffle
  // finds the kinds of the bytes whose high nibble is `row`. The index of the shuffle is the byte
  // XOR `row << 4`, plus 0x70 (saturated). For all other bytes, it has its top bit set, so the
  // shuffle gives 0.
  [[gnu::target("avx2,bmi,bmi2,lzcnt,popcnt")]] static __m256i row_kinds(__m256i bytes,
                                                                         const kind_tables& tables,
                                                                         int row) noexcept {
    const auto* from = reinterpret_cast<const __m128i*>(tables.by_byte.data()) + row;
    const __m256i kinds = _mm256_broadcastsi128_si256(_mm_load_si128(from));
    const __m256i other = _mm256_xor_si256(bytes, _mm256_set1_epi8(static_cast<char>(row << 4)));
    return _mm256_shuffle_epi8(kinds, _mm256_adds_epu8(other, _mm256_set1_epi8(0x70)));
  }

  template <int First, int End>
  [[gnu::target("avx2,bmi,bmi2,lzcnt,popcnt")]] static __m256i rows_kinds(
      __m256i bytes, const kind_tables& tables) noexcept {
    __m256i kinds = row_kinds(bytes, tables, First);
    if constexpr (First + 1 < End) {
      kinds = _mm256_or_si256(kinds, rows_kinds<First + 1, End>(bytes, tables));
    }
    return kinds;
  }

  [[gnu::target("avx2,bmi,bmi2,lzcnt,popcnt")]] static __m256i shuffled(
      const std::array<std::uint8_t, 16>& table, __m256i by) noexcept {
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(
                                   _mm_loadu_si128(reinterpret_cast<const __m128i*>(table.data()))),
                               by);
  }

  [[gnu::target("avx2,bmi,bmi2,lzcnt,popcnt")]] static __m256i high_nibbles(
      __m256i bytes) noexcept {
    return _mm256_and_si256(_mm256_srli_epi16(bytes, 4), _mm256_set1_epi8(0x0F));
  }

  // A shuffle takes the low nibble of a byte, and gives 0 for a byte that is not ASCII.
  [[gnu::target("avx2,bmi,bmi2,lzcnt,popcnt")]] static __m256i grouped_kinds(
      __m256i bytes, const kind_tables::ascii_groups& groups) noexcept {
    const __m256i group = _mm256_and_si256(shuffled(groups.of_low, bytes),
                                           shuffled(groups.of_high, high_nibbles(bytes)));
    const __m256i low = _mm256_and_si256(group, _mm256_set1_epi8(0x0F));
    return _mm256_or_si256(shuffled(groups.kinds[0], low),
                           shuffled(groups.kinds[1], high_nibbles(group)));
  }

  [[gnu::target("avx2,bmi,bmi2,lzcnt,popcnt")]] static halves ascii_kinds(
      const halves& bytes, const kind_tables& tables) noexcept {
    if (tables.groups.suffice) {
      return {grouped_kinds(bytes.low, tables.groups), grouped_kinds(bytes.high, tables.groups)};
    }
    return {rows_kinds<0, 8>(bytes.low, tables), rows_kinds<0, 8>(bytes.high, tables)};
  }

  [[gnu::target("avx2,bmi,bmi2,lzcnt,popcnt")]] static __m256i lead_kinds(
      __m256i bytes, const kind_tables& tables) noexcept {
    return rows_kinds<12, 16>(bytes, tables);
  }

  template <class Matcher, unsigned Kind>
  [[gnu::target("avx2,bmi,bmi2,lzcnt,popcnt")]] static mask of_kind(const halves& kinds,
                                                                    mask leads) noexcept {
    if constexpr ((Matcher::used_kinds & Kind) == 0) return 0;
    constexpr int to_top = std::countl_zero(static_cast<std::uint8_t>(Kind));
    return leads &
           top_bits({_mm256_slli_epi16(kinds.low, to_top), _mm256_slli_epi16(kinds.high, to_top)});
  }

  // Sets the masks of `w`, with one bit per byte. Only the first byte of a character can have its
  // bit set.
  template <class Matcher>
  [[gnu::target("avx2,bmi,bmi2,lzcnt,popcnt")]] static void set_masks(
      window& w, const halves& bytes, const halves& kinds, mask leads, mask wide) noexcept {
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
      const mask apostrophe = equal(bytes, '\'');
      w.apostrophe = apostrophe;
      if (apostrophe != 0) {
        const contractions found = contractions_at<Matcher>(apostrophe, bytes, wide);
        w.contraction2 = found.two;
        w.contraction3 = found.three;
      }
    }
  }

  struct contractions {
    mask two;    // apostrophes that begin a contraction of two characters
    mask three;  // apostrophes that begin a contraction of three characters
  };
  template <class Matcher>
  [[gnu::target("avx2,bmi,bmi2,lzcnt,popcnt")]] static contractions contractions_at(
      mask apostrophe, const halves& bytes, mask wide) noexcept {
    constexpr bool either = Matcher::contractions == contraction_case::either;
    const __m256i fold = _mm256_set1_epi8(either ? 0x20 : 0);
    const halves folded{_mm256_or_si256(bytes.low, fold), _mm256_or_si256(bytes.high, fold)};
    const mask alone =
        equal(folded, 's') | equal(folded, 't') | equal(folded, 'd') | equal(folded, 'm');
    const mask before_e = equal(folded, 'r') | equal(folded, 'v');
    const mask e = equal(folded, 'e');
    const mask l = equal(folded, 'l');
    contractions found{
        .two = apostrophe & (alone >> 1),
        .three = apostrophe & (((before_e >> 1) & (e >> 2)) | ((l >> 1) & (l >> 2)))};
    if (either && wide != 0) {  // U+017F folds to s
      found.two |= apostrophe & (equal(bytes, static_cast<char>(0xC5)) >> 1) &
                   (equal(bytes, static_cast<char>(0xBF)) >> 2);
    }
    return found;
  }
};

template <class Matcher>
class avx2_splitter final : public word_splitter {
 public:
  [[gnu::target("avx2,bmi,bmi2,lzcnt,popcnt"), gnu::flatten]] std::size_t next_ends(
      std::string_view section, std::size_t begin,
      std::span<std::size_t> ends) const noexcept override {
    return windowed_ends<avx2, Matcher>(section, begin, ends, tables_);
  }

 private:
  kind_tables tables_ = make_kind_tables<Matcher>();
};

}  // namespace

std::unique_ptr<const word_splitter> make_avx2_splitter(pattern pattern) {
  return make_for<avx2_splitter>(pattern);
}

}  // namespace millrace::tokenizer::detail

#endif
