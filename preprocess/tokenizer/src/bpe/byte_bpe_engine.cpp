// SPDX-License-Identifier: Apache-2.0
#include "bpe/byte_bpe_engine.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "bpe/bpe_merger.hpp"
#include "bpe/word_cache.hpp"

namespace millrace::tokenizer::detail {
namespace {

struct compiled {
  explicit compiled(byte_bpe_vocabulary v) : vocabulary(std::move(v)), merges(vocabulary.merges) {
    if (!vocabulary.whole_words_first) return;
    for (std::int64_t id = 0; id < vocabulary.tokens.end_id(); ++id) {
      if (vocabulary.tokens.has(id)) {
        words.emplace(vocabulary.tokens.bytes(id), static_cast<std::int32_t>(id));
      }
    }
  }

  byte_bpe_vocabulary vocabulary;
  merge_table merges;
  std::unordered_map<std::string_view, std::int32_t> words;  // only if they come first
};

class byte_bpe_encoder final : public section_encoder {
 public:
  byte_bpe_encoder(const compiled& model, const word_splitter& splitter)
      : model_(&model), splitter_(&splitter), merger_(model.merges) {}

  std::optional<encode_fault> encode(const section& part, id_buffer& ids) override {
    const std::string_view text = part.text;
    std::array<std::size_t, 256> ends;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t count = splitter_->next_ends(text, at, ends);
      for (const std::size_t end : std::span(ends).first(count)) {
        const std::string_view word = text.substr(at, end - at);
        if (word.size() <= word_cache::max_word_bytes) {
          encode_word(word, text.size() - at, ids);
        } else if (word.size() <= bpe_merger::max_symbols) {
          ids.append(merge(word));
        } else {
          return encode_fault{at, "a word of " + std::to_string(word.size()) +
                                      " bytes, expected at most " +
                                      std::to_string(bpe_merger::max_symbols)};
        }
        at = end;
      }
    }
    return std::nullopt;
  }

 private:
  static constexpr std::size_t copied_at_once = 4;
  // Symbols of one huge pretoken are not kept for the ordinary ones that follow it.
  static constexpr std::size_t kept_symbols = std::size_t{1} << 20;

  void encode_word(std::string_view word, std::size_t readable, id_buffer& ids) {
    const auto key = word_cache::make_key(word.data(), word.size(), readable);
    word_cache::entry& place = cache_.at(key);
    if (place.word != key) {
      const auto found = merge(word);
      if (found.size() > word_cache::max_ids) {
        ids.append(found);
        return;
      }
      word_cache::put(place, key, found);
    }
    const std::int32_t* known = place.ids.data();
    std::int32_t* out = ids.room(word_cache::max_ids);
    for (std::size_t i = 0; i < copied_at_once; ++i) out[i] = known[i];
    for (std::size_t i = copied_at_once; i < place.count; ++i) out[i] = known[i];
    ids.add(place.count);
  }

  // The ids of one pretoken, valid until the next call.
  std::span<const std::int32_t> merge(std::string_view word) {
    if (symbols_.size() < word.size() || symbols_.size() > kept_symbols) {
      symbols_ = std::vector<std::int32_t>(std::max<std::size_t>(word.size(), 64));
    }
    if (model_->vocabulary.whole_words_first) {
      const auto whole = model_->words.find(word);
      if (whole != model_->words.end()) {
        symbols_[0] = whole->second;
        return {symbols_.data(), 1};
      }
    }
    std::size_t count = 0;
    for (const char c : word) {
      const std::int32_t id = model_->vocabulary.byte_ids[static_cast<unsigned char>(c)];
      if (id >= 0) symbols_[count++] = id;
    }
    const std::span<std::int32_t> symbols(symbols_.data(), count);
    return symbols.first(merger_.merge(symbols));
  }

  const compiled* model_;
  const word_splitter* splitter_;
  bpe_merger merger_;
  word_cache cache_;
  std::vector<std::int32_t> symbols_;
};

class byte_bpe_engine final : public section_engine {
 public:
  byte_bpe_engine(byte_bpe_vocabulary vocabulary, std::unique_ptr<const word_splitter> splitter)
      : model_(std::move(vocabulary)), splitter_(std::move(splitter)) {}

  std::unique_ptr<section_encoder> make_encoder() const override {
    return std::make_unique<byte_bpe_encoder>(model_, *splitter_);
  }

 private:
  compiled model_;
  std::unique_ptr<const word_splitter> splitter_;
};

}  // namespace

std::unique_ptr<const section_engine> make_byte_bpe_engine(
    byte_bpe_vocabulary vocabulary, std::unique_ptr<const word_splitter> splitter) {
  return std::make_unique<byte_bpe_engine>(std::move(vocabulary), std::move(splitter));
}

std::vector<merge_rule> merges_of_ranks(const token_table& tokens,
                                        const std::array<std::int32_t, 256>& byte_ids) {
  std::unordered_map<std::string_view, std::int32_t> ids;
  ids.reserve(tokens.count());
  for (std::int64_t id = 0; id < tokens.end_id(); ++id) {
    if (tokens.has(id)) ids.emplace(tokens.bytes(id), static_cast<std::int32_t>(id));
  }
  struct piece {
    std::size_t begin;
    std::int32_t id;
  };
  std::vector<merge_rule> rules;
  std::vector<piece> pieces;
  for (std::int64_t id = 0; id < tokens.end_id(); ++id) {
    if (!tokens.has(id) || tokens.bytes(id).size() < 2) continue;
    const std::string_view bytes = tokens.bytes(id);
    pieces.clear();
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      pieces.push_back({i, byte_ids[static_cast<unsigned char>(bytes[i])]});
    }
    while (pieces.size() > 2) {
      std::size_t best = pieces.size();
      std::int32_t lowest = static_cast<std::int32_t>(id);
      for (std::size_t i = 0; i + 1 < pieces.size(); ++i) {
        const std::size_t end = i + 2 < pieces.size() ? pieces[i + 2].begin : bytes.size();
        const auto found = ids.find(bytes.substr(pieces[i].begin, end - pieces[i].begin));
        if (found != ids.end() && found->second < lowest) {
          lowest = found->second;
          best = i;
        }
      }
      if (best == pieces.size()) break;
      pieces[best].id = lowest;
      pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    }
    if (pieces.size() == 2) {
      rules.push_back({pieces[0].id, pieces[1].id, static_cast<std::int32_t>(id)});
    }
  }
  return rules;
}

}  // namespace millrace::tokenizer::detail
