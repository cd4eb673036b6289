// SPDX-License-Identifier: Apache-2.0
#include "bpe/word_batch.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "split/intrinsics.hpp"

namespace millrace::tokenizer::detail {

namespace {

// Stands for the short key of a long word. It stores a size that no short word has.
constexpr word_batch::short_table::key longer{{0, ~std::uint64_t{0}}};

}  // namespace

constinit const word_batch::short_table::line word_batch::no_line{};

inline void word_batch::add(std::size_t end, bool is_fragment) noexcept {
  is_fragment_[size_] = is_fragment ? 1 : 0;
  ends_[++size_] = end;
}

// Adds the fragment that ends at `cut`. `end` is the end of the whole word. Returns false if the
// batch is full.
inline bool word_batch::add_fragment(std::size_t cut, std::size_t end) noexcept {
  if (size_ == capacity) return false;
  inside_word_ |= cut < end;
  add(cut, inside_word_);
  return true;
}

// Adds the long word that ends at `end`, cut at its seams. Returns false if the batch fills up
// before the whole word is added.
bool word_batch::cut_long(std::size_t end) noexcept {
  const auto rest = [&] { return std::string_view(text_ + ends_[size_], end - ends_[size_]); };
  if (!inside_word_ && (seams_ == nullptr || !seam_finder::pays_for(rest()))) {
    add(end, false);
    return true;
  }
  while (ends_[size_] < end) {
    const std::size_t begin = ends_[size_];
    const auto run = seams_->first_run(rest());
    if (run.seams == 0 && !add_fragment(begin + seams_->fragment_size(rest()), end)) return false;
    for (std::uint32_t seams = run.seams; seams != 0; seams &= seams - 1) {
      const auto last = static_cast<std::size_t>(std::countr_zero(seams));
      if (!add_fragment(begin + (last + 1) * seam_finder::run::character_bytes, end)) return false;
    }
  }
  inside_word_ = false;
  return true;
}

// Adds the word that ends at `end`, which may have any size. Returns false if the batch fills up
// before the whole word is added.
inline bool word_batch::cut_one(std::size_t end) noexcept {
  if (size_ == capacity) return false;
  if (end - ends_[size_] > short_table::key::max_bytes || inside_word_) return cut_long(end);
  add(end, false);
  return true;
}

std::size_t word_batch::fill_portable(std::span<const std::size_t> ends) noexcept {
  std::size_t i = 0;
  while (i < ends.size() && cut_one(ends[i])) ++i;
  for (std::size_t word = 0; word < size_; ++word) make_key(word);
  return i;
}

inline void word_batch::make_key(std::size_t i) noexcept {
  const char* const word = text_ + begin(i);
  const std::size_t size_bytes = end(i) - begin(i);
  const auto readable = static_cast<std::size_t>(text_end_ - word);
  if (size_bytes <= short_table::key::max_bytes) {
    const auto key = short_table::key::of(word, size_bytes, readable);
    short_keys_[i] = key;
    lines_[i] = &shorts_->line_of(key.hash());
  } else if (size_bytes <= long_table::key::max_bytes) {
    const auto key = long_table::key::of(word, size_bytes, readable);
    short_keys_[i] = longer;
    long_keys_[i] = key;
    lines_[i] = &longs_->line_of(key.hash());
  } else {
    short_keys_[i] = longer;
    lines_[i] = &no_line;
  }
  __builtin_prefetch(lines_[i]);
}

// Copies ids of the overflow cache, unless there are none, or more than max_ids() allows.
inline bool word_batch::copy_overflow(std::span<const std::int32_t> ids,
                                      std::int32_t*& to) noexcept {
  if (ids.data() == nullptr || ids.size() > long_table::key::max_bytes) return false;
  to = std::copy(ids.begin(), ids.end(), to);
  return true;
}

template <class Ids>
inline bool word_batch::copy_found(const Ids* found, std::int32_t*& to) const noexcept {
  if (found == nullptr) return false;
  if (!found->is_special()) {
    found->copy_to(to);
    to += found->count();
    return true;
  }
  if (!found->is_elsewhere()) return false;
  return copy_overflow(overflow_->ids_at(found->place()), to);
}

// Writes the ids of word `i` to `to` and advances it. Returns false if the word is not in the
// tables or needs special handling.
bool word_batch::copy_ids(std::size_t i, std::int32_t*& to) const noexcept {
  if (short_keys_[i] != longer) {
    const auto* line = static_cast<const short_table::line*>(lines_[i]);
    return copy_found(short_table::find(*line, short_keys_[i]), to);
  }
  if (lines_[i] == &no_line) {
    return copy_overflow(overflow_->find({text_ + begin(i), end(i) - begin(i)}), to);
  }
  const auto* line = static_cast<const long_table::line*>(lines_[i]);
  return copy_found(long_table::find(*line, long_keys_[i]), to);
}

std::size_t word_batch::look_up_portable(std::size_t first, std::int32_t*& out) const noexcept {
  std::size_t i = first;
  while (i < size_ && copy_ids(i, out)) ++i;
  return i;
}

// Adds word `i` to `found` if it is absent from the table for its size.
inline void word_batch::add_if_absent(std::uint16_t i, absent_words& found) const noexcept {
  if (short_keys_[i] != longer) {
    const auto* line = static_cast<const short_table::line*>(lines_[i]);
    found.shorts[found.short_count] = i;
    found.short_count += short_table::find(*line, short_keys_[i]) == nullptr ? 1U : 0U;
  } else if (lines_[i] != &no_line) {
    const auto* line = static_cast<const long_table::line*>(lines_[i]);
    found.longs[found.long_count] = i;
    found.long_count += long_table::find(*line, long_keys_[i]) == nullptr ? 1U : 0U;
  }
}

void word_batch::find_absent_portable(std::size_t first, absent_words& found) const noexcept {
  for (std::size_t i = first; i < size_; ++i) add_if_absent(static_cast<std::uint16_t>(i), found);
}

#if defined(__x86_64__)
#define MILLRACE_FAST __attribute__((target("avx2,bmi,bmi2")))

// Makes the key of a short word, where 16 bytes can be read, and stores it.
MILLRACE_FAST __attribute__((always_inline)) inline word_batch::short_table::key put_key(
    const char* text, std::size_t size, word_batch::short_table::key* to) noexcept {
  using key = word_batch::short_table::key;
  const key::form& form = key::forms[size];
  __m128i word = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text));
  word = _mm_and_si128(word, _mm_load_si128(reinterpret_cast<const __m128i*>(form.bytes.data())));
  word = _mm_or_si128(word, _mm_load_si128(reinterpret_cast<const __m128i*>(form.size.data())));
  _mm_store_si128(reinterpret_cast<__m128i*>(to), word);
  return {{static_cast<std::uint64_t>(_mm_cvtsi128_si64(word)),
           static_cast<std::uint64_t>(_mm_extract_epi64(word, 1))}};
}
#else
#define MILLRACE_FAST

