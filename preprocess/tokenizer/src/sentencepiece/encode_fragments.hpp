// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/tokenizer/detail/id_buffer.hpp>

#include "sentencepiece/fragment_cache.hpp"
#include "sentencepiece/text_front.hpp"

namespace millrace::tokenizer::detail {

/// Replaces consecutive ids of unknown characters with one id. The ids may come from different
/// fragments.
///
/// @param begin       index of the first id to check; earlier ids are already checked
/// @param text_begin  index of the text's first id; earlier ids belong to another text
inline void fuse_unknown(id_buffer& ids, std::size_t begin, std::size_t text_begin,
                         std::int32_t unknown) {
  const std::span<std::int32_t> all = ids.ids();
  // Nearly always, no two of them are consecutive. A loop without a branch finds that out fast.
  std::uint32_t consecutive = 0;
  for (std::size_t i = std::max(begin, text_begin + 1); i < all.size(); ++i) {
    consecutive |= std::uint32_t{all[i] == unknown} & std::uint32_t{all[i - 1] == unknown};
  }
  if (consecutive == 0) return;
  std::size_t kept = begin;
  for (std::size_t i = begin; i < all.size(); ++i) {
    const bool again = all[i] == unknown && kept > text_begin && all[kept - 1] == unknown;
    all[kept] = all[i];
    kept += again ? 0 : 1;
  }
  ids.truncate(kept);
}

/// Appends an id and its span. Joins an unknown id to the same id before it.
///
/// @param text_begin  index of the text's first id
/// @param unknown     the id to join; -1 for none
inline void put_with_span(std::int32_t id, byte_span span, id_buffer& ids,
                          std::vector<byte_span>& spans, std::size_t text_begin,
                          std::int32_t unknown) {
  if (id == unknown && ids.size() > text_begin && ids.ids().back() == unknown) {
    spans.back().end = span.end;
    return;
  }
  ids.push_back(id);
  spans.push_back(span);
}

/// Encodes the fragments of a batch. Engine must provide:
///
///   bool take(ids, count)
///     Called after the batch has written `count` ids to the room of `ids`. Either adds these ids
///     to `ids` and returns true, or returns false. If it returns false, encode_fragment is called
///     for each fragment of these ids.
///   void encode_fragment(fragment, ids)
///     Encodes one raw fragment, whether or not the batch finds it in the cache.
///   void expect_growth(ids)
///     Throws if all fragments so far gave more ids than the growth limit of the text allows.
///   bool is_absent(i)
///     True if the batch could find fragment `i` in a table, but the table does not have it.
///   bool learn(text, first)
///     Called once per batch, at the first absent fragment. May cache the new fragments of `text`
///     from `first` on, or only prefetch what encode_fragment will read for them. Returns false if
///     it caches none.
template <class Engine>
void encode_batch(std::string_view text, word_batch& batch, Engine& engine, id_buffer& ids) {
  const auto fragment = [&](std::size_t i) {
    return text.substr(batch.begin(i), batch.end(i) - batch.begin(i));
  };
  bool has_learned = false;
  for (std::size_t i = 0;; ++i) {
    const std::size_t first = i;
    std::int32_t* const begin = ids.room(batch.max_ids());
    std::int32_t* out = begin;
    i = batch.look_up(i, out);
    if (!engine.take(ids, static_cast<std::size_t>(out - begin))) {
      for (std::size_t one = first; one < i; ++one) engine.encode_fragment(fragment(one), ids);
    }
    engine.expect_growth(ids);
    if (i == batch.size()) return;
    if (!has_learned && engine.is_absent(i)) {
      has_learned = true;
      if (engine.learn(text, i)) {
        --i;
        continue;
      }
    }
    engine.encode_fragment(fragment(i), ids);
  }
}

/// Encodes a normalized text, for a model whose raw text must not be cut.
/// @pre !front.cuts_raw_text()
template <class Engine>
void encode_normalized_fragments(std::string_view text, const text_front& front, word_batch& batch,
                                 Engine& engine, id_buffer& ids) {
  batch.start(text.data(), text.size());
  std::array<std::size_t, word_batch::capacity> ends;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t count = front.normalized_cutter().next_ends(text, at, ends);
    auto rest = std::span<const std::size_t>(ends).first(count);
    at = rest.back();
    while (!rest.empty()) {
      rest = rest.subspan(batch.fill(rest));
      encode_batch(text, batch, engine, ids);
    }
  }
}

/// Encodes a raw text fragment by fragment.
///
/// Engine must also provide limit(), which is the growth_limit of the text, and
/// encode_normalized(text, ids) for normalized text. encode_normalized may cut the text at any
/// seam. (A seam is a place where a text can be cut without changing its ids.)
/// @param continues  true if `text` follows a cut that front.may_cut allows
/// @param buffer  scratch memory
/// @pre front.takes_fragments(text)
template <class Engine>
void encode_fragments(std::string_view text, bool continues, const text_front& front,
                      word_batch& batch, Engine& engine, std::string& buffer, id_buffer& ids) {
  const fragment_cutter& cutter = front.cutter();
  text = front.without_end(text);
  // The text after `limit` might become spaces. These would be stripped, because they end the text.
  std::size_t limit = front.sure_end(text);
  // Find the first fragment whose normalized form is not empty. The dummy space is added to this
  // fragment. The fragments before it give no ids.
  std::string_view first;
  std::size_t at = 0;
  while (!continues && first.empty() && at < text.size()) {
    const std::size_t begin = at;
    cutter.next_ends(text, at, std::span(&at, 1));
    if (at > limit) at = text.size();
    first = front.normalize_part(text.substr(begin, at - begin), {true, at == text.size()}, buffer,
                                 engine.limit());
  }
  if (!continues) {
    if (first.empty()) return;
    engine.encode_normalized(first, ids);
  }

  text.remove_prefix(at);
  limit -= std::min(limit, at);
  batch.start(text.data(), text.size());
  std::array<std::size_t, word_batch::capacity> ends;
  at = 0;
  while (at < text.size()) {
    auto rest = std::span<const std::size_t>(ends).first(cutter.next_ends(text, at, ends));
    const bool is_last = rest.back() > limit;
    while (!rest.empty() && rest.back() > limit) rest = rest.first(rest.size() - 1);
    if (!rest.empty()) at = rest.back();
    while (!rest.empty()) {
      rest = rest.subspan(batch.fill(rest));
      encode_batch(text, batch, engine, ids);
    }
    if (is_last) {
      const auto last =
          front.normalize_part(text.substr(at), {false, true}, buffer, engine.limit());
      if (!last.empty()) engine.encode_normalized(last, ids);
      return;
    }
  }
}

}  // namespace millrace::tokenizer::detail
