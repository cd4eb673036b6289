// SPDX-License-Identifier: Apache-2.0
#include "bpe/byte_bpe_engine.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bpe/byte_merges.hpp"
#include "bpe/pretoken_cache.hpp"
#include "bpe/seams.hpp"
#include "bpe/shared_pretoken_cache.hpp"
#include "split/certain_cut.hpp"
#include "text/token_index.hpp"
#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {
namespace {

// The immutable state that all encoders share.
struct byte_bpe_tables {
  explicit byte_bpe_tables(byte_bpe_vocabulary given)
      : vocabulary(std::move(given)),
        merges(vocabulary.byte_ids, std::move(vocabulary.merges), vocabulary.tokens),
        seams(vocabulary.tokens) {
    if (vocabulary.whole_words_first) index_unmerged(find_unmerged());
  }

  explicit byte_bpe_tables(table_reader& in)
      : vocabulary(read_vocabulary(in)), merges(in, vocabulary.tokens), seams(in) {
    std::vector<std::int32_t> ids;
    in(ids);
    index_unmerged(std::move(ids));
  }

  void write(table_writer& out) const {
    fields(out, vocabulary);
    merges.write(out);
    seam_finder::fields(out, seams);
    out(unmerged_ids_);
  }

  // Adds the tokens that merging produces, so that no encoder has to compute them. Prefetches the
  // places of tokens ahead, because nearly every token has a cache miss.
  void enter_tokens(shared_pretoken_cache& cache) const {
    constexpr std::int64_t ahead = 16;
    for (std::int64_t id = 0; id < vocabulary.tokens.end_id() + ahead; ++id) {
      if (merges.surely_reaches(id)) {
        const std::string_view word = vocabulary.tokens.bytes(id);
        prefetch(cache.shorts, word) || prefetch(cache.longs, word);
      }
      if (id < ahead || !merges.surely_reaches(id - ahead)) continue;  // added when it is found
      const std::string_view word = vocabulary.tokens.bytes(id - ahead);
      enter(cache.shorts, word, id - ahead) || enter(cache.longs, word, id - ahead);
    }
  }

  // False if no token that merging does not produce has this hash of its key. Nearly always says so
  // without reading `unmerged`, which new words would have to wait for.
  bool may_be_unmerged(std::uint64_t key_hash) const noexcept {
    const std::uint64_t bit = key_hash >> (64 - unmerged_bits);
    return (unmerged_hashes_[bit / 64] >> bit % 64 & 1) != 0;
  }

  byte_bpe_vocabulary vocabulary;
  byte_merges merges;
  token_index unmerged;  // tokens that merging does not produce; for whole_words_first
  seam_finder seams;

 private:
  static constexpr unsigned unmerged_bits = 14;  // Llama 3 has 588 such tokens

  template <class Table>
  void note_unmerged(std::string_view word) {
    if (word.size() > Table::key::max_bytes) return;
    const std::uint64_t bit =
        Table::key::of(word.data(), word.size(), word.size()).hash() >> (64 - unmerged_bits);
    unmerged_hashes_[bit / 64] |= std::uint64_t{1} << bit % 64;
  }

  template <class Table>
  static bool prefetch(const shared_pretoken_table<Table>& words, std::string_view word) {
    if (word.size() > Table::key::max_bytes) return false;
    words.prefetch(Table::key::of(word.data(), word.size(), word.size()).hash());
    return true;
  }

  template <class Table>
  static bool enter(shared_pretoken_table<Table>& words, std::string_view word, std::int64_t id) {
    if (word.size() > Table::key::max_bytes) return false;
    const auto token = static_cast<std::int32_t>(id);
    typename Table::ids found;
    found.set({&token, 1});
    const auto key = Table::key::of(word.data(), word.size(), word.size());
    words.add(key, key.hash(), found);
    return true;
  }

  // The merges are in the form of byte_merges.
  template <class Io, class Vocabulary>
  static void fields(Io& io, Vocabulary& vocabulary) {
    token_table::fields(io, vocabulary.tokens);
    io(vocabulary.byte_ids);
    io(vocabulary.whole_words_first);
  }
  static byte_bpe_vocabulary read_vocabulary(table_reader& in) {
    byte_bpe_vocabulary vocabulary;
    fields(in, vocabulary);
    return vocabulary;
  }

