// SPDX-License-Identifier: Apache-2.0
#include "bpe/byte_bpe_engine.hpp"

#include <algorithm>
#include <bit>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "bpe/byte_merges.hpp"
#include "bpe/rare_words.hpp"
#include "bpe/remembered_words.hpp"
#include "bpe/seams.hpp"
#include "bpe/word_batch.hpp"
#include "models/token_index.hpp"

namespace millrace::tokenizer::detail {
namespace {

// What encoders share.
struct compiled {
  explicit compiled(byte_bpe_vocabulary given)
      : vocabulary(std::move(given)),
        merges(vocabulary.byte_ids, std::move(vocabulary.merges), vocabulary.tokens),
        seams(vocabulary.tokens),
        shorts(line_bits(vocabulary.tokens.count())),
        longs(line_bits(vocabulary.tokens.count()) - 2) {
    if (vocabulary.whole_words_first) {
      words = token_index(vocabulary.tokens.count());
      for (std::int64_t id = 0; id < vocabulary.tokens.end_id(); ++id) {
        if (!vocabulary.tokens.has(id)) continue;
        words.add(vocabulary.tokens.bytes(id), static_cast<std::int32_t>(id));
      }
    }
    seed();
  }

  byte_bpe_vocabulary vocabulary;
  byte_merges merges;
  token_index words;  // only if they come first
  seam_finder seams;
  word_batch::short_table shorts;  // of the vocabulary's words
  word_batch::long_table longs;

 private:
  static unsigned line_bits(std::size_t count) {
    return std::clamp(static_cast<unsigned>(std::bit_width(count)), 10U, 20U);
  }

  // Enters every token by what it really gives, since not every token is what its bytes merge to.
  // Low ids come first, as lines fill up and they are the frequent ones.
  void seed() {
    byte_merger merger(merges, best_instruction_set());
    for (std::int64_t id = 0; id < vocabulary.tokens.end_id(); ++id) {
      if (!vocabulary.tokens.has(id)) continue;
      const std::string_view word = vocabulary.tokens.bytes(id);
      if (word.empty() || word.size() > word_batch::long_table::key::max_bytes) continue;
      const auto own = static_cast<std::int32_t>(id);
      const auto ids = merges.surely_reaches(id) ? std::span(&own, 1) : merger.merge(word);
      const bool merges_to_itself = ids.size() == 1 && ids.front() == own;
      if (vocabulary.whole_words_first && !merges_to_itself) continue;  // not as a fragment
      put(shorts, word, ids) || put(longs, word, ids);
    }
  }

  template <class Table>
  static bool put(Table& table, std::string_view word, std::span<const std::int32_t> ids) {
    if (word.size() > Table::key::max_bytes) return false;
    typename Table::ids found;
    if (ids.size() > found.capacity) return true;
    found.set(ids);
    table.put_if_free(Table::key::of(word.data(), word.size(), word.size()), found);
    return true;
  }
};

class byte_bpe_encoder final : public section_encoder {
 public:
  // Half of the memory for short words, an eighth for longer ones, both with as much behind as in
  // front; a quarter for the rest.
  byte_bpe_encoder(const compiled& model, const word_splitter& splitter, byte_bpe_tuning tuning)
      : model_(&model),
        splitter_(&splitter),
        merger_(model.merges, tuning.set),
        shorts_(table_line_bits(tuning.memory_bytes / 4)),
        longs_(table_line_bits(tuning.memory_bytes / 16)),
        rare_(tuning.memory_bytes / 4),
        batch_(shorts_.front, longs_.front, &model.seams, tuning.set) {}

  std::optional<encode_fault> encode(const section& part, id_buffer& ids) override {
    const std::string_view text = part.text;
    batch_.start(text.data(), text.size());
    std::array<std::size_t, word_batch::capacity> ends;
    for (std::size_t at = 0; at < text.size();) {
      auto rest = std::span<const std::size_t>(ends).first(splitter_->next_ends(text, at, ends));
      at = rest.back();
      while (!rest.empty()) {
        rest = rest.subspan(batch_.fill(rest));
        if (auto fault = encode_batch(text, ids)) return fault;
      }
    }
    return std::nullopt;
  }

 private:
  std::optional<encode_fault> encode_batch(std::string_view text, id_buffer& ids) {
    for (std::size_t i = 0;; ++i) {
      std::int32_t* const begin = ids.room(word_batch::max_ids);
      std::int32_t* out = begin;
      i = batch_.look_up(i, out);
      ids.add(static_cast<std::size_t>(out - begin));
      if (i == batch_.size()) return std::nullopt;
      const std::string_view word = text.substr(batch_.begin(i), batch_.end(i) - batch_.begin(i));
      if (word.size() <= word_batch::short_table::key::max_bytes) {
        encode_missing(shorts_, model_->shorts, batch_.short_key(i), word, batch_.is_fragment(i),
                       ids);
      } else if (word.size() <= word_batch::long_table::key::max_bytes) {
        encode_missing(longs_, model_->longs, batch_.long_key(i), word, batch_.is_fragment(i), ids);
      } else if (word.size() <= merger_.max_bytes()) {
        encode_rare(word, batch_.is_fragment(i), ids);
      } else {
        return encode_fault{batch_.begin(i), "a word of " + std::to_string(word.size()) +
                                                 " bytes, expected at most " +
                                                 std::to_string(merger_.max_bytes())};
      }
    }
  }

