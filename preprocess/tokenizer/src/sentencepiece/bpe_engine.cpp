// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sentencepiece/engines.hpp"
#include "sentencepiece/fragment_cache.hpp"
#include "sentencepiece/packed_ids.hpp"
#include "sentencepiece/piece_merger.hpp"
#include "sentencepiece/seam_table.hpp"
#include "sentencepiece/text_front.hpp"
#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {
namespace {

struct compiled {
  compiled(const sentencepiece_model& model, const cache_sizes& cache)
      : compiled(model, text_pieces_of(model), cache) {}

  compiled(const sentencepiece_model& model, const std::vector<text_piece>& pieces,
           const cache_sizes& cache)
      : front(model),
        merges(pieces),
        symbols(user_symbols_of(pieces)),
        seams(seams_of(pieces)),
        symbol_ids(ids_of_symbols(pieces)),
        byte_fallback(model.byte_fallback),
        escapes_spaces(model.normalizer.escape_whitespaces),
        unk_id(model.unk_id),
        byte_ids(model.byte_ids),
        sizes(cache) {}

  static byte_trie ids_of_symbols(const std::vector<text_piece>& pieces) {
    std::vector<std::pair<std::string_view, std::int32_t>> ids;
    for (const text_piece& piece : pieces) {
      if (piece.type == piece_type::user_defined) ids.emplace_back(piece.text, piece.id);
    }
    return byte_trie(std::move(ids));
  }

  text_front front;
  piece_merges merges;
  symbol_matcher symbols;
  seam_table seams;
  byte_trie symbol_ids;
  bool byte_fallback;
  bool escapes_spaces;
  std::int32_t unk_id;
  std::array<std::int32_t, 256> byte_ids;
  cache_sizes sizes;
};

struct known_ids {
  std::array<std::int32_t, 7> ids{};
  std::uint32_t count = 0;
};

class bpe_encoder final : public section_encoder {
 public:
  explicit bpe_encoder(const compiled& model)
      : model_(&model),
        merger_(model.merges),
        short_(model.sizes.short_buckets),
        long_(model.sizes.long_buckets) {}

  std::optional<encode_fault> encode(const section& part, id_buffer& ids) override {
    const auto [text, space_before] = model_->front.prepare(part.text, buffer_);
    if (part.text.size() >= piece_merger::max_symbols || text.size() >= piece_merger::max_symbols) {
      return encode_fault{0, "a text of " + std::to_string(part.text.size()) +
                                 " bytes, expected less than 2147483647"};
    }
    after_unknown_ = false;
    if (text.empty()) return std::nullopt;
    if (model_->merges.has_unused()) {
      encode_whole(text, space_before, ids);
      return std::nullopt;
    }
    std::size_t at = 0;
    if (space_before) {
      next_word_ends(model_->seams, text, 0, std::span(&at, 1));
      first_word_ = ' ';
      first_word_ += text.substr(0, at);
      encode_word(first_word_, first_word_.size(), ids);
    }
    for_each_word(
        model_->seams, text, at, short_, long_,
        [&](std::string_view word, std::size_t readable, const short_cache::key& key,
            std::size_t home) { encode_short(word, readable, key, home, ids); },
        [&](std::string_view word, std::size_t readable, const long_cache::key& key,
            std::size_t home) { encode_long(word, readable, key, home, ids); },
        [&](std::string_view word, std::size_t readable) {
          encode_fragments(word, readable, ids);
        });
    return std::nullopt;
  }

 private:
  using short_cache = fragment_cache<2, packed_ids>;
  using long_cache = fragment_cache<4, known_ids>;

  // `readable` bytes may be read where `word` begins.
  void encode_word(std::string_view word, std::size_t readable, id_buffer& ids) {
    if (word.size() <= short_cache::max_bytes) {
      encode_fragment(word, readable, ids);
    } else if (word.size() <= long_cache::max_bytes) {
      const auto key = long_cache::make_key(word.data(), word.size(), readable);
      encode_long(word, readable, key, long_.home(key), ids);
    } else {
      encode_fragments(word, readable, ids);
    }
  }

  void encode_fragments(std::string_view word, std::size_t readable, id_buffer& ids) {
    for (std::size_t at = 0; at < word.size();) {
      const std::size_t end = model_->seams.fragment_end(word, at);
      const std::string_view fragment = word.substr(at, end - at);
      if (fragment.size() <= short_cache::max_bytes) {
        encode_fragment(fragment, readable - at, ids);
      } else {
        emit(merge(fragment), ids);
      }
      at = end;
    }
  }