  std::vector<std::int32_t> find_unmerged() const {
    byte_merger merger(merges, best_instruction_set());
    std::vector<std::int32_t> found;
    for (std::int64_t id = 0; id < vocabulary.tokens.end_id(); ++id) {
      if (!vocabulary.tokens.has(id) || merges.surely_reaches(id)) continue;
      const auto ids = merger.merge(vocabulary.tokens.bytes(id));
      if (ids.size() != 1 || ids.front() != id) found.push_back(static_cast<std::int32_t>(id));
    }
    return found;
  }

  void index_unmerged(std::vector<std::int32_t> ids) {
    unmerged_ids_ = std::move(ids);
    unmerged = token_index(unmerged_ids_.size());
    for (const std::int32_t id : unmerged_ids_) {
      const std::string_view word = vocabulary.tokens.bytes(id);
      unmerged.add(word, id);
      note_unmerged<word_batch::short_table>(word);
      note_unmerged<word_batch::long_table>(word);
    }
  }

  std::vector<std::int32_t> unmerged_ids_;
  std::array<std::uint64_t, (1 << unmerged_bits) / 64> unmerged_hashes_{};
};

class byte_bpe_encoder final : public section_encoder {
 public:
  byte_bpe_encoder(const byte_bpe_tables& model, const word_splitter& splitter, instruction_set set,
                   std::size_t cache_bytes, shared_pretoken_cache& shared)
      : model_(&model),
        splitter_(&splitter),
        merger_(model.merges, set),
        cache_(cache_bytes, shared, &model.seams, set, leading_space::counts,
               long_runs::are_short) {}

  std::optional<encode_fault> encode(const section& part, id_buffer& ids) override {
    const std::string_view text = part.text;
    cache_.batch.start(text.data(), text.size());
    std::array<std::size_t, word_batch::capacity> ends;
    for (std::size_t at = 0; at < text.size();) {
      auto rest = std::span<const std::size_t>(ends).first(splitter_->next_ends(text, at, ends));
      at = rest.back();
      while (!rest.empty()) {
        rest = rest.subspan(cache_.batch.fill(rest));
        encode_batch(text, ids);
      }
    }
    return std::nullopt;
  }

  // The tokens of a text are its bytes, one after the other, so their sizes tell where they are.
  std::optional<encode_fault> encode_with_offsets(const section& part, id_buffer& ids,
                                                  std::vector<byte_span>& spans) override {
    const std::size_t before = ids.size();
    if (auto fault = encode(part, ids)) return fault;
    const std::span<const std::int32_t> found = ids.ids().subspan(before);
    const std::string_view text = part.text;
    const token_table& tokens = model_->vocabulary.tokens;
    const std::size_t spans_before = spans.size();
    spans.resize(spans_before + found.size());
    byte_span* out = spans.data() + spans_before;
    std::size_t at = 0;
    for (const std::int32_t id : found) {
      const std::size_t size = tokens.bytes(id).size();
      if (size == 0 || size > text.size() - at) break;
      byte_span span{at, at + size};
      at += size;
      if (is_continuation(text[span.begin]) || (at < text.size() && is_continuation(text[at]))) {
        span = whole_characters(text, span);
      }
      *out++ = span;
    }
    if (at == text.size() && out == spans.data() + spans.size()) return std::nullopt;
    return encode_fault{0,
                        "the vocabulary lacks bytes of the text, so the places of tokens are "
                        "not known"};
  }

 private:
  void encode_batch(std::string_view text, id_buffer& ids) {
    bool has_learned = false;
    for (std::size_t i = 0;; ++i) {
      i = look_up(i, ids);
      if (!has_learned && i < cache_.batch.size() && cache_.is_absent(i)) {
        has_learned = true;
        if (merger_.merges_together()) {
          learn_from(i, text);
          i = look_up(i, ids);
        } else {
          cache_.prefetch_absent(i);
        }
      }
      if (i == cache_.batch.size()) return;
      const std::string_view word =
          text.substr(cache_.batch.begin(i), cache_.batch.end(i) - cache_.batch.begin(i));
      if (cache_.batch.is_short(i)) {
        encode_missing(cache_.shorts, cache_.batch.short_key(i), word, cache_.batch.is_fragment(i),
                       ids);
      } else if (word.size() <= word_batch::long_table::key::max_bytes) {
        encode_missing(cache_.longs, cache_.batch.long_key(i), word, cache_.batch.is_fragment(i),
                       ids);
      } else {
        encode_overflow(word, cache_.batch.is_fragment(i), ids);
      }
    }
  }

