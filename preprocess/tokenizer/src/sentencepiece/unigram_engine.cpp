// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/error.hpp>

#include "sentencepiece/engines.hpp"
#include "sentencepiece/fragment_cache.hpp"
#include "sentencepiece/packed_ids.hpp"
#include "sentencepiece/seam_table.hpp"
#include "sentencepiece/text_front.hpp"
#include "sentencepiece/unigram_lattice.hpp"
#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {
namespace {

struct compiled {
  compiled(const sentencepiece_model& model, const cache_sizes& cache)
      : compiled(model, text_pieces_of(model), cache) {}

  compiled(const sentencepiece_model& model, const std::vector<text_piece>& text_pieces,
           const cache_sizes& cache)
      : front(model),
        pieces(text_pieces, model.unk_id, model.normalizer.escape_whitespaces),
        seams(seams_of(text_pieces)),
        byte_fallback(model.byte_fallback),
        escapes_spaces(model.normalizer.escape_whitespaces),
        unk_id(model.unk_id),
        byte_ids(model.byte_ids),
        sizes(cache) {}

  text_front front;
  unigram_pieces pieces;
  seam_table seams;
  bool byte_fallback;
  bool escapes_spaces;
  std::int32_t unk_id;
  std::array<std::int32_t, 256> byte_ids;
  cache_sizes sizes;
};

// The path of a fragment, and how large a score before it may be.
class known_path {
 public:
  static constexpr std::size_t max_ids = 6;

  template <class At>
  bool pack(std::size_t count, At at, float limit) noexcept {
    if (count > max_ids) return false;
    count_ = static_cast<std::uint32_t>(count);
    for (std::size_t i = 0; i < count; ++i) ids_[i] = at(i);
    limit_ = limit;
    return true;
  }

  std::size_t count() const noexcept { return count_; }
  float limit() const noexcept { return limit_; }
  void unpack(std::int32_t* out) const noexcept { std::ranges::copy(ids_, out); }

 private:
  std::array<std::int32_t, max_ids> ids_{};
  std::uint32_t count_ = 0;
  float limit_ = -1;
};

class unigram_encoder final : public section_encoder {
 public:
  explicit unigram_encoder(const compiled& model)
      : model_(&model),
        lattice_(model.pieces),
        short_(model.sizes.short_buckets),
        long_(model.sizes.long_buckets) {}

  std::optional<encode_fault> encode(const section& part, id_buffer& ids) override {
    const auto [text, space_before] = model_->front.prepare(part.text, buffer_);
    if (text.size() >= unigram_lattice::max_bytes) {
      return encode_fault{0, "a text of " + std::to_string(part.text.size()) +
                                 " bytes, expected less than 2147483646"};
    }
    after_unknown_ = false;
    score_ = 0;
    std::size_t at = 0;
    if (text.empty()) return std::nullopt;
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
        [&](std::string_view word, std::size_t, const long_cache::key& key, std::size_t home) {
          if (!recall(long_, home, key, ids)) learn(word, nullptr, 0, key, home, ids);
        },
        [&](std::string_view word, std::size_t readable) { encode_word(word, readable, ids); });
    return std::nullopt;
  }

 private:
  using short_cache = fragment_cache<2, packed_path>;
  using long_cache = fragment_cache<4, known_path>;

  // `readable` bytes may be read where `word` begins.
  void encode_word(std::string_view word, std::size_t readable, id_buffer& ids) {
    if (word.size() <= long_cache::max_bytes) {
      encode_fragment(word, readable, ids);
      return;
    }
    for (std::size_t at = 0; at < word.size();) {
      const std::size_t end = model_->seams.fragment_end(word, at);
      encode_fragment(word.substr(at, end - at), readable - at, ids);
      at = end;
    }
  }

  void encode_fragment(std::string_view text, std::size_t readable, id_buffer& ids) {
    if (text.size() <= short_cache::max_bytes) {
      const auto key = short_cache::make_key(text.data(), text.size(), readable);
      encode_short(text, readable, key, short_.home(key), ids);
    } else if (text.size() <= long_cache::max_bytes) {
      const auto key = long_cache::make_key(text.data(), text.size(), readable);
      const std::size_t home = long_.home(key);
      if (!recall(long_, home, key, ids)) learn(text, nullptr, 0, key, home, ids);
    } else {
      search(text, ids);
    }
  }