  void encode_long(std::string_view word, std::size_t readable, const long_cache::key& key,
                   std::size_t home, id_buffer& ids) {
    if (const auto* known = long_.find(home, key)) {
      return emit(std::span(known->ids).first(known->count), ids);
    }
    const bool after_unknown = std::exchange(after_unknown_, false);
    word_ids_.clear();
    encode_fragments(word, readable, word_ids_);
    after_unknown_ = after_unknown;
    remember(home, key, word_ids_.ids());
    emit(word_ids_.ids(), ids);
  }

  void encode_fragment(std::string_view text, std::size_t readable, id_buffer& ids) {
    const auto key = short_cache::make_key(text.data(), text.size(), readable);
    encode_short(text, readable, key, short_.home(key), ids);
  }

  void encode_short(std::string_view text, std::size_t readable, const short_cache::key& key,
                    std::size_t home, id_buffer& ids) {
    if (const auto* known = short_.find(home, key)) {
      if (model_->byte_fallback) {
        known->unpack(ids.room(packed_ids::max_ids));
        ids.add(known->count());
      } else {
        std::array<std::int32_t, packed_ids::max_ids> found;
        known->unpack(found.data());
        emit(std::span(found).first(known->count()), ids);
      }
      return;
    }
    // Some have more ids than a short place takes.
    const auto long_key = long_cache::make_key(text.data(), text.size(), readable);
    const std::size_t long_home = long_.home(long_key);
    if (const auto* known = long_.find(long_home, long_key)) {
      return emit(std::span(known->ids).first(known->count), ids);
    }
    const auto found = merge(text);
    packed_ids packed;
    if (packed.pack(found.size(), [&](std::size_t i) { return found[i]; })) {
      short_.put(home, key, packed);
    } else {
      remember(long_home, long_key, found);
    }
    emit(found, ids);
  }

  void remember(std::size_t home, const long_cache::key& key, std::span<const std::int32_t> ids) {
    known_ids known;
    if (ids.size() > known.ids.size()) return;
    std::ranges::copy(ids, known.ids.begin());
    known.count = static_cast<std::uint32_t>(ids.size());
    long_.put(home, key, known);
  }

  // Unknown characters that follow each other are one id, over fragments too.
  void emit(std::span<const std::int32_t> found, id_buffer& ids) {
    if (!model_->byte_fallback) {
      if (after_unknown_ && !found.empty() && found.front() == model_->unk_id) {
        found = found.subspan(1);
      }
      if (!found.empty()) after_unknown_ = found.back() == model_->unk_id;
    }
    ids.append(found);
  }

  void encode_whole(std::string_view text, bool space_before, id_buffer& ids) {
    if (space_before) {
      first_word_ = ' ';
      first_word_ += text;
      text = first_word_;
    }
    emit(merge(text), ids);
  }

  // The ids of a fragment, valid until the next call.
  std::span<const std::int32_t> merge(std::string_view text) {
    if (symbols_.size() < text.size() || symbols_.size() > kept_symbols) {
      symbols_ = std::vector<piece_merger::symbol>(std::max<std::size_t>(text.size(), 64));
    }
    std::size_t count = symbols_of(text);
    const bool is_ascii =
        count == text.size() && model_->symbols.empty() &&
        std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
    count = merger_.merge(std::span(symbols_).first(count), is_ascii ? text : std::string_view());
    if (found_.capacity() > kept_symbols) found_ = {};
    found_.clear();
    std::size_t at = 0;
    for (const piece_merger::symbol symbol : std::span(symbols_).first(count)) {
      merger_.take_apart(
          symbol, [&](piece_merger::symbol leaf) { at += add_ids_of(leaf, text.substr(at)); });
    }
    return found_;
  }

  // Writes what a text begins with: characters and user-defined pieces.
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

  // The ids of a symbol, with which `text` begins.
  // @return the bytes it takes
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

  // What one huge text needs is not kept for the ordinary ones that follow it.
  static constexpr std::size_t kept_symbols = std::size_t{1} << 20;

  const compiled* model_;
  piece_merger merger_;
  short_cache short_;
  long_cache long_;
  std::string buffer_;
  std::string first_word_;
  std::vector<piece_merger::symbol> symbols_;
  std::vector<std::int32_t> found_;
  id_buffer word_ids_;
  bool after_unknown_ = false;  // the last id emitted is the unknown one
};

class bpe_engine final : public section_engine {
 public:
  bpe_engine(const sentencepiece_model& model, const cache_sizes& sizes) : model_(model, sizes) {}

  std::unique_ptr<section_encoder> make_encoder() const override {
    return std::make_unique<bpe_encoder>(model_);
  }

 private:
  compiled model_;
};

}  // namespace

std::unique_ptr<const section_engine> make_sentencepiece_bpe_engine(
    const sentencepiece_model& model, const cache_sizes& sizes) {
  return std::make_unique<bpe_engine>(model, sizes);
}

}  // namespace millrace::tokenizer::detail
