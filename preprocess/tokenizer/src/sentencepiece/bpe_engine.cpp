// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/formats/detail/free_memory.hpp>

#include "sentencepiece/encode_fragments.hpp"
#include "sentencepiece/fragment_cache.hpp"
#include "sentencepiece/piece_merger.hpp"
#include "sentencepiece/seam_table.hpp"
#include "sentencepiece/sentencepiece_tokenizer.hpp"
#include "sentencepiece/text_front.hpp"
#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {
namespace {

struct bpe_tables {
  bpe_tables(const sentencepiece_model& model, const engine_tuning& given)
      : bpe_tables(model, text_pieces_of(model), given) {}

  bpe_tables(const sentencepiece_model& model, const std::vector<text_piece>& pieces,
             const engine_tuning& given)
      : seams(seams_of(pieces)),
        front(model, seams, given.set),
        merges(pieces),
        symbols(user_symbols_of(pieces)),
        symbol_ids(ids_of_symbols(pieces)),
        byte_fallback(model.byte_fallback),
        escapes_spaces(model.normalizer.escape_whitespaces),
        unk_id(model.unk_id),
        byte_ids(model.byte_ids),
        tuning(given),
        shared(given.shared_bytes) {}

  static byte_trie ids_of_symbols(const std::vector<text_piece>& pieces) {
    std::vector<std::pair<std::string_view, std::int32_t>> ids;
    for (const text_piece& piece : pieces) {
      if (piece.type == piece_type::user_defined) ids.emplace_back(piece.text, piece.id);
    }
    return byte_trie(std::move(ids));
  }

  seam_table seams;
  text_front front;
  piece_merges merges;
  symbol_matcher symbols;
  byte_trie symbol_ids;
  bool byte_fallback;
  bool escapes_spaces;
  std::int32_t unk_id;
  std::array<std::int32_t, 256> byte_ids;
  engine_tuning tuning;
  shared_pretoken_cache_on_demand shared;
};

class bpe_encoder final : public section_encoder {
 public:
  bpe_encoder(const bpe_tables& model, std::size_t cache_bytes)
      : model_(&model),
        merger_(model.merges, model.tuning.set),
        cache_(cache_bytes, model.shared.get(cache_bytes), model.tuning.set) {
    if (!model.merges.spaces_merge_last()) return;
    for (std::size_t i = 0; i < fragment_cache::max_bytes; ++i) {
      const auto ids = i == 0 ? std::span<const std::int32_t>() : merge(std::string(i, ' '));
      ids_of_spaces_.emplace_back(ids.begin(), ids.end());
    }
  }

  std::optional<encode_fault> encode(const section& part, id_buffer& ids) override {
    if (part.text.size() >= piece_merger::max_symbols) return too_long(part.text);
    start_ = ids.size();
    if (model_->front.takes_fragments(part.text) && !model_->merges.has_unused()) {
      encode_fragments(part.text, part.continues, model_->front, cache_.batch(), *this, first_,
                       ids);
      return std::nullopt;
    }
    const std::string_view text =
        model_->front.normalize_part(part.text, {!part.continues, true}, first_, limit());
    if (text.size() >= piece_merger::max_symbols) return too_long(part.text);
    if (text.empty()) return std::nullopt;
    if (model_->merges.has_unused()) {
      ids.append(merge(text));
    } else if (!model_->front.cuts_raw_text()) {
      encode_normalized_fragments(text, model_->front, cache_.batch(), *this, ids);
    } else {
      encode_by_seams(text, ids);
      fuse_unknown(ids, start_);
    }
    return std::nullopt;
  }