  // A word that look_up did not find, or found not to be that simple.
  template <class Table>
  void encode_missing(remembered_words<Table>& words, const Table& tokens,
                      const typename Table::key& key, std::string_view word, bool is_fragment,
                      id_buffer& ids) {
    const std::uint64_t hash = key.hash();
    if (const auto* known = words.find(key, hash)) {
      if (known->is_elsewhere()) return encode_rare(word, is_fragment, ids);
      if (!(is_fragment && known->is_whole_only())) return append(*known, ids);
      return ids.append(merge(word, true).ids);
    }
    if (const auto* token = Table::find(tokens.line_of(hash), key)) {
      words.put(key, *token);
      return append(*token, ids);
    }
    const std::size_t before = ids.size();
    if (!is_fragment && encode_by_fragments(word, ids)) {
      const auto all = ids.ids().subspan(before);
      typename Table::ids found;
      if (all.size() > found.capacity) return;  // its fragments are known now
      found.set(all);
      words.put(key, found);
      return;
    }
    const merged result = merge(word, is_fragment);
    ids.append(result.ids);
    if (!result.is_kept) return;
    typename Table::ids found;
    if (result.ids.size() <= found.capacity) {
      found.set(result.ids);
      if (result.whole_only) found.set_whole_only();
    } else {
      found.set_elsewhere();
      rare_.put(word, result.ids);
    }
    words.put(key, found);
  }

  // False, and nothing is done: the word has no seams, or is a token.
  bool encode_by_fragments(std::string_view word, id_buffer& ids) {
    if (!seam_finder::pays_for(word)) return false;
    std::size_t size = model_->seams.fragment_size(word);
    if (size == word.size()) return false;
    while (!word.empty()) {
      encode_fragment(word.substr(0, size), ids);
      word.remove_prefix(size);
      if (!word.empty()) size = model_->seams.fragment_size(word);
    }
    return true;
  }

  void encode_fragment(std::string_view fragment, id_buffer& ids) {
    using key = word_batch::short_table::key;
    if (fragment.size() > key::max_bytes) return ids.append(merge(fragment, true).ids);
    const auto place = key::of(fragment.data(), fragment.size(), fragment.size());
    const auto* known = shorts_.find(place, place.hash());
    if (known != nullptr && !known->is_special()) return append(*known, ids);
    encode_missing(shorts_, model_->shorts, place, fragment, true, ids);
  }

  template <class Ids>
  static void append(const Ids& found, id_buffer& ids) {
    found.copy_to(ids.room(found.capacity));
    ids.add(found.count());
  }

  // A word that no table has room for.
  void encode_rare(std::string_view word, bool is_fragment, id_buffer& ids) {
    if (word.size() > rare_words::max_word_bytes) {
      const std::int32_t whole = model_->vocabulary.whole_words_first && !is_fragment
                                     ? model_->words.find(word)
                                     : token_index::none;
      if (whole != token_index::none) return ids.push_back(whole);
      return merger_.append(word, ids);
    }
    const auto known = rare_.find(word);
    if (known.data() != nullptr) {
      ids.append(known);
      return;
    }
    const merged result = merge(word, is_fragment);
    ids.append(result.ids);
    if (result.is_kept && !result.whole_only) rare_.put(word, result.ids);
  }

  struct merged {
    std::span<const std::int32_t> ids;  // valid until the next merge
    bool whole_only = false;            // not what its bytes merge to
    bool is_kept = true;                // what the word gives wherever it is not whole_only
  };

  merged merge(std::string_view word, bool is_fragment) {
    const auto ids = merger_.merge(word);
    if (!model_->vocabulary.whole_words_first) return {ids};
    whole_ = model_->words.find(word);
    if (whole_ == token_index::none || (ids.size() == 1 && ids.front() == whole_)) return {ids};
    // The tables hold what such a word gives as a pretoken.
    if (is_fragment) return {.ids = ids, .is_kept = false};
    return {.ids = {&whole_, 1}, .whole_only = true};
  }

  const compiled* model_;
  const word_splitter* splitter_;
  byte_merger merger_;
  std::int32_t whole_ = 0;  // what merge() found
  // Words met so far, tokens and others.
  remembered_words<word_batch::short_table> shorts_;
  remembered_words<word_batch::long_table> longs_;
  rare_words rare_;
  word_batch batch_;
};

class byte_bpe_engine final : public section_engine {
 public:
  byte_bpe_engine(byte_bpe_vocabulary vocabulary, std::unique_ptr<const word_splitter> splitter,
                  byte_bpe_tuning tuning)
      : model_(std::move(vocabulary)), splitter_(std::move(splitter)), tuning_(tuning) {}

  std::unique_ptr<section_encoder> make_encoder() const override {
    return std::make_unique<byte_bpe_encoder>(model_, *splitter_, tuning_);
  }

 private:
  compiled model_;
  std::unique_ptr<const word_splitter> splitter_;
  byte_bpe_tuning tuning_;
};

}  // namespace

std::unique_ptr<const section_engine> make_byte_bpe_engine(
    byte_bpe_vocabulary vocabulary, std::unique_ptr<const word_splitter> splitter,
    byte_bpe_tuning tuning) {
  return std::make_unique<byte_bpe_engine>(std::move(vocabulary), std::move(splitter), tuning);
}

}  // namespace millrace::tokenizer::detail