  std::size_t look_up(std::size_t first, id_buffer& ids) {
    std::int32_t* const begin = ids.room(cache_.batch.max_ids());
    std::int32_t* out = begin;
    const std::size_t stopped = cache_.batch.look_up(first, out);
    ids.add(static_cast<std::size_t>(out - begin));
    return stopped;
  }

  // Finds the words of the batch, starting at word `first`, that are not in the encoder's own
  // tables, and adds them to the tables with their ids. Processes many words at the same time, so
  // that their cache misses overlap.
  void learn_from(std::size_t first, std::string_view text) {
    const word_batch::absent_words& absent = cache_.prefetch_absent(first);
    unknown_count_ = 0;  // also after an exception in the last call
    for (const std::size_t i : std::span(absent.shorts).first(absent.short_count)) {
      note_if_unknown(cache_.shorts, cache_.batch.short_key(i), i, text);
    }
    for (const std::size_t i : std::span(absent.longs).first(absent.long_count)) {
      note_if_unknown(cache_.longs, cache_.batch.long_key(i), i, text);
    }
    merge_unknown();
  }

  template <class Table>
  void note_if_unknown(two_level_table<Table>& words, const typename Table::key& key, std::size_t i,
                       std::string_view text) {
    const std::uint64_t hash = key.hash();
    if (words.find(key, hash) != nullptr) return;
    const std::string_view word =
        text.substr(cache_.batch.begin(i), cache_.batch.end(i) - cache_.batch.begin(i));
    if (model_->may_be_unmerged(hash) && model_->unmerged.find(word) != token_index::none) return;
    unknown_[unknown_count_] = word;
    unknown_places_[unknown_count_] = {i, hash};
    if (++unknown_count_ == unknown_.size()) merge_unknown();
  }

  void merge_unknown() {
    const auto results = merger_.merge_together(std::span(unknown_).first(unknown_count_));
    for (std::size_t k = 0; k < unknown_count_; ++k) {
      const auto [i, hash] = unknown_places_[k];
      const std::span<const std::int32_t> ids = results[k].ids();
      if (cache_.batch.is_short(i)) {
        put(cache_.shorts, cache_.batch.short_key(i), hash, unknown_[k], ids);
      } else {
        put(cache_.longs, cache_.batch.long_key(i), hash, unknown_[k], ids);
      }
    }
    unknown_count_ = 0;
  }

  template <class Table>
  void put(two_level_table<Table>& words, const typename Table::key& key, std::uint64_t hash,
           std::string_view word, std::span<const std::int32_t> ids, bool is_whole_only = false) {
    typename Table::ids found;
    if (ids.size() <= found.capacity) {
      found.set(ids);
      if (is_whole_only) found.set_whole_only();
    } else {
      found.set_elsewhere(cache_.overflow.put(word, ids));
    }
    words.put(key, hash, found);
  }

  // Encodes a word that look_up did not find, or whose entry needs special handling.
  template <class Table>
  void encode_missing(two_level_table<Table>& words, const typename Table::key& key,
                      std::string_view word, bool is_fragment, id_buffer& ids) {
    const std::uint64_t hash = key.hash();
    if (const auto* known = words.find(key, hash)) {
      if (known->is_elsewhere()) {
        typename Table::ids found;
        found.set_elsewhere(encode_overflow(word, is_fragment, ids));
        return words.put_in_front(key, hash, found);
      }
      if (!(is_fragment && known->is_whole_only())) return append(*known, ids);
      return ids.append(merge(word, true).ids);
    }
    const merged result = merge(word, is_fragment);
    ids.append(result.ids);
    if (result.is_kept) put(words, key, hash, word, result.ids, result.whole_only);
  }

  template <class Ids>
  static void append(const Ids& found, id_buffer& ids) {
    found.copy_to(ids.room(found.capacity));
    ids.add(found.count());
  }