  void encode_short(std::string_view text, std::size_t readable, const short_cache::key& key,
                    std::size_t home, id_buffer& ids) {
    if (recall(short_, home, key, ids)) return;
    // Some have more ids than a short place takes.
    const auto long_key = long_cache::make_key(text.data(), text.size(), readable);
    const std::size_t long_home = long_.home(long_key);
    if (!recall(long_, long_home, long_key, ids)) {
      learn(text, &key, home, long_key, long_home, ids);
    }
  }

  // Appends the path if it is known and good after what came before.
  template <class Cache>
  bool recall(Cache& cache, std::size_t home, const typename Cache::key& key, id_buffer& ids) {
    const auto* known = cache.find(home, key);
    if (known == nullptr || !(std::abs(score_) <= known->limit())) return false;
    std::int32_t* out = ids.room(packed_ids::max_ids);
    known->unpack(out);
    const std::size_t count = known->count();
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::int32_t id = out[i];
      score_ += model_->pieces.score(id);
      const bool is_unknown = id == model_->unk_id;
      out[kept] = id;
      kept += !(is_unknown && after_unknown_);
      after_unknown_ = is_unknown;
    }
    ids.add(kept);
    return true;
  }

  void learn(std::string_view text, const short_cache::key* short_key, std::size_t short_home,
             const long_cache::key& long_key, std::size_t long_home, id_buffer& ids) {
    const auto [path, limit] = lattice_.settle(text);
    if (limit < 0 || (model_->byte_fallback && has_unknown(path))) return search(text, ids);
    const bool is_short = short_key != nullptr && put(short_, short_home, *short_key, path, limit);
    if (!is_short) put(long_, long_home, long_key, path, limit);
    if (!(std::abs(score_) <= limit)) return search(text, ids);
    for (const path_piece& piece : path) score_ += model_->pieces.score(piece.id);
    append(text, path, ids);
  }

  bool has_unknown(std::span<const path_piece> path) const {
    return std::ranges::any_of(path, [&](const auto& p) { return p.id == model_->unk_id; });
  }

  // Whether there is room for so many ids.
  template <class Cache>
  static bool put(Cache& cache, std::size_t home, const typename Cache::key& key,
                  std::span<const path_piece> path, float limit) {
    auto value = typename Cache::entry().value;
    if (!value.pack(
            path.size(), [&](std::size_t i) { return path[i].id; }, limit))
      return false;
    cache.put(home, key, value);
    return true;
  }

  void search(std::string_view text, id_buffer& ids) {
    append(text, lattice_.best_path(text, score_), ids);
  }

  void append(std::string_view text, std::span<const path_piece> path, id_buffer& ids) {
    for (std::size_t i = 0; i < path.size(); ++i) {
      const std::int32_t id = path[i].id;
      if (id != model_->unk_id) {
        ids.push_back(id);
        after_unknown_ = false;
      } else if (model_->byte_fallback) {
        const std::size_t end = i + 1 < path.size() ? path[i + 1].begin : text.size();
        add_bytes(text.substr(path[i].begin, end - path[i].begin), ids);
      } else if (!std::exchange(after_unknown_, true)) {
        ids.push_back(id);
      }
    }
  }

  void add_bytes(std::string_view character, id_buffer& ids) {
    if (character == " " && model_->escapes_spaces) character = space_symbol;
    for (const char byte : character) {
      ids.push_back(model_->byte_ids[static_cast<unsigned char>(byte)]);
    }
  }

  const compiled* model_;
  unigram_lattice lattice_;
  short_cache short_;
  long_cache long_;
  std::string buffer_;
  std::string first_word_;
  float score_ = 0;             // of the path so far
  bool after_unknown_ = false;  // the last id is the unknown one
};

class unigram_engine final : public section_engine {
 public:
  unigram_engine(const sentencepiece_model& model, const cache_sizes& sizes)
      : model_(model, sizes) {}

  std::unique_ptr<section_encoder> make_encoder() const override {
    return std::make_unique<unigram_encoder>(model_);
  }

 private:
  compiled model_;
};

}  // namespace

std::unique_ptr<const section_engine> make_sentencepiece_unigram_engine(
    const sentencepiece_model& model, const cache_sizes& sizes) {
  const bool any = std::ranges::any_of(model.pieces, [](const auto& piece) {
    return piece.type == piece_type::normal || piece.type == piece_type::user_defined ||
           piece.type == piece_type::unused;
  });
  if (!any) throw format_error(0, "a unigram model without a piece that text can match");
  return std::make_unique<unigram_engine>(model, sizes);
}

}  // namespace millrace::tokenizer::detail
