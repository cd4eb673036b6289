// SPDX-License-Identifier: Apache-2.0
#include "bpe/word_batch.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "split/intrinsics.hpp"

namespace millrace::tokenizer::detail {

constinit const word_batch::short_table::line word_batch::no_line{};

inline void word_batch::add(std::size_t end, bool is_fragment) noexcept {
  is_fragment_[size_] = is_fragment ? 1 : 0;
  words_[++size_].end = end;
}

// Adds the long word that ends at `end`, cut at its seams. Returns false if the batch fills up
// before the whole word is added.
// @pre the batch is not full
bool word_batch::cut_long(std::size_t end) noexcept {
  const std::size_t begin = words_[size_].end;
  if (!inside_word_ &&
      (seams_ == nullptr || !seam_finder::pays_for({text_ + begin, end - begin}))) {
    add(end, false);
    return true;
  }
  entry* const fragments = &words_[size_ + 1];
  const std::size_t count =
      seams_->cut(text_, begin, end, capacity - size_,
                  [&](std::size_t i) -> std::size_t& { return fragments[i].end; });
  const bool is_whole = fragments[count - 1].end == end;
  const bool are_fragments = inside_word_ || count > 1 || !is_whole;
  std::fill_n(&is_fragment_[size_], count, are_fragments ? 1 : 0);
  size_ += count;
  inside_word_ = !is_whole;
  return is_whole;
}

// Adds the word that ends at `end`, which may have any size. Returns false if the batch fills up
// before the whole word is added.
inline bool word_batch::cut_one(std::size_t end) noexcept {
  if (size_ == capacity) return false;
  if (end - words_[size_].end > short_table::key::max_bytes || inside_word_) return cut_long(end);
  add(end, false);
  return true;
}

std::size_t word_batch::fill_portable(std::span<const std::size_t> ends) noexcept {
  std::size_t i = 0;
  while (i < ends.size() && cut_one(ends[i])) ++i;
  for (std::size_t word = 0; word < size_; ++word) make_key(word);
  return i;
}

// True if a word of more than 15 bytes has a short key.
inline bool word_batch::is_short_run(const char* word, std::size_t size) const noexcept {
  if (runs_ == long_runs::are_words || size > short_table::key::max_run_bytes) return false;
  const auto eight_at = [&](std::size_t at) {
    std::uint64_t eight;
    std::memcpy(&eight, word + at, sizeof eight);
    return eight;
  };
  const std::uint64_t first = eight_at(0);
  if (first != std::rotl(first, 8)) return false;  // nearly all other words
  std::uint64_t others = eight_at(size - 8) ^ first;
  for (std::size_t at = 8; at + 8 < size; at += 8) others |= eight_at(at) ^ first;
  return others == 0;
}

inline void word_batch::make_key(std::size_t i) noexcept {
  const char* const word = text_ + begin(i);
  const std::size_t size_bytes = end(i) - begin(i);
  const auto readable = static_cast<std::size_t>(text_end_ - word);
  auto& [short_key, line, word_end] = words_[i + 1];
  if (size_bytes <= short_table::key::max_bytes) {
    short_key = short_table::key::of(word, size_bytes, readable);
    line = &shorts_->line_of(short_key.hash());
  } else if (is_short_run(word, size_bytes)) {
    short_key = short_table::key::of_run(*word, size_bytes);
    line = &shorts_->line_of(short_key.hash());
  } else if (size_bytes <= long_table::key::max_bytes) {
    short_key = longer;
    long_keys_[i] = long_table::key::of(word, size_bytes, readable);
    line = &longs_->line_of(long_keys_[i].hash());
  } else {
    short_key = longer;
    line = &no_line;
  }
  __builtin_prefetch(line);
}

// Copies ids of the overflow cache for word `i`, unless there are none, or more than max_ids()
// allows for.
inline bool word_batch::copy_overflow(std::size_t i, std::span<const std::int32_t> ids,
                                      std::int32_t*& to) const noexcept {
  const std::size_t most = std::max(long_table::key::max_bytes, end(i) - words_[i].end);
  if (ids.data() == nullptr || ids.size() > most) return false;
  to = std::copy(ids.begin(), ids.end(), to);
  return true;
}

template <class Ids>
inline bool word_batch::copy_found(std::size_t i, const Ids* found,
                                   std::int32_t*& to) const noexcept {
  if (found == nullptr) return false;
  if (!found->is_special()) {
    found->copy_to(to);
    to += found->count();
    return true;
  }
  if (!found->is_elsewhere()) return false;
  return copy_overflow(i, overflow_->ids_at(found->place()), to);
}

// Writes the ids of word `i` to `to` and advances it. Returns false if the word is not in the
// tables or needs special handling.
bool word_batch::copy_ids(std::size_t i, std::int32_t*& to) const noexcept {
  if (is_short(i)) {
    const auto* line = static_cast<const short_table::line*>(words_[i + 1].line);
    return copy_found(i, short_table::find(*line, short_key(i)), to);
  }
  if (words_[i + 1].line == &no_line) {
    return copy_overflow(i, overflow_->find({text_ + begin(i), end(i) - begin(i)}), to);
  }
  const auto* line = static_cast<const long_table::line*>(words_[i + 1].line);
  return copy_found(i, long_table::find(*line, long_keys_[i]), to);
}

std::size_t word_batch::look_up_portable(std::size_t first, std::int32_t*& out) const noexcept {
  std::size_t i = first;
  while (i < size_ && copy_ids(i, out)) ++i;
  return i;
}

// Adds word `i` to `found` if it is absent from the table for its size.
inline void word_batch::add_if_absent(std::uint16_t i, absent_words& found) const noexcept {
  if (is_short(i)) {
    if (short_key(i).size() > short_table::key::max_bytes) return;  // too long to merge with others
    const auto* line = static_cast<const short_table::line*>(words_[i + 1].line);
    found.shorts[found.short_count] = i;
    found.short_count += short_table::find(*line, short_key(i)) == nullptr ? 1U : 0U;
  } else if (words_[i + 1].line != &no_line) {
    const auto* line = static_cast<const long_table::line*>(words_[i + 1].line);
    found.longs[found.long_count] = i;
    found.long_count += long_table::find(*line, long_keys_[i]) == nullptr ? 1U : 0U;
  }
}

void word_batch::find_absent_portable(std::size_t first, absent_words& found) const noexcept {
  for (std::size_t i = first; i < size_; ++i) add_if_absent(static_cast<std::uint16_t>(i), found);
}

#if defined(__x86_64__)
#define MILLRACE_FAST __attribute__((target("avx2,bmi,bmi2,aes")))
#define MILLRACE_FAST_INLINE __attribute__((target("avx2,bmi,bmi2,aes"), always_inline))

// The result of short_key.hash(), which these functions cannot inline.
MILLRACE_FAST_INLINE inline std::uint64_t hash_of(__m128i key) noexcept {
  return static_cast<std::uint64_t>(_mm_cvtsi128_si64(aes_mixed(key)));
}

// Which of the 64 bytes at `bytes` equal `byte`: one bit each.
MILLRACE_FAST_INLINE inline std::uint64_t equal_bytes(char byte, const char* bytes) noexcept {
  const __m256i all = _mm256_set1_epi8(byte);
  const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes));
  const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes + 32));
  const auto in_low = static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(low, all)));
  const auto in_high =
      static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(high, all)));
  return in_low | std::uint64_t{in_high} << 32;
}