  // Merges every fragment, without the caches, because these have no sizes.
  std::optional<encode_fault> encode_with_offsets(const section& part, id_buffer& ids,
                                                  std::vector<byte_span>& spans) override {
    if (part.text.size() >= piece_merger::max_symbols) return too_long(part.text);
    start_ = ids.size();
    std::string text;
    std::vector<std::size_t> places;
    model_->front.normalize_places(part.text, part.continues, text, places, limit());
    if (text.size() >= piece_merger::max_symbols) return too_long(part.text);
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end =
          model_->merges.has_unused() ? text.size() : model_->seams.fragment_end(text, at);
      leaves_.clear();
      const auto found = merge(std::string_view(text).substr(at, end - at),
                               [&](leaf_size leaf) { leaves_.push_back(leaf); });
      auto id = found.begin();
      for (const leaf_size leaf : leaves_) {
        const byte_span span{places[at], places[at + leaf.bytes]};
        at += leaf.bytes;
        if (leaf.ids == 0) spans.back().end = span.end;
        for (std::size_t i = 0; i < leaf.ids; ++i) {
          put_with_span(*id++, span, ids, spans, start_, unknown_to_fuse());
        }
      }
      expect_growth(ids);
    }
    return std::nullopt;
  }

  // The functions that encode_fragments requires.

  using section_encoder::limit;
  void expect_growth(const id_buffer& ids) { limit().expect_ids(ids.size() - start_); }

  bool take(id_buffer& ids, std::size_t count) const {
    const std::size_t before = ids.size();
    ids.add(count);
    fuse_unknown(ids, before);
    return true;
  }

  void encode_fragment(std::string_view fragment, id_buffer& ids) {
    const std::size_t before = ids.size();
    if (!recall(fragment, ids)) {
      encode_by_seams(model_->front.normalize_part(fragment, buffer_, limit()), ids);
      put(fragment, ids.ids().subspan(before));
    }
    fuse_unknown(ids, before);
  }

  bool is_absent(std::size_t i) const noexcept { return cache_.is_absent(i); }

  // Processes many fragments at the same time, so that their cache misses overlap.
  bool learn(std::string_view text, std::size_t first) {
    const word_batch& batch = cache_.batch();
    const word_batch::absent_words& all = cache_.prefetch_absent(first);
    if (!merger_.merges_together() || !model_->symbols.empty()) return false;
    const auto shorts = std::span<const std::uint16_t>(all.shorts).first(all.short_count);
    const auto longs = std::span<const std::uint16_t>(all.longs).first(all.long_count);
    started_count_ = 0;
    for (const auto& absent : {shorts, longs}) {
      for (const std::size_t i : absent) {
        if (!cache_.fetch(i)) start(text.substr(batch.begin(i), batch.end(i) - batch.begin(i)));
        if (started_count_ == started_.size()) merge_started();
      }
    }
    merge_started();
    return true;
  }

  void encode_normalized(std::string_view text, id_buffer& ids) {
    if (model_->front.is_its_own(text)) return encode_fragment(text, ids);
    const std::size_t before = ids.size();
    encode_by_seams(text, ids);
    fuse_unknown(ids, before);
  }

 private:
  static encode_fault too_long(std::string_view text) {
    return {0,
            "a text of " + std::to_string(text.size()) + " bytes, expected less than 2147483647"};
  }

  bool recall(std::string_view fragment, id_buffer& ids) {
    using answer = fragment_cache::answer;
    const answer known = cache_.find(fragment, ids);
    if (known != answer::special) return known == answer::known;
    const overflow_cache::place place = cache_.overflow().place_of(fragment);
    const auto known_ids = cache_.overflow().ids_at(place);
    if (known_ids.data() == nullptr) return false;
    if (fragment.size() <= fragment_cache::max_bytes) cache_.set_place(fragment, place);
    ids.append(known_ids);
    return true;
  }

  void put(std::string_view fragment, std::span<const std::int32_t> ids) {
    const bool has_key = fragment.size() <= fragment_cache::max_bytes;
    if (has_key && cache_.put(fragment, ids)) return;
    const overflow_cache::place place = cache_.overflow().put(fragment, ids);
    if (has_key) cache_.put_special(fragment, place);
  }

  void start(std::string_view fragment) {
    if (model_->front.normalize_part(fragment, buffer_, limit()).data() != fragment.data()) return;
    const std::size_t run = spaces_before_word(fragment);
    const std::string_view word = fragment.substr(run);
    if (run != 0) {
      known_.clear();
      if (recall(word, known_)) return put_after_spaces(fragment, run, known_.ids());
    }
    if (!merger_.start(word, started_[started_count_])) return;
    fragments_[started_count_] = fragment;
    runs_[started_count_++] = run;
  }

