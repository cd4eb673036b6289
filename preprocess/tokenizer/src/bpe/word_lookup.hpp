// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "bpe/encoder_words.hpp"
#include "composed/section_engine.hpp"
#include "split/word_splitter.hpp"

namespace millrace::tokenizer::detail {

/// Ids of a text's words for one thread: by look-up (word_batch), and for a word that is new by
/// whatever model the caller has, once.
///
/// Owns what it remembers, in as many bytes as it is given, and shares what others have met; it
/// forgets what has no room, and nothing but speed depends on that.
class word_lookup {
 public:
  /// @param shared  outlives this
  word_lookup(std::size_t memory_bytes, shared_tables& shared, instruction_set set,
              leading_space space)
      : words_(memory_bytes, shared, nullptr, set, space) {}

  /// Appends the ids of `text`, whose words end where `splitter` says.
  ///
  /// @param encode_new  (std::string_view word, id_buffer&) -> std::optional<encode_fault>: appends
  ///                    the ids of a word, which depend on its bytes alone and are in 0 ..
  ///                    word_ids::max_id. It ends the text with a fault, whose offset is in the
  ///                    word.
  template <class EncodeNew>
  std::optional<encode_fault> encode(std::string_view text, const word_splitter& splitter,
                                     id_buffer& ids, EncodeNew&& encode_new) {
    words_.batch.start(text.data(), text.size());
    std::array<std::size_t, word_batch::capacity> ends;
    for (std::size_t at = 0; at < text.size();) {
      auto rest = std::span<const std::size_t>(ends).first(splitter.next_ends(text, at, ends));
      at = rest.back();
      while (!rest.empty()) {
        rest = rest.subspan(words_.batch.fill(rest));
        if (auto fault = encode_batch(text, ids, encode_new)) return fault;
      }
    }
    return std::nullopt;
  }

 private:
  template <class EncodeNew>
  std::optional<encode_fault> encode_batch(std::string_view text, id_buffer& ids,
                                           EncodeNew& encode_new) {
    for (std::size_t i = 0;; ++i) {
      std::int32_t* const begin = ids.room(word_batch::max_ids);
      std::int32_t* out = begin;
      i = words_.batch.look_up(i, out);
      ids.add(static_cast<std::size_t>(out - begin));
      if (i == words_.batch.size()) return std::nullopt;
      const std::string_view word =
          text.substr(words_.batch.begin(i), words_.batch.end(i) - words_.batch.begin(i));
      auto fault =
          word.size() <= word_batch::short_table::key::max_bytes
              ? encode_missing(words_.shorts, words_.batch.short_key(i), word, ids, encode_new)
          : word.size() <= word_batch::long_table::key::max_bytes
              ? encode_missing(words_.longs, words_.batch.long_key(i), word, ids, encode_new)
              : encode_rare(word, ids, encode_new);
      if (fault) {
        fault->offset_bytes += words_.batch.begin(i);
        return fault;
      }
    }
  }

  // A word that look_up did not find, or found not to be that simple.
  template <class Table, class EncodeNew>
  std::optional<encode_fault> encode_missing(remembered_words<Table>& words,
                                             const typename Table::key& key, std::string_view word,
                                             id_buffer& ids, EncodeNew& encode_new) {
    if (const auto* known = words.find(key, key.hash())) {
      if (known->is_elsewhere()) return encode_rare(word, ids, encode_new);
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
      found.set_elsewhere();
      words_.rare.put(word, all);
    }
    words.put(key, found);
    return std::nullopt;
  }

  // A word that no table has room for.
  template <class EncodeNew>
  std::optional<encode_fault> encode_rare(std::string_view word, id_buffer& ids,
                                          EncodeNew& encode_new) {
    if (const auto known = words_.rare.find(word); known.data() != nullptr) {
      ids.append(known);
      return std::nullopt;
    }
    const std::size_t before = ids.size();
    if (auto fault = encode_new(word, ids)) return fault;
    words_.rare.put(word, ids.ids().subspan(before));
    return std::nullopt;
  }

  encoder_words words_;
};

}  // namespace millrace::tokenizer::detail
