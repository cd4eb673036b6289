// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/tokenizer/detail/id_buffer.hpp>

#include "bpe/bpe_merger.hpp"
#include "bpe/merge_table.hpp"
#include "bpe/pair_table.hpp"
#include "bpe/short_merge.hpp"
#include "bpe/token_table.hpp"
#include "split/instruction_set.hpp"

namespace millrace::tokenizer::detail {

/// The merges of a byte-level vocabulary, in the fastest form that the vocabulary allows.
/// Immutable; threads may share it.
class byte_merges {
 public:
  /// @param byte_ids  token of each byte, or -1 if the byte produces no token
  /// @param rules     in order of rank
  /// @param tokens    the results of the rules, with their bytes; must outlive this object
  byte_merges(const std::array<std::int32_t, 256>& byte_ids, std::vector<merge_rule> rules,
              const token_table& tokens);

  /// @param tokens  as they were when the merges were written; must outlive this object
  byte_merges(table_reader& in, const token_table& tokens);
  void write(table_writer& out) const;

  const std::array<std::int32_t, 256>& byte_ids() const noexcept { return byte_ids_; }
  const token_table& tokens() const noexcept { return *tokens_; }
  const merge_table& all() const noexcept { return *all_; }
  /// The merges as a pair_table. Null if ids do not rise with rank, or if ids exceed
  /// pair_table::max_id.
  const pair_table* ordered() const noexcept { return ordered_ ? &*ordered_ : nullptr; }
  /// True if every byte has a token.
  bool covers_all_bytes() const noexcept { return covers_all_bytes_; }

  /// True if merging the bytes of the token is known to give that token. False if this is unknown.
  bool surely_reaches(std::int64_t id) const noexcept {
    return static_cast<std::size_t>(id) < reached_.size() &&
           reached_[static_cast<std::size_t>(id)] != 0;
  }

 private:
  template <class Io, class Self>
  static void fields(Io& io, Self& self) {
    io(self.byte_ids_);
    io(self.reached_);
    io(self.covers_all_bytes_);
  }

  std::array<std::int32_t, 256> byte_ids_{};
  const token_table* tokens_;
  std::optional<merge_table> all_;
  std::optional<pair_table> ordered_;
  array_or_view<std::uint8_t> reached_;  // by id; 1 for results of rules that can apply, else 0
  bool covers_all_bytes_ = false;
};

/// Merges the bytes of one word at a time, for one thread.
class byte_merger {
 public:
  /// @param merges  must outlive this object
  byte_merger(const byte_merges& merges, instruction_set set)
      : merges_(&merges), long_merger_(merges.all()), set_(set) {}

  /// Returns the ids of `word`, valid until the next call.
  /// @pre word.size() <= bpe_merger::max_symbols
  std::span<const std::int32_t> merge(std::string_view word);

  /// True if merge_together() may be called.
  bool merges_together() const noexcept {
    return merges_->ordered() != nullptr && merges_->covers_all_bytes();
  }
  /// Returns the ids of several words, valid until the next call. The ids are the same as from
  /// merge(), but take less time per word.
  /// @pre merges_together(), 0 < size() <= short_word::max_bytes for each word,
  ///      words.size() <= short_word::most_at_once
  std::span<const short_word> merge_together(std::span<const std::string_view> words);

  /// Appends the ids of `word`, which may be of any size. To bound memory and time, works on one
  /// part of the word at a time. If a long word has bytes without a token, first makes a copy of
  /// the word without these bytes.
  void append(std::string_view word, id_buffer& ids);

 private:
  static constexpr std::size_t part_bytes = 512;

  std::string_view with_tokens(std::string_view word);
  bool follows(std::int32_t left, std::int32_t right);
  std::size_t drop_last(id_buffer& ids) const noexcept;

  std::array<short_word, short_word::most_at_once> shorts_;
  medium_word medium_;
  const byte_merges* merges_;
  bpe_merger long_merger_;
  std::vector<std::int32_t> symbols_;
  std::vector<std::int32_t> part_ids_;
  std::string seam_;     // bytes of two adjacent tokens
  std::string covered_;  // the bytes of one word that have tokens
  instruction_set set_;
};

}  // namespace millrace::tokenizer::detail
