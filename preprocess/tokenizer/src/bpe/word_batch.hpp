// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "bpe/overflow_cache.hpp"
#include "bpe/pretoken_table.hpp"
#include "bpe/seams.hpp"
#include "split/instruction_set.hpp"

namespace millrace::tokenizer::detail {

/// How a space before a word affects its ids.
enum class leading_space : std::uint8_t {
  counts,   ///< the space is part of the word
  is_none,  ///< the space is ignored, unless the word is only a space
};

/// How runs of one byte are stored that have more than 15 bytes, but at most 127.
enum class long_runs : std::uint8_t {
  are_words,  ///< by their size, as all words
  are_short,  ///< in the table of short words
};

/// Words that are looked up together, so that the prefetches of their cache lines overlap. All text
/// passes through this hot loop:
///
///   splitter.next_ends()  ends of the words
///   fill()                keys and cache lines of the words; prefetches the lines
///   look_up()             ids, until a word is missing from the tables
///
/// The words are adjacent in one text. A long word is cut at its seams, and each fragment is stored
/// as a word. (A seam is a place where a text can be cut without changing its ids.)
class word_batch {
 public:
  using short_table = pretoken_table<2>;  ///< words of up to 15 bytes, perhaps longer runs
  using long_table = pretoken_table<4>;   ///< other words of up to 31 bytes

  /// A splitter stops when it has no room for the ends of a window, so after about 260 to 320
  /// words.
  static constexpr std::size_t capacity = 320;

  /// The tables, `overflow` and `seams` must outlive this object. If `seams` is null, words are not
  /// cut. For words that are too long for the tables, `overflow` must hold nothing but their ids.
  /// @pre `seams` is null if `space` is `leading_space::is_none`
  word_batch(const short_table& shorts, const long_table& longs, const overflow_cache& overflow,
             const seam_finder* seams, instruction_set set,
             leading_space space = leading_space::counts, long_runs runs = long_runs::are_words)
      : shorts_(&shorts),
        longs_(&longs),
        overflow_(&overflow),
        seams_(seams),
        set_(set),
        space_(space),
        runs_(runs) {}

  /// Starts a new text. Its first word begins at the first byte.
  void start(const char* text, std::size_t size_bytes) noexcept {
    text_ = text;
    text_end_ = text + size_bytes;
    size_ = 0;
    words_[0].end = 0;
    inside_word_ = false;
  }

  /// Replaces the batch with the words that end at `ends`, until all are added or the batch is
  /// full.
  /// @return the number of `ends` whose words are completely added; call again with the remaining
  ///         `ends`.
  std::size_t fill(std::span<const std::size_t> ends) noexcept;

  std::size_t size() const noexcept { return size_; }

  /// Upper bound on the number of ids that look_up writes in one call.
  std::size_t max_ids() const noexcept {
    return size_ * (long_table::key::max_bytes + 1) + words_[size_].end - words_[0].end;
  }

  /// Writes the ids of word `first` and of all later words to `out`, and advances `out`. Stops at
  /// the first word that is not in the tables or needs special handling.
  /// @return the index of the word where it stopped, or size()
  std::size_t look_up(std::size_t first, std::int32_t*& out) const noexcept;

  /// Indices of the words that are not in the table for their size. Excludes words that are too
  /// long for both tables, and long runs.
  struct absent_words {
    std::array<std::uint16_t, capacity> shorts;
    std::array<std::uint16_t, capacity> longs;
    std::size_t short_count = 0;
    std::size_t long_count = 0;
  };
  /// Finds the absent words among word `first` and all later words.
  void find_absent(std::size_t first, absent_words& found) const noexcept;

  /// Byte offset where word `i` begins. With leading_space::is_none, a leading space is skipped.
  std::size_t begin(std::size_t i) const noexcept {
    const std::size_t after_last = words_[i].end;
    const bool skips = space_ == leading_space::is_none && skips_space(after_last, end(i));
    return after_last + (skips ? 1 : 0);
  }
  std::size_t end(std::size_t i) const noexcept { return words_[i + 1].end; }
  /// True if the word is only a fragment of a pretoken.
  bool is_fragment(std::size_t i) const noexcept { return is_fragment_[i] != 0; }
  /// True if the word belongs into the table of short words.
  bool is_short(std::size_t i) const noexcept { return short_key(i) != longer; }
  const short_table::key& short_key(std::size_t i) const noexcept {
    return words_[i + 1].short_key;
  }
  const long_table::key& long_key(std::size_t i) const noexcept { return long_keys_[i]; }

 private:
  static constexpr std::size_t together = 8;  // words whose keys are compared before a branch

  // Steps of fill(): finds the ends of words and fragments, and makes their keys.
  std::size_t fill_portable(std::span<const std::size_t> ends) noexcept;
  template <leading_space Space>
  std::size_t fill_in_one_pass(std::span<const std::size_t> ends) noexcept;
  template <leading_space Space>
  std::size_t add_shorts(std::span<const std::size_t> ends) noexcept;
  bool cut_one(std::size_t end) noexcept;
  bool cut_long(std::size_t end) noexcept;
  void add(std::size_t end, bool is_fragment) noexcept;
  void make_key(std::size_t i) noexcept;
  void make_keys(std::size_t first) noexcept;
  bool is_short_run(const char* word, std::size_t size) const noexcept;
  bool is_short_run_fast(std::size_t begin, std::size_t size) const noexcept;
  bool copy_ids(std::size_t i, std::int32_t*& to) const noexcept;
  template <class Ids>
  bool copy_found(std::size_t i, const Ids* found, std::int32_t*& to) const noexcept;
  bool copy_overflow(std::size_t i, std::span<const std::int32_t> ids,
                     std::int32_t*& to) const noexcept;
  std::size_t look_up_portable(std::size_t first, std::int32_t*& out) const noexcept;
  std::size_t look_up_fast(std::size_t first, std::int32_t*& out) const noexcept;
  std::size_t look_up_each(std::size_t i, std::size_t end, std::int32_t*& out) const noexcept;
  void add_if_absent(std::uint16_t i, absent_words& found) const noexcept;
  void find_absent_portable(std::size_t first, absent_words& found) const noexcept;
  void find_absent_fast(std::size_t first, absent_words& found) const noexcept;
  bool skips_space(std::size_t begin, std::size_t end) const noexcept {
    return end - begin > 1 && text_[begin] == ' ';
  }

  // Stands for the short key of a long word. It stores a size that no short word and no run has.
  static constexpr short_table::key longer{{0, ~std::uint64_t{0}}};

  // The line of a word that is too long for both tables. It holds no word.
  static const short_table::line no_line;

  struct entry {
    short_table::key short_key;  // of a long word: one that no table holds
    const void* line;            // where the word is if it is in its table
    std::size_t end;
  };
  static_assert(sizeof(entry) == 32);

  // Word i is at i + 1. At 0, only `end` is valid: where the first word begins.
  alignas(32) std::array<entry, capacity + 1> words_;
  std::array<std::uint8_t, capacity> is_fragment_{};
  std::array<long_table::key, capacity> long_keys_;
  std::size_t size_ = 0;

  const short_table* shorts_;
  const long_table* longs_;
  const overflow_cache* overflow_;
  const seam_finder* seams_;
  const char* text_ = nullptr;
  const char* text_end_ = nullptr;
  instruction_set set_;
  leading_space space_;
  long_runs runs_;
  bool inside_word_ = false;  // the last fragment added does not end its word
};

}  // namespace millrace::tokenizer::detail