// In general registers, where the hash needs the key.
inline word_batch::short_table::key put_key(const char* text, std::size_t size,
                                            word_batch::short_table::key* to) noexcept {
  return *to = word_batch::short_table::key::of(text, size, sizeof *to);
}
#endif

// Adds short words and makes their keys in one pass, without a call, and with one branch for a word
// that is not short. Returns how many of `ends` it added.
template <leading_space Space>
MILLRACE_FAST std::size_t word_batch::add_shorts(std::span<const std::size_t> ends) noexcept {
  using key = short_table::key;
  const char* const text = text_;
  const short_table::line* const lines = shorts_->lines();
  const unsigned shift = shorts_->shift();
  key* const keys = &short_keys_[size_];
  const void** const places = &lines_[size_];
  std::size_t* const stored = &ends_[size_ + 1];
  std::size_t begin = ends_[size_];

  // Sixteen bytes are read where a word begins, perhaps after a space. So the last words of a text
  // are left out.
  constexpr std::size_t most_read = sizeof(key) + (Space == leading_space::is_none ? 1 : 0);
  std::size_t most = std::min(ends.size(), capacity - size_);
  const auto readable = static_cast<std::size_t>(text_end_ - text_);
  while (most > 0 && (most > 1 ? ends[most - 2] : begin) + most_read > readable) --most;

  std::size_t n = 0;
  for (; n < most; ++n) {
    const std::size_t end = ends[n];
    std::size_t size = end - begin;
    if (size > key::max_bytes) [[unlikely]]
      break;
    std::size_t from = begin;
    if constexpr (Space == leading_space::is_none) {
      const std::size_t skipped = size > 1 && text[begin] == ' ' ? 1 : 0;
      from += skipped;
      size -= skipped;
    }
    const key made = put_key(text + from, size, keys + n);
    const short_table::line* const line = lines + (made.hash() >> shift);
    places[n] = line;
    __builtin_prefetch(line);
    stored[n] = end;
    begin = end;
  }
  size_ += n;
  return n;
}

