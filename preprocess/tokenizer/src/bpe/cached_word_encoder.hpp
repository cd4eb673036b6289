// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "bpe/pretoken_cache.hpp"
#include "core/interfaces.hpp"
#include "split/splitters.hpp"

namespace millrace::tokenizer::detail {

/// Encodes a text word by word, for one thread. Looks up each word in its cache (word_batch), and
/// calls `encode_new` only for words that are not cached.
///
/// Owns a cache of words. A word that is not in this cache is looked up in the cache that all
/// encoders share. The cache contents affect only speed.
class cached_word_encoder {
 public:
  /// @param shared  must outlive this object
  cached_word_encoder(std::size_t cache_bytes, shared_pretoken_cache& shared, instruction_set set,
                      leading_space space)
      : cache_(cache_bytes, shared, nullptr, set, space) {}

  /// Appends the ids of `text`, which `splitter` splits into words.
  ///
  /// @param encode_new  (std::string_view word, id_buffer&) -> std::optional<encode_fault>: appends
  ///                    the ids of a word. The ids must depend only on the word's bytes and range
  ///                    from 0 to word_ids::max_id. If `encode_new` returns a fault, encode()
  ///                    stops. The fault's offset must be relative to the word.
  template <class EncodeNew>
  std::optional<encode_fault> encode(std::string_view text, const word_splitter& splitter,
                                     id_buffer& ids, EncodeNew&& encode_new) {
    cache_.batch.start(text.data(), text.size());
    std::array<std::size_t, word_batch::capacity> ends;
    for (std::size_t at = 0; at < text.size();) {
      auto rest = std::span<const std::size_t>(ends).first(splitter.next_ends(text, at, ends));
      at = rest.back();
      while (!rest.empty()) {
        rest = rest.subspan(cache_.batch.fill(rest));
        if (auto fault = encode_batch(text, ids, encode_new)) return fault;
      }
    }
    return std::nullopt;
  }

 private:
  template <class EncodeNew>
  std::optional<encode_fault> encode_batch(std::string_view text, id_buffer& ids,
                                           EncodeNew& encode_new) {
    has_prefetched_ = false;
    for (std::size_t i = 0;; ++i) {
      std::int32_t* const begin = ids.room(cache_.batch.max_ids());
      std::int32_t* out = begin;
      i = cache_.batch.look_up(i, out);
      ids.add(static_cast<std::size_t>(out - begin));
      if (i == cache_.batch.size()) return std::nullopt;
      const std::string_view word =
          text.substr(cache_.batch.begin(i), cache_.batch.end(i) - cache_.batch.begin(i));
      auto fault =
          cache_.batch.is_short(i)
              ? encode_missing(cache_.shorts, cache_.batch.short_key(i), i, word, ids, encode_new)
          : word.size() <= word_batch::long_table::key::max_bytes
              ? encode_missing(cache_.longs, cache_.batch.long_key(i), i, word, ids, encode_new)
              : encode_overflow(word, ids, encode_new);
      if (fault) {
        fault->offset_bytes += cache_.batch.begin(i);
        return fault;
      }
    }
  }

  // Encodes word `i` of the batch, which look_up did not find, or whose entry needs special
  // handling.
  template <class Table, class EncodeNew>
  std::optional<encode_fault> encode_missing(two_level_table<Table>& words,
                                             const typename Table::key& key, std::size_t i,
                                             std::string_view word, id_buffer& ids,
                                             EncodeNew& encode_new) {
    if (!has_prefetched_ && !words.has_in_front(key)) {
      cache_.prefetch_absent(i);
      has_prefetched_ = true;
    }
    const std::uint64_t hash = key.hash();
    if (const auto* known = words.find(key, hash)) {
      if (known->is_elsewhere()) {
        auto fault = encode_overflow(word, ids, encode_new);
        typename Table::ids found;
        found.set_elsewhere(cache_.overflow.place_of(word));
        words.put_in_front(key, hash, found);
        return fault;
      }
      known->copy_to(ids.room(known->capacity));
      ids.add(known->count());
      return std::nullopt;
    }
    const std::size_t before = ids.size();
    if (auto fault = encode_new(word, ids)) return fault;
    const auto all = ids.ids().subspan(before);
    typename Table::ids found;
    if (all.size() <= found.capacity) {
      found.set(all);
    } else {
      found.set_elsewhere(cache_.overflow.put(word, all));
    }
    words.put(key, hash, found);
    return std::nullopt;
  }

  // Encodes a word that is too long, or has too many ids, for the tables.
  template <class EncodeNew>
  std::optional<encode_fault> encode_overflow(std::string_view word, id_buffer& ids,
                                              EncodeNew& encode_new) {
    if (const auto known = cache_.overflow.find(word); known.data() != nullptr) {
      ids.append(known);
      return std::nullopt;
    }
    const std::size_t before = ids.size();
    if (auto fault = encode_new(word, ids)) return fault;
    cache_.overflow.put(word, ids.ids().subspan(before));
    return std::nullopt;
  }

  pretoken_cache cache_;
  bool has_prefetched_ = false;  // the absent words of the batch
};

}  // namespace millrace::tokenizer::detail
