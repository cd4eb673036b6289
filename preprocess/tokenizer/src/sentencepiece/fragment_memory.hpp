// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <millrace/error.hpp>
#include <millrace/tokenizer/id_buffer.hpp>

#include "bpe/rare_words.hpp"
#include "bpe/remembered_words.hpp"
#include "bpe/word_batch.hpp"
#include "sentencepiece/engines.hpp"

namespace millrace::tokenizer::detail {

/// @throws config_error  the model has more pieces than the tables take ids
inline void check_size(const sentencepiece_model& model) {
  constexpr auto most = static_cast<std::size_t>(word_batch::short_table::ids::max_id) + 1;
  if (model.pieces.size() > most) {
    throw config_error("a SentencePiece model of " + std::to_string(model.pieces.size()) +
                       " pieces, expected at most " + std::to_string(most));
  }
}

/// The ids of fragments that one encoder has met, in the tables of the byte-level engine: those
/// that a loop only copies, and others that somebody has to look at first.
///
/// Holds only what an engine has computed, so nothing but speed depends on its contents. One
/// thread.
class fragment_memory {
 public:
  static constexpr std::size_t max_bytes = word_batch::long_table::key::max_bytes;
  /// Longer fragments are not remembered.
  static constexpr std::size_t max_rare_bytes = rare_words::max_word_bytes;

  // Half of the memory for short words, an eighth for longer ones, both with as much behind as in
  // front; a quarter for the rest.
  explicit fragment_memory(const sentencepiece_tuning& tuning)
      : shorts_(table_line_bits(tuning.memory_bytes / 4)),
        longs_(table_line_bits(tuning.memory_bytes / 16)),
        rare_(tuning.memory_bytes / 4),
        batch_(shorts_.front, longs_.front, nullptr, tuning.set) {}

  fragment_memory(const fragment_memory&) = delete;
  fragment_memory& operator=(const fragment_memory&) = delete;

  /// Looks fragments up many at a time; what it does not give may still be remembered.
  word_batch& batch() noexcept { return batch_; }

  enum class answer : std::uint8_t {
    unknown,
    known,   ///< its ids are appended
    special  ///< only in rare(), if anywhere
  };
  answer recall(std::string_view fragment, id_buffer& ids) {
    if (fragment.size() <= short_key::max_bytes) return recall<short_key>(shorts_, fragment, ids);
    if (fragment.size() <= long_key::max_bytes) return recall<long_key>(longs_, fragment, ids);
    return answer::special;
  }

  /// Whether the batch's `i`th fragment is in front now, as it was behind.
  bool fetch(std::size_t i) noexcept {
    return is_short(i) ? shorts_.find(batch_.short_key(i), batch_.short_key(i).hash()) != nullptr
                       : longs_.find(batch_.long_key(i), batch_.long_key(i).hash()) != nullptr;
  }
  /// For fetch().
  void prefetch(std::size_t i) const noexcept {
    is_short(i) ? shorts_.prefetch(batch_.short_key(i).hash())
                : longs_.prefetch(batch_.long_key(i).hash());
  }

  /// @return false if they are too many: then the fragment is marked as special
  /// @pre fragment.size() <= max_bytes, ids are below 2^24
  bool remember(std::string_view fragment, std::span<const std::int32_t> ids) noexcept {
    return fragment.size() <= short_key::max_bytes ? remember<short_key>(shorts_, fragment, ids)
                                                   : remember<long_key>(longs_, fragment, ids);
  }

  /// The batch is not to give this fragment.
  /// @pre fragment.size() <= max_bytes
  void mark_special(std::string_view fragment) noexcept {
    if (fragment.size() <= short_key::max_bytes) {
      mark_special<short_key>(shorts_, fragment);
    } else {
      mark_special<long_key>(longs_, fragment);
    }
  }

  rare_words& rare() noexcept { return rare_; }

 private:
  using short_key = word_batch::short_table::key;
  using long_key = word_batch::long_table::key;

  bool is_short(std::size_t i) const noexcept {
    return batch_.end(i) - batch_.begin(i) <= short_key::max_bytes;
  }

  template <class Key, class Words>
  static answer recall(Words& words, std::string_view fragment, id_buffer& ids) {
    const Key key = Key::of(fragment.data(), fragment.size(), fragment.size());
    const auto* known = words.find(key, key.hash());
    if (known == nullptr) return answer::unknown;
    if (known->is_special()) return answer::special;
    known->copy_to(ids.room(known->capacity));
    ids.add(known->count());
    return answer::known;
  }

  template <class Key, class Table>
  static bool remember(remembered_words<Table>& words, std::string_view fragment,
                       std::span<const std::int32_t> ids) noexcept {
    typename Table::ids found;
    const bool fits = ids.size() <= found.capacity;
    if (fits) {
      found.set(ids);
    } else {
      found.set_elsewhere();
    }
    words.put(Key::of(fragment.data(), fragment.size(), fragment.size()), found);
    return fits;
  }

  template <class Key, class Table>
  static void mark_special(remembered_words<Table>& words, std::string_view fragment) noexcept {
    typename Table::ids found;
    found.set_elsewhere();
    words.put(Key::of(fragment.data(), fragment.size(), fragment.size()), found);
  }

  remembered_words<word_batch::short_table> shorts_;
  remembered_words<word_batch::long_table> longs_;
  rare_words rare_;
  word_batch batch_;
};

}  // namespace millrace::tokenizer::detail