MILLRACE_FAST_INLINE inline std::uint64_t put_run_key(char byte, std::size_t size,
                                                      word_batch::short_table::key& to) noexcept {
  to = word_batch::short_table::key::of_run(byte, size);
  return hash_of(
      _mm_set_epi64x(static_cast<long long>(to.part[1]), static_cast<long long>(to.part[0])));
}

// Makes the key of a short word, where 16 bytes can be read.
// @return its hash
MILLRACE_FAST_INLINE inline std::uint64_t put_key(const char* text, std::size_t size,
                                                  word_batch::short_table::key& to) noexcept {
  using key = word_batch::short_table::key;
  const key::form& form = key::forms[size];
  __m128i word = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text));
  word = _mm_and_si128(word, _mm_load_si128(reinterpret_cast<const __m128i*>(form.bytes.data())));
  word = _mm_or_si128(word, _mm_load_si128(reinterpret_cast<const __m128i*>(form.size.data())));
  _mm_store_si128(reinterpret_cast<__m128i*>(&to), word);
  return hash_of(word);
}
#else
#define MILLRACE_FAST
#define MILLRACE_FAST_INLINE __attribute__((always_inline))

// In general registers, where the hash needs the key.
inline std::uint64_t put_key(const char* text, std::size_t size,
                             word_batch::short_table::key& to) noexcept {
  to = word_batch::short_table::key::of(text, size, sizeof to);
  return to.multiplied_hash();
}
inline std::uint64_t put_run_key(char byte, std::size_t size,
                                 word_batch::short_table::key& to) noexcept {
  to = word_batch::short_table::key::of_run(byte, size);
  return to.multiplied_hash();
}
#endif