  void merge_started() {
    merger_.merge_together(std::span(started_).first(started_count_));
    for (std::size_t i = 0; i < started_count_; ++i) {
      found_.clear();
      const short_word& merged = started_[i];
      const std::string_view word = fragments_[i].substr(runs_[i]);
      std::size_t at = 0;
      for (const piece_merger::symbol symbol : std::span(merged.symbols, merged.count)) {
        at += add_ids_of(symbol, word.substr(at));
      }
      put(word, found_);
      if (runs_[i] != 0) put_after_spaces(fragments_[i], runs_[i], found_);
    }
    started_count_ = 0;
  }

  // The number of spaces before the word that a fragment consists of, without the space that
  // belongs to the word. Texts have the same words after many different runs of spaces, so a word
  // is merged without the run. 0 if this model does not allow that.
  std::size_t spaces_before_word(std::string_view fragment) const {
    if (ids_of_spaces_.empty()) return 0;
    const std::size_t begin = fragment.find_first_not_of(' ');
    return begin == std::string_view::npos || begin < 2 ? 0 : begin - 1;
  }

  // Caches a fragment that is `run` spaces and then a word with these ids. But if the space of the
  // word is a symbol of its own, it may merge with the run. Then the fragment is not cached here.
  void put_after_spaces(std::string_view fragment, std::size_t run,
                        std::span<const std::int32_t> word) {
    if (word.empty() || word.front() == ids_of_spaces_[1].front()) return;
    joined_ = ids_of_spaces_[run];
    joined_.insert(joined_.end(), word.begin(), word.end());
    put(fragment, joined_);
  }

  void encode_by_seams(std::string_view text, id_buffer& ids) {
    if (text.empty()) return;
    std::size_t end = model_->seams.fragment_end(text, 0);
    if (end == text.size()) return ids.append(merge(text));
    for (std::size_t at = 0;;) {
      encode_part(text.substr(at, end - at), ids);
      if (end == text.size()) return;
      at = end;
      end = model_->seams.fragment_end(text, at);
    }
  }

  // Encodes a text that has no seams. (A seam is a place where a text can be cut without changing
  // its ids.)
  void encode_part(std::string_view text, id_buffer& ids) {
    if (text.size() > fragment_cache::max_overflow_bytes || !model_->front.is_its_own(text)) {
      ids.append(merge(text));
    } else if (!recall(text, ids)) {
      const auto found = merge(text);
      put(text, found);
      ids.append(found);
    }
  }

  std::int32_t unknown_to_fuse() const { return model_->byte_fallback ? -1 : model_->unk_id; }

  void fuse_unknown(id_buffer& ids, std::size_t begin) const {
    if (model_->byte_fallback) return;  // unknown characters are encoded as bytes
    detail::fuse_unknown(ids, begin, start_, model_->unk_id);
  }

  // The size of a symbol that did not merge further, and the number of its ids. No ids: it is
  // unknown and joined to the symbol before it.
  struct leaf_size {
    std::size_t bytes;
    std::size_t ids;
  };

  // Returns the ids of a fragment, valid until the next call.
  std::span<const std::int32_t> merge(std::string_view text) {
    return merge(text, [](leaf_size) {});
  }

  // As above, and calls note(leaf_size) for each symbol.
  template <class Note>
  std::span<const std::int32_t> merge(std::string_view text, const Note& note) {
    if (symbols_.size() < text.size() || symbols_.size() > kept_symbols) {
      symbols_ = std::vector<piece_merger::symbol>(std::max<std::size_t>(text.size(), 64));
    }
    std::size_t count = symbols_of(text);
    count = merger_.merge(std::span(symbols_).first(count));
    if (found_.capacity() > kept_symbols) formats::free_memory(found_);
    found_.clear();
    std::size_t at = 0;
    for (const piece_merger::symbol symbol : std::span(symbols_).first(count)) {
      merger_.take_apart(symbol, [&](piece_merger::symbol leaf) {
        const std::size_t before = found_.size();
        const std::size_t size = add_ids_of(leaf, text.substr(at));
        at += size;
        note(leaf_size{size, found_.size() - before});
      });
    }
    return found_;
  }

