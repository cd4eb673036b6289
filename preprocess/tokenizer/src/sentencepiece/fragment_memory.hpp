// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <millrace/error.hpp>
#include <millrace/tokenizer/id_buffer.hpp>

#include "bpe/encoder_words.hpp"
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

  /// @param shared  outlives this
  fragment_memory(std::size_t memory_bytes, shared_tables& shared, instruction_set set)
      : words_(memory_bytes, shared, nullptr, set) {}

  /// Looks fragments up many at a time; what it does not give may still be remembered.
  word_batch& batch() noexcept { return words_.batch; }

  enum class answer : std::uint8_t {
    unknown,
    known,   ///< its ids are appended
    special  ///< only in rare(), if anywhere
  };
  answer recall(std::string_view fragment, id_buffer& ids) {
    if (fragment.size() <= short_key::max_bytes)
      return recall<short_key>(words_.shorts, fragment, ids);
    if (fragment.size() <= long_key::max_bytes)
      return recall<long_key>(words_.longs, fragment, ids);
    return answer::special;
  }

  /// Whether the batch's `i`th fragment is in front now, as it was behind.
  bool fetch(std::size_t i) noexcept {
    return is_short(i)
               ? words_.shorts.find(words_.batch.short_key(i), words_.batch.short_key(i).hash()) !=
                     nullptr
               : words_.longs.find(words_.batch.long_key(i), words_.batch.long_key(i).hash()) !=
                     nullptr;
  }
  /// What is absent of the batch from `first` on, prepared for fetch() and recall(). Valid until
  /// the next call.
  const word_batch::absent_words& prefetch_absent(std::size_t first) noexcept {
    return words_.prefetch_absent(first);
  }

  /// @return false if they are too many: then the fragment is marked as special
  /// @pre fragment.size() <= max_bytes, ids are below 2^24
  bool remember(std::string_view fragment, std::span<const std::int32_t> ids) noexcept {
    return fragment.size() <= short_key::max_bytes
               ? remember<short_key>(words_.shorts, fragment, ids)
               : remember<long_key>(words_.longs, fragment, ids);
  }

  /// The batch is not to give this fragment.
  /// @pre fragment.size() <= max_bytes
  void mark_special(std::string_view fragment) noexcept {
    if (fragment.size() <= short_key::max_bytes) {
      mark_special<short_key>(words_.shorts, fragment);
    } else {
      mark_special<long_key>(words_.longs, fragment);
    }
  }

  rare_words& rare() noexcept { return words_.rare; }

 private:
  using short_key = word_batch::short_table::key;
  using long_key = word_batch::long_table::key;

  bool is_short(std::size_t i) const noexcept {
    return words_.batch.end(i) - words_.batch.begin(i) <= short_key::max_bytes;
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

  encoder_words words_;
};

}  // namespace millrace::tokenizer::detail