// is_short_run() without a loop, whose number of rounds would be hard to predict.
MILLRACE_FAST_INLINE inline bool word_batch::is_short_run_fast(std::size_t begin,
                                                               std::size_t size) const noexcept {
  const char* const word = text_ + begin;
#if defined(__x86_64__)
  static_assert(short_table::key::max_run_bytes < 128);
  if (text_end_ - word >= 128) {
    if (runs_ == long_runs::are_words || size > short_table::key::max_run_bytes) return false;
    const std::uint64_t low = equal_bytes(*word, word);
    if (size <= 64) return _tzcnt_u64(~low) >= size;
    return ~low == 0 && _tzcnt_u64(~equal_bytes(*word, word + 64)) >= size - 64;
  }
#endif
  return is_short_run(word, size);
}

// Adds short words and makes their keys in one pass, without a call, and with one branch for a word
// that is not short. Returns how many of `ends` it added.
template <leading_space Space>
MILLRACE_FAST std::size_t word_batch::add_shorts(std::span<const std::size_t> ends) noexcept {
  using key = short_table::key;
  const char* const text = text_;
  const auto* const lines = reinterpret_cast<const std::byte*>(shorts_->lines());
  const std::uint64_t offsets = shorts_->offset_mask();
  entry* const words = &words_[size_ + 1];
  std::size_t begin = words_[size_].end;

  // Sixteen bytes are read where a word begins, perhaps after a space. So the last words of a text
  // are left out.
  constexpr std::size_t most_read = sizeof(key) + (Space == leading_space::is_none ? 1 : 0);
  std::size_t most = std::min(ends.size(), capacity - size_);
  const auto readable = static_cast<std::size_t>(text_end_ - text_);
  while (most > 0 && (most > 1 ? ends[most - 2] : begin) + most_read > readable) --most;

  const auto add_short = [&](std::size_t end, entry& to) MILLRACE_FAST_INLINE {
    std::size_t size = end - begin;
    std::uint64_t hash;
    if (size > key::max_bytes) [[unlikely]] {
      if (!is_short_run_fast(begin, size)) return false;
      hash = put_run_key(text[begin], size, to.short_key);
    } else {
      std::size_t from = begin;
      if constexpr (Space == leading_space::is_none) {
        const std::size_t skipped = size > 1 && text[begin] == ' ' ? 1 : 0;
        from += skipped;
        size -= skipped;
      }
      hash = put_key(text + from, size, to.short_key);
    }
    to.line = lines + (hash & offsets);
    __builtin_prefetch(to.line);
    to.end = end;
    begin = end;
    return true;
  };
  // Adds four words, and counts them once.
  const auto add_four = [&](const std::size_t* four, entry* to) MILLRACE_FAST_INLINE {
#pragma GCC unroll 4
    for (std::size_t k = 0; k < 4; ++k) {
      if (!add_short(four[k], to[k])) return k;
    }
    return std::size_t{4};
  };
  std::size_t n = 0;
  std::size_t added = 4;
  for (; added == 4 && most - n >= 4; n += added) added = add_four(&ends[n], words + n);
  if (added == 4) {
    while (n < most && add_short(ends[n], words[n])) ++n;
  }
  size_ += n;
  return n;
}

// Makes the keys of word `first` and of all later words, which may have any size. Most are
// fragments.
MILLRACE_FAST void word_batch::make_keys(std::size_t first) noexcept {
  using key = short_table::key;
  const auto* const lines = reinterpret_cast<const std::byte*>(shorts_->lines());
  const std::uint64_t offsets = shorts_->offset_mask();
  for (std::size_t i = first; i < size_; ++i) {
    const char* const word = text_ + begin(i);
    const std::size_t size = end(i) - begin(i);
    if (size > key::max_bytes || text_end_ - word < std::ptrdiff_t{sizeof(key)}) [[unlikely]] {
      make_key(i);
      continue;
    }
    entry& to = words_[i + 1];
    to.line = lines + (put_key(word, size, to.short_key) & offsets);
    __builtin_prefetch(to.line);
  }
}