  // Fills symbols_ with the symbols that exist before any merge: characters and user-defined
  // pieces.
  std::size_t symbols_of(std::string_view text) {
    std::size_t count = 0;
    for (std::size_t at = 0; at < text.size();) {
      if (!model_->symbols.empty()) {
        const std::string_view rest = text.substr(at);
        if (const std::size_t size = model_->symbols.match(rest); size != 0) {
          const std::int32_t id = model_->symbol_ids.find(rest.substr(0, size));
          symbols_[count++] = model_->merges.of_user_defined(id);
          at += size;
          continue;
        }
      }
      const code_point c = code_point_at(text, at);
      symbols_[count++] = model_->merges.of_character(c.value);
      at += c.size_bytes;
    }
    return count;
  }

  // Appends the ids of a symbol. The text of the symbol is at the beginning of `text`.
  // @return the size of the symbol's text in bytes
  std::size_t add_ids_of(piece_merger::symbol symbol, std::string_view text) {
    const std::int32_t id = model_->merges.id(symbol);
    if (id >= 0) {
      found_.push_back(id);
      return model_->merges.size_bytes(symbol);
    }
    const std::size_t size = code_point_at(text, 0).size_bytes;
    if (!model_->byte_fallback) {
      if (found_.empty() || found_.back() != model_->unk_id) found_.push_back(model_->unk_id);
      return size;
    }
    const bool space = text.front() == ' ' && model_->escapes_spaces;
    for (const char byte : space ? space_symbol : text.substr(0, size)) {
      found_.push_back(model_->byte_ids[static_cast<unsigned char>(byte)]);
    }
    return size;
  }

  // If a huge text needs scratch memory for more symbols than this, the memory is freed before the
  // next text is encoded.
  static constexpr std::size_t kept_symbols = std::size_t{1} << 20;

  const bpe_tables* model_;
  piece_merger merger_;
  fragment_cache cache_;
  std::string first_;
  std::string buffer_;
  std::vector<piece_merger::symbol> symbols_;
  std::vector<std::int32_t> found_;
  std::vector<leaf_size> leaves_;
  // The fragments for the next call of merge_together().
  std::array<short_word, short_word::most_at_once> started_;
  std::array<std::string_view, short_word::most_at_once> fragments_;
  std::array<std::size_t, short_word::most_at_once> runs_;  // how many spaces were not merged
  std::size_t started_count_ = 0;
  // By number of spaces. Empty if the model does not allow to merge words without them.
  std::vector<std::vector<std::int32_t>> ids_of_spaces_;
  id_buffer known_;
  std::vector<std::int32_t> joined_;
  std::size_t start_ = 0;  // index of the text's first id
};

class bpe_engine final : public section_engine {
 public:
  bpe_engine(const sentencepiece_model& model, const engine_tuning& tuning)
      : model_(model, tuning) {}

  std::unique_ptr<section_encoder> make_encoder(std::size_t cache_bytes) const override {
    return std::make_unique<bpe_encoder>(model_, cache_bytes);
  }

  // Adjacent unknown characters become one id, even across a cut. So the character before a cut
  // must be known.
  bool may_cut(std::string_view text, std::size_t at) const override {
    if (model_.merges.has_unused() || !model_.front.may_cut(text, at)) return false;
    const std::uint32_t left = neighbours_at(text, at).left;
    return model_.byte_fallback || model_.merges.id(model_.merges.of_character(left)) >= 0;
  }

 private:
  bpe_tables model_;
};

}  // namespace

std::unique_ptr<const section_engine> make_sentencepiece_bpe_engine(
    const sentencepiece_model& model, const engine_tuning& tuning) {
  check_size(model);
  return std::make_unique<bpe_engine>(model, tuning);
}

}  // namespace millrace::tokenizer::detail
