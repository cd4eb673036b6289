// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <millrace/error.hpp>
#include <millrace/tokenizer/detail/id_buffer.hpp>

#include "bpe/pretoken_cache.hpp"
#include "sentencepiece/model_file.hpp"

namespace millrace::tokenizer::detail {

/// Checks that the cache tables can hold the ids of the model.
/// @throws config_error  the model has more pieces than the tables can represent
inline void check_size(const sentencepiece_model& model) {
  constexpr auto most = static_cast<std::size_t>(word_batch::short_table::ids::max_id) + 1;
  if (model.pieces.size() > most) {
    throw config_error("a SentencePiece model of " + std::to_string(model.pieces.size()) +
                       " pieces, expected at most " + std::to_string(most));
  }
}

/// Caches the fragments that one encoder has met, with their ids, in a pretoken_cache. (A fragment
/// is a part of a text that encodes independently.) The tables hold the ids of most fragments.
/// Those of a special fragment are in overflow(): because they are too many, or because the engine
/// must check something before it uses them.
///
/// Holds only computed results, so its contents affect only speed. For one thread.
class fragment_cache {
  // Calls use(table, key) with the table for fragments of this size, and the fragment's key there.
  // @pre fragment.size() <= max_bytes
  template <class Use>
  auto in_table(std::string_view fragment, const Use& use) {
    const auto use_in = [&]<class Table>(two_level_table<Table>& words) {
      return use(words, Table::key::of(fragment.data(), fragment.size(), fragment.size()));
    };
    const bool is_short = fragment.size() <= word_batch::short_table::key::max_bytes;
    return is_short ? use_in(cache_.shorts) : use_in(cache_.longs);
  }

  template <class Table>
  static typename Table::ids ids_at(const overflow_cache::place& place) noexcept {
    typename Table::ids found;
    found.set_elsewhere(place);
    return found;
  }

 public:
  static constexpr std::size_t max_bytes = word_batch::long_table::key::max_bytes;
  /// Longer fragments are not cached.
  static constexpr std::size_t max_overflow_bytes = overflow_cache::max_word_bytes;

  /// @param shared  must outlive this object
  fragment_cache(std::size_t cache_bytes, shared_pretoken_cache& shared, instruction_set set)
      : cache_(cache_bytes, shared, nullptr, set) {}

  /// The batch looks up many fragments at a time. A fragment that the batch does not find may still
  /// be cached in a table that the batch does not read.
  word_batch& batch() noexcept { return cache_.batch; }

  enum class answer : std::uint8_t {
    unknown,
    known,   ///< its ids are appended
    special  ///< its ids are in overflow(), or are not cached
  };
  answer find(std::string_view fragment, id_buffer& ids) {
    if (fragment.size() > max_bytes) return answer::special;
    return in_table(fragment, [&](auto& words, const auto& key) {
      const auto* known = words.find(key, key.hash());
      if (known == nullptr) return answer::unknown;
      if (known->is_special()) return answer::special;
      known->copy_to(ids.room(known->capacity));
      ids.add(known->count());
      return answer::known;
    });
  }

  /// Copies fragment `i` of the batch to the front table if it is not there yet. Returns false if
  /// the fragment is not cached.
  bool fetch(std::size_t i) noexcept {
    return cache_.batch.is_short(i)
               ? cache_.shorts.find(cache_.batch.short_key(i), cache_.batch.short_key(i).hash()) !=
                     nullptr
               : cache_.longs.find(cache_.batch.long_key(i), cache_.batch.long_key(i).hash()) !=
                     nullptr;
  }
  /// True if fragment `i` of the batch could be in the front tables, but is not.
  bool is_absent(std::size_t i) const noexcept { return cache_.is_absent(i); }
  /// Finds the fragments of the batch, starting at fragment `first`, that are not in the front
  /// tables. Prefetches them for fetch(), find() and put(). The result is valid until the next
  /// call.
  const word_batch::absent_words& prefetch_absent(std::size_t first) noexcept {
    return cache_.prefetch_absent(first);
  }

  /// Caches a fragment with its ids.
  /// @return false if the fragment has too many ids for the tables; then nothing changes
  /// @pre fragment.size() <= max_bytes, and all ids are below 2^24
  bool put(std::string_view fragment, std::span<const std::int32_t> ids) noexcept {
    return in_table(fragment, [&]<class Table>(two_level_table<Table>& words, const auto& key) {
      typename Table::ids found;
      if (ids.size() > found.capacity) return false;
      found.set(ids);
      words.put(key, key.hash(), found);
      return true;
    });
  }

  /// Caches a fragment as special. If `place` is given, the batch copies the ids at this place of
  /// overflow(); otherwise its look-ups stop at the fragment.
  /// @pre fragment.size() <= max_bytes
  void put_special(std::string_view fragment, const overflow_cache::place& place = {}) noexcept {
    in_table(fragment, [&]<class Table>(two_level_table<Table>& words, const auto& key) {
      words.put(key, key.hash(), ids_at<Table>(place));
    });
  }
  /// As put_special(), for a fragment that is already cached: other encoders do not know the place.
  void set_place(std::string_view fragment, const overflow_cache::place& place) noexcept {
    in_table(fragment, [&]<class Table>(two_level_table<Table>& words, const auto& key) {
      words.put_in_front(key, key.hash(), ids_at<Table>(place));
    });
  }

  overflow_cache& overflow() noexcept { return cache_.overflow; }

 private:
  pretoken_cache cache_;
};

}  // namespace millrace::tokenizer::detail