template <leading_space Space>
std::size_t word_batch::fill_in_one_pass(std::span<const std::size_t> ends) noexcept {
  std::size_t i = 0;
  while (true) {
    if (!inside_word_) i += add_shorts<Space>(ends.subspan(i));
    if (i == ends.size()) return i;
    const std::size_t first = size_;
    const bool is_whole = cut_one(ends[i]);
    make_keys(first);
    if (!is_whole) return i;
    ++i;
  }
}

#if defined(__x86_64__)
// Where the ids of a word are in its line, in bytes. 0 if the word is not there.
//
// Compares the key with both words of the line, 8 bytes at a time.
MILLRACE_FAST_INLINE inline std::size_t place_in(const word_batch::short_table::line& line,
                                                 const word_batch::short_table::key& key) noexcept {
  using table = word_batch::short_table;
  static constexpr std::array<std::uint8_t, 16> places = [] {
    std::array<std::uint8_t, 16> all{};
    for (std::size_t same = 0; same < all.size(); ++same) {
      constexpr std::size_t ids = offsetof(table::line, found);
      if ((same & 0b1100) == 0b1100) all[same] = ids + sizeof(table::ids);
      if ((same & 0b0011) == 0b0011) all[same] = ids;
    }
    return all;
  }();
  const __m256i twice =
      _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(&key)));
  const __m256i words = _mm256_load_si256(reinterpret_cast<const __m256i*>(line.words.data()));
  return places[static_cast<unsigned>(
      _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(twice, words))))];
}

MILLRACE_FAST_INLINE inline bool is_in(const word_batch::short_table::line& line,
                                       const word_batch::short_table::key& key) noexcept {
  return place_in(line, key) != 0;
}

// Writes the ids at `from` and returns where the next ids go.
MILLRACE_FAST_INLINE inline std::int32_t* copied(const std::byte* from, std::int32_t* to) noexcept {
  const __m128i id_bits = _mm_set_epi32(-1, -1, -1, 0x00FFFFFF);
  const __m128i ids = _mm_load_si128(reinterpret_cast<const __m128i*>(from));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm_and_si128(id_bits, ids));
  return to + static_cast<std::uint8_t>(from[3]);  // the number of ids
}

// Looks up words one by one, up to word `end`. Returns where it stopped.
MILLRACE_FAST_INLINE inline std::size_t word_batch::look_up_each(
    std::size_t i, std::size_t end, std::int32_t*& out) const noexcept {
  std::int32_t* to = out;
  for (; i < end; ++i) {
    const entry& word = words_[i + 1];
    const auto& line = *static_cast<const short_table::line*>(word.line);
    if (const std::size_t place = place_in(line, word.short_key); place != 0) [[likely]] {
      to = copied(reinterpret_cast<const std::byte*>(&line) + place, to);
      continue;
    }
    std::int32_t* after = to;  // so that `to` stays in a register
    if (!copy_ids(i, after)) break;
    to = after;
  }
  out = to;
  return i;
}

// Finds the ids of eight words before it writes any. With each write right behind its comparison, a
// Zen 3 takes twice as long, probably because it knows late where ids are written.
MILLRACE_FAST std::size_t word_batch::look_up_fast(std::size_t first,
                                                   std::int32_t*& out) const noexcept {
  std::array<const std::byte*, together> found;
  std::size_t i = first;
  for (; i + together <= size_; i += together) {
    const entry* const words = &words_[i + 1];
    bool all_found = true;
#pragma GCC unroll 8
    for (std::size_t k = 0; k < together; ++k) {
      const auto& line = *static_cast<const short_table::line*>(words[k].line);
      const std::size_t place = place_in(line, words[k].short_key);
      found[k] = reinterpret_cast<const std::byte*>(&line) + place;
      all_found &= place != 0;
    }
    if (!all_found) [[unlikely]] {
      for (std::size_t k = 0; k < together; ++k) {
        if (found[k] != words[k].line) {
          out = copied(found[k], out);
        } else if (!copy_ids(i + k, out)) {
          return i + k;
        }
      }
      continue;
    }
    std::int32_t* to = out;
#pragma GCC unroll 8
    for (std::size_t k = 0; k < together; ++k) to = copied(found[k], to);
    out = to;
  }
  return look_up_each(i, size_, out);
}
#else
// Compares in general registers, where AArch64 compares two pairs with two instructions. Not by the
// operator, for which GCC 12 calls memcmp there.
inline std::uint64_t difference(const word_batch::short_table::key& a,
                                const word_batch::short_table::key& b) noexcept {
  return (a.part[0] ^ b.part[0]) | (a.part[1] ^ b.part[1]);
}