template <leading_space Space>
std::size_t word_batch::fill_in_one_pass(std::span<const std::size_t> ends) noexcept {
  std::size_t i = 0;
  while (true) {
    if (!inside_word_) i += add_shorts<Space>(ends.subspan(i));
    if (i == ends.size()) return i;
    const std::size_t first = size_;
    const bool is_whole = cut_one(ends[i]);
    for (std::size_t word = first; word < size_; ++word) make_key(word);
    if (!is_whole) return i;
    ++i;
  }
}

#if defined(__x86_64__)
// Compares a key with both words of a line, 8 bytes at a time: bits 0 and 1 are for the first word,
// bits 2 and 3 for the second.
MILLRACE_FAST __attribute__((always_inline)) inline unsigned same_words(
    const word_batch::short_table::line& line, const word_batch::short_table::key& key) noexcept {
  const __m256i twice =
      _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(&key)));
  const __m256i words = _mm256_load_si256(reinterpret_cast<const __m256i*>(line.words.data()));
  return static_cast<unsigned>(
      _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(twice, words))));
}

MILLRACE_FAST __attribute__((always_inline)) inline bool is_in(
    const word_batch::short_table::line& line, const word_batch::short_table::key& key) noexcept {
  const unsigned same = same_words(line, key);
  return (same & same >> 1 & 0b101) != 0;
}

MILLRACE_FAST std::size_t word_batch::look_up_fast(std::size_t first,
                                                   std::int32_t*& out) const noexcept {
  const __m128i id_bits = _mm_set_epi32(-1, -1, -1, 0x00FFFFFF);
  const std::size_t size = size_;
  std::int32_t* to = out;
  std::size_t i = first;
  for (; i < size; ++i) {
    const auto* const line = static_cast<const short_table::line*>(lines_[i]);
    const unsigned same = same_words(*line, short_keys_[i]);
    const unsigned hit = same & same >> 1;  // bit 0: the first word, bit 2: the second
    if ((hit & 0b101) == 0) [[unlikely]] {
      std::int32_t* end = to;  // so that `to` stays in a register
      if (!copy_ids(i, end)) break;
      to = end;
      continue;
    }
    const auto* const ids =
        reinterpret_cast<const std::uint32_t*>(line->found.data()) + std::size_t{hit & 0b100};
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                     _mm_and_si128(id_bits, _mm_load_si128(reinterpret_cast<const __m128i*>(ids))));
    to += ids[0] >> 24;
  }
  out = to;
  return i;
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
    const auto* const line = static_cast<const short_table::line*>(lines_[i]);
    const short_table::key& key = short_keys_[i];
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

// First finds the words that look_up would not copy, without branches, and then looks at each.
MILLRACE_FAST void word_batch::find_absent_fast(std::size_t first,
                                                absent_words& found) const noexcept {
  std::array<std::uint16_t, capacity> rest;
  std::size_t count = 0;
  for (std::size_t i = first; i < size_; ++i) {
    const auto* const line = static_cast<const short_table::line*>(lines_[i]);
    rest[count] = static_cast<std::uint16_t>(i);
    count += is_in(*line, short_keys_[i]) ? 0U : 1U;
  }
  for (const std::uint16_t i : std::span(rest).first(count)) add_if_absent(i, found);
}
#undef MILLRACE_FAST

std::size_t word_batch::fill(std::span<const std::size_t> ends) noexcept {
  ends_[0] = ends_[size_];
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