  // Encodes a word that is too long, or has too many ids, for the tables. Returns where its ids are
  // cached.
  overflow_cache::place encode_overflow(std::string_view word, bool is_fragment, id_buffer& ids) {
    if (word.size() > overflow_cache::max_word_bytes) {
      const std::int32_t whole = model_->vocabulary.whole_words_first && !is_fragment
                                     ? model_->unmerged.find(word)
                                     : token_index::none;
      whole != token_index::none ? ids.push_back(whole) : merger_.append(word, ids);
      return {};
    }
    const overflow_cache::place known = cache_.overflow.place_of(word);
    if (known.generation != 0) {
      ids.append(cache_.overflow.ids_at(known));
      return known;
    }
    const merged result = merge(word, is_fragment);
    ids.append(result.ids);
    if (!result.is_kept || result.whole_only) return {};
    return cache_.overflow.put(word, result.ids);
  }

  struct merged {
    std::span<const std::int32_t> ids;  // valid until the next merge
    bool whole_only = false;            // merging the word's bytes gives other ids
    bool is_kept = true;                // the result may be cached
  };

  merged merge(std::string_view word, bool is_fragment) {
    const auto ids = merger_.merge(word);
    if (!model_->vocabulary.whole_words_first) return {ids};
    whole_ = model_->unmerged.find(word);
    if (whole_ == token_index::none) return {ids};
    // The tables hold the ids of whole pretokens. Do not cache the ids of a fragment: as a whole
    // pretoken, the same word has another id.
    if (is_fragment) return {.ids = ids, .is_kept = false};
    return {.ids = {&whole_, 1}, .whole_only = true};
  }

  const byte_bpe_tables* model_;
  const word_splitter* splitter_;
  byte_merger merger_;
  std::int32_t whole_ = 0;  // the token that merge() found
  // Words of the batch that are going to be merged, each with its place in the batch and its hash.
  std::array<std::string_view, short_word::most_at_once> unknown_;
  std::array<std::pair<std::size_t, std::uint64_t>, short_word::most_at_once> unknown_places_;
  std::size_t unknown_count_ = 0;
  pretoken_cache cache_;
};

class byte_bpe_engine final : public section_engine {
 public:
  byte_bpe_engine(byte_bpe_vocabulary vocabulary, pattern pretokens, engine_tuning tuning)
      : model_(std::move(vocabulary)),
        pretokens_(pretokens),
        splitter_(make_splitter(pretokens, tuning.set)),
        set_(tuning.set),
        shared_(tuning.shared_bytes) {}

  byte_bpe_engine(table_reader& in, engine_tuning tuning)
      : model_(in),
        pretokens_(in.number<pattern>()),
        splitter_(make_splitter(pretokens_, tuning.set)),
        set_(tuning.set),
        shared_(tuning.shared_bytes) {}

  table_form form() const noexcept override { return table_form::byte_bpe; }
  void write(table_writer& out) const override {
    model_.write(out);
    out(pretokens_);
  }

  std::unique_ptr<section_encoder> make_encoder(std::size_t cache_bytes) const override {
    shared_pretoken_cache& shared =
        shared_.get(cache_bytes, [this](shared_pretoken_cache& all) { model_.enter_tokens(all); });
    return std::make_unique<byte_bpe_encoder>(model_, *splitter_, set_, cache_bytes, shared);
  }

  bool may_cut(std::string_view text, std::size_t at) const override {
    const neighbours around = neighbours_at(text, at);
    return is_certain_cut(pretokens_, around.left, around.right);
  }

 private:
  byte_bpe_tables model_;
  pattern pretokens_;
  std::unique_ptr<const word_splitter> splitter_;
  instruction_set set_;
  shared_pretoken_cache_on_demand shared_;
};

}  // namespace

std::unique_ptr<const section_engine> make_byte_bpe_engine(byte_bpe_vocabulary vocabulary,
                                                           pattern pretokens,
                                                           engine_tuning tuning) {
  return std::make_unique<byte_bpe_engine>(std::move(vocabulary), pretokens, tuning);
}

std::unique_ptr<const section_engine> read_byte_bpe_engine(table_reader& in, engine_tuning tuning) {
  return std::make_unique<byte_bpe_engine>(in, tuning);
}

}  // namespace millrace::tokenizer::detail