inline void copy_four(const word_batch::short_table::ids& found, std::int32_t* to) noexcept {
#if defined(__AARCH64EL__)
  const uint32x4_t id_bits = vsetq_lane_u32(0x00FFFFFF, vdupq_n_u32(0xFFFFFFFF), 0);
  const auto* ids = reinterpret_cast<const std::uint32_t*>(&found);
  vst1q_u32(reinterpret_cast<std::uint32_t*>(to), vandq_u32(id_bits, vld1q_u32(ids)));
#else
  found.copy_to(to);
#endif
}

inline bool is_in(const word_batch::short_table::line& line,
                  const word_batch::short_table::key& key) noexcept {
  const std::uint64_t first = difference(line.words[0], key);
  const std::uint64_t second = difference(line.words[1], key);
  return (first == 0) | (second == 0);
}

std::size_t word_batch::look_up_fast(std::size_t first, std::int32_t*& out) const noexcept {
  const std::size_t size = size_;
  std::int32_t* to = out;
  std::size_t i = first;
  for (; i < size; ++i) {
    const auto* const line = static_cast<const short_table::line*>(words_[i + 1].line);
    const short_table::key& key = short_key(i);
    const std::uint64_t from_first = difference(line->words[0], key);
    const std::uint64_t from_second = difference(line->words[1], key);
    if ((from_first != 0) & (from_second != 0)) [[unlikely]] {
      std::int32_t* end = to;  // so that `to` stays in a register
      if (!copy_ids(i, end)) break;
      to = end;
      continue;
    }
    const auto& ids = line->found[from_first == 0 ? 0 : 1];
    copy_four(ids, to);
    to += ids.count();
  }
  out = to;
  return i;
}
#endif

// Compares the keys of eight words before a branch. Few words are not in their lines.
MILLRACE_FAST void word_batch::find_absent_fast(std::size_t first,
                                                absent_words& found) const noexcept {
  std::size_t i = first;
  for (; i + together <= size_; i += together) {
    const entry* const words = &words_[i + 1];
    unsigned absent = 0;
#pragma GCC unroll 8
    for (std::size_t k = 0; k < together; ++k) {
      const auto& line = *static_cast<const short_table::line*>(words[k].line);
      absent |= (is_in(line, words[k].short_key) ? 0U : 1U) << k;
    }
    for (; absent != 0; absent &= absent - 1) {
      add_if_absent(
          static_cast<std::uint16_t>(i + static_cast<std::size_t>(std::countr_zero(absent))),
          found);
    }
  }
  for (; i < size_; ++i) add_if_absent(static_cast<std::uint16_t>(i), found);
}
#undef MILLRACE_FAST_INLINE
#undef MILLRACE_FAST

std::size_t word_batch::fill(std::span<const std::size_t> ends) noexcept {
  words_[0].end = words_[size_].end;
  size_ = 0;
  is_fragment_.fill(0);
  if (set_ == instruction_set::portable) return fill_portable(ends);
  return space_ == leading_space::counts ? fill_in_one_pass<leading_space::counts>(ends)
                                         : fill_in_one_pass<leading_space::is_none>(ends);
}

void word_batch::find_absent(std::size_t first, absent_words& found) const noexcept {
  found.short_count = 0;
  found.long_count = 0;
  set_ != instruction_set::portable ? find_absent_fast(first, found)
                                    : find_absent_portable(first, found);
}

std::size_t word_batch::look_up(std::size_t first, std::int32_t*& out) const noexcept {
  return set_ != instruction_set::portable ? look_up_fast(first, out)
                                           : look_up_portable(first, out);
}

}  // namespace millrace::tokenizer::detail
