// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/error.hpp>

#include "sentencepiece/encode_fragments.hpp"
#include "sentencepiece/fragment_cache.hpp"
#include "sentencepiece/seam_table.hpp"
#include "sentencepiece/sentencepiece_tokenizer.hpp"
#include "sentencepiece/text_front.hpp"
#include "sentencepiece/unigram_lattice.hpp"

namespace millrace::tokenizer::detail {
namespace {

struct unigram_tables {
  unigram_tables(const sentencepiece_model& model, const engine_tuning& given)
      : unigram_tables(model, text_pieces_of(model), given) {}

  unigram_tables(const sentencepiece_model& model, const std::vector<text_piece>& text_pieces,
                 const engine_tuning& given)
      : seams(seams_of(text_pieces)),
        front(model, seams, given.set),
        pieces(text_pieces, model.unk_id, model.normalizer.escape_whitespaces),
        byte_fallback(model.byte_fallback),
        escapes_spaces(model.normalizer.escape_whitespaces),
        unk_id(model.unk_id),
        byte_ids(model.byte_ids),
        tuning(given),
        shared(given.shared_bytes) {}

  seam_table seams;
  text_front front;
  unigram_pieces pieces;
  bool byte_fallback;
  bool escapes_spaces;
  std::int32_t unk_id;
  std::array<std::int32_t, 256> byte_ids;
  engine_tuning tuning;
  shared_pretoken_cache_on_demand shared;
};

class unigram_encoder final : public section_encoder {
 public:
  unigram_encoder(const unigram_tables& model, std::size_t cache_bytes)
      : model_(&model),
        lattice_(model.pieces),
        cache_(cache_bytes, model.shared.get(cache_bytes), model.tuning.set) {}

  std::optional<encode_fault> encode(const section& part, id_buffer& ids) override {
    if (part.text.size() >= unigram_lattice::max_bytes) return too_long(part.text);
    start_ = ids.size();
    if (!part.continues) {
      score_ = 0;
      ends_unknown_ = false;
    }
    if (auto fault = encode_all(part, ids)) return fault;
    fuse_with_part_before(ids);
    return std::nullopt;
  }

  // Searches every fragment, without the caches, because these have no sizes.
  std::optional<encode_fault> encode_with_offsets(const section& part, id_buffer& ids,
                                                  std::vector<byte_span>& spans) override {
    if (part.text.size() >= unigram_lattice::max_bytes) return too_long(part.text);
    start_ = ids.size();
    if (!part.continues) {
      score_ = 0;
      ends_unknown_ = false;
    }
    std::string text;
    std::vector<std::size_t> places;
    model_->front.normalize_places(part.text, part.continues, text, places, limit());
    if (text.size() >= unigram_lattice::max_bytes) return too_long(part.text);
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = model_->seams.fragment_end(text, at);
      search_with_offsets(std::string_view(text).substr(at, end - at),
                          std::span(places).subspan(at), ids, spans);
      expect_growth(ids);
      at = end;
    }
    const std::size_t found = ids.size();
    fuse_with_part_before(ids);
    if (ids.size() == found) return std::nullopt;
    return encode_fault{0,
                        "an unknown character joins the one before the part, so its place is "
                        "not in one part"};
  }

  // The functions that encode_fragments requires.

  using section_encoder::limit;
  void expect_growth(const id_buffer& ids) { limit().expect_ids(ids.size() - start_); }

  // Ids from the batch are valid only while |score_| is at most `steady`. Even so, adds the scores
  // of these ids one by one, because the ids of a later fragment may depend on the exact bits of
  // the sum.
  bool take(id_buffer& ids, std::size_t count) {
    const std::int32_t* const found = ids.room(count);
    float score = score_;
    float largest = std::abs(score);
    if (model_->pieces.no_score_is_positive()) {  // then the largest sum is at an end
      for (std::size_t i = 0; i < count; ++i) score += model_->pieces.score(found[i]);
      largest = std::max(largest, std::abs(score));
    } else {
      for (std::size_t i = 0; i < count; ++i) {
        score += model_->pieces.score(found[i]);
        largest = std::max(largest, std::abs(score));
      }
    }
    if (!(largest <= steady)) return false;
    score_ = score;
    const std::size_t before = ids.size();
    ids.add(count);
    fuse_unknown(ids, before);
    return true;
  }

  bool is_absent(std::size_t i) const noexcept { return cache_.is_absent(i); }

  bool learn(std::string_view text, std::size_t first) {
    const word_batch& batch = cache_.batch();
    const word_batch::absent_words& all = cache_.prefetch_absent(first);
    const auto shorts = std::span<const std::uint16_t>(all.shorts).first(all.short_count);
    const auto longs = std::span<const std::uint16_t>(all.longs).first(all.long_count);
    for (const auto& absent : {shorts, longs}) {
      for (const std::size_t i : absent) {
        if (!cache_.fetch(i)) learn(text.substr(batch.begin(i), batch.end(i) - batch.begin(i)));
      }
    }
    return true;
  }

  void encode_fragment(std::string_view fragment, id_buffer& ids) {
    using answer = fragment_cache::answer;
    const std::size_t before = ids.size();
    const answer known = cache_.find(fragment, ids);
    if (known == answer::known && std::abs(score_) <= steady) return add_scores(ids, before);
    ids.truncate(before);
    if (known == answer::unknown) return encode_and_learn(fragment, ids);
    if (known == answer::special) {
      const overflow_cache::place place = cache_.overflow().place_of(fragment);
      const auto known_ids = cache_.overflow().ids_at(place);
      if (known_ids.data() == nullptr) return encode_and_learn(fragment, ids);
      const auto limit = std::bit_cast<float>(known_ids[0]);
      if (limit >= steady) cache_.set_place(fragment, after_limit(place));
      if (std::abs(score_) <= limit) {
        ids.append(known_ids.subspan(1));
        return add_scores(ids, before);
      }
    }
    encode_anew(model_->front.normalize_part(fragment, buffer_, limit()), ids);
  }

  void encode_normalized(std::string_view text, id_buffer& ids) {
    if (model_->front.is_its_own(text)) return encode_fragment(text, ids);
    encode_by_seams(text, ids);
  }

 private:
  std::optional<encode_fault> encode_all(const section& part, id_buffer& ids) {
    if (model_->front.takes_fragments(part.text)) {
      encode_fragments(part.text, part.continues, model_->front, cache_.batch(), *this, first_,
                       ids);
      return std::nullopt;
    }
    const std::string_view text =
        model_->front.normalize_part(part.text, {!part.continues, true}, first_, limit());
    if (text.size() >= unigram_lattice::max_bytes) return too_long(part.text);
    if (model_->front.cuts_raw_text()) {
      encode_by_seams(text, ids);
    } else {
      encode_normalized_fragments(text, model_->front, cache_.batch(), *this, ids);
    }
    return std::nullopt;
  }

  // The batch copies the ids of a fragment only if its best path is best for every preceding score
  // of at most this magnitude.
  static constexpr float steady = unigram_lattice::steady;

  static encode_fault too_long(std::string_view text) {
    return {0,
            "a text of " + std::to_string(text.size()) + " bytes, expected less than 2147483646"};
  }

  void encode_by_seams(std::string_view text, id_buffer& ids) {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = model_->seams.fragment_end(text, at);
      const std::string_view part = text.substr(at, end - at);
      if (part.size() <= fragment_cache::max_bytes && model_->front.is_its_own(part)) {
        encode_fragment(part, ids);
      } else {
        search(part, ids);
      }
      at = end;
    }
  }

  // Encodes a normalized fragment that is not cached, or whose cached ids do not apply here.
  void encode_anew(std::string_view text, id_buffer& ids) {
    if (text.size() <= fragment_cache::max_bytes) return search(text, ids);
    encode_by_seams(text, ids);
  }

  // Encodes a fragment whose ids no cache holds, and caches them if its size allows.
  void encode_and_learn(std::string_view fragment, id_buffer& ids) {
    if (fragment.size() <= fragment_cache::max_bytes && std::abs(score_) <= learn(fragment)) {
      const std::size_t before = ids.size();
      ids.append(std::span<const std::int32_t>(learned_).subspan(1));
      return add_scores(ids, before);
    }
    encode_anew(model_->front.normalize_part(fragment, buffer_, limit()), ids);
  }

  // Caches the ids of a fragment that are right for any preceding score up to a limit. Leaves the
  // limit and the ids in learned_, and returns the limit.
  // @pre fragment.size() <= fragment_cache::max_bytes
  float learn(std::string_view fragment) {
    auto [path, limit] =
        lattice_.settle(model_->front.normalize_part(fragment, buffer_, this->limit()));
    if (model_->byte_fallback && has_unknown(path)) limit = -1;
    learned_.assign(1, std::bit_cast<std::int32_t>(limit));
    for (const path_piece& piece : path) learned_.push_back(piece.id);
    const auto ids = std::span<const std::int32_t>(learned_).subspan(1);
    if (limit >= steady && cache_.put(fragment, ids)) return limit;
    const overflow_cache::place place = cache_.overflow().put(fragment, learned_);
    cache_.put_special(fragment, limit >= steady ? after_limit(place) : overflow_cache::place());
    return limit;
  }

  // The place of the ids in a record of overflow(), which begins with a limit.
  static overflow_cache::place after_limit(overflow_cache::place record) noexcept {
    if (record.count == 0) return record;
    return {record.begin + 1, record.count - 1, record.generation};
  }

  bool has_unknown(std::span<const path_piece> path) const {
    return std::ranges::any_of(path, [&](const auto& p) { return p.id == model_->unk_id; });
  }

  // Adds the scores of the path whose ids begin at index `begin`.
  void add_scores(id_buffer& ids, std::size_t begin) {
    for (const std::int32_t id : ids.ids().subspan(begin)) score_ += model_->pieces.score(id);
    fuse_unknown(ids, begin);
  }

  void fuse_unknown(id_buffer& ids, std::size_t begin) const {
    if (model_->byte_fallback) return;  // unknown characters are encoded as bytes
    detail::fuse_unknown(ids, begin, start_, model_->unk_id);
  }

  // If the previous part ends with an unknown character and this part begins with one, joins their
  // two ids.
  void fuse_with_part_before(id_buffer& ids) {
    if (model_->byte_fallback || ids.size() == start_) return;
    const auto found = ids.ids().subspan(start_);
    const bool again = ends_unknown_ && found.front() == model_->unk_id;
    ends_unknown_ = found.back() == model_->unk_id;
    if (!again) return;
    std::ranges::copy(found.subspan(1), found.begin());
    ids.truncate(ids.size() - 1);
  }

  // Encodes a text with SentencePiece's own arithmetic, starting from the score of the path so far.
  void search(std::string_view text, id_buffer& ids) {
    const auto path = lattice_.best_path(text, score_);
    const std::size_t before = ids.size();
    for (std::size_t i = 0; i < path.size(); ++i) {
      const std::int32_t id = path[i].id;
      if (id == model_->unk_id && model_->byte_fallback) {
        const std::size_t end = i + 1 < path.size() ? path[i + 1].begin : text.size();
        add_bytes(text.substr(path[i].begin, end - path[i].begin), ids);
      } else {
        ids.push_back(id);
      }
    }
    fuse_unknown(ids, before);
  }

  // As search(). `places` are those of the bytes of `text` and of its end.
  void search_with_offsets(std::string_view text, std::span<const std::size_t> places,
                           id_buffer& ids, std::vector<byte_span>& spans) {
    const auto path = lattice_.best_path(text, score_);
    const std::int32_t unknown = model_->byte_fallback ? -1 : model_->unk_id;
    for (std::size_t i = 0; i < path.size(); ++i) {
      const std::size_t end = i + 1 < path.size() ? path[i + 1].begin : text.size();
      const byte_span span{places[path[i].begin], places[end]};
      if (path[i].id == model_->unk_id && model_->byte_fallback) {
        const std::size_t before = ids.size();
        add_bytes(text.substr(path[i].begin, end - path[i].begin), ids);
        spans.resize(spans.size() + (ids.size() - before), span);
      } else {
        put_with_span(path[i].id, span, ids, spans, start_, unknown);
      }
    }
  }

  void add_bytes(std::string_view character, id_buffer& ids) const {
    if (character == " " && model_->escapes_spaces) character = space_symbol;
    for (const char byte : character) {
      ids.push_back(model_->byte_ids[static_cast<unsigned char>(byte)]);
    }
  }

  const unigram_tables* model_;
  unigram_lattice lattice_;
  fragment_cache cache_;
  std::string first_;
  std::string buffer_;
  // A limit, then ids, as stored in overflow(). Only of fragments that the tables could hold: of
  // longer ones, word_batch expects plain ids there.
  std::vector<std::int32_t> learned_;
  float score_ = 0;            // score of the path so far
  bool ends_unknown_ = false;  // the path so far ends with an unknown character
  std::size_t start_ = 0;      // index of the text's first id
};

class unigram_engine final : public section_engine {
 public:
  unigram_engine(const sentencepiece_model& model, const engine_tuning& tuning)
      : model_(model, tuning) {}

  std::unique_ptr<section_encoder> make_encoder(std::size_t cache_bytes) const override {
    return std::make_unique<unigram_encoder>(model_, cache_bytes);
  }

  bool may_cut(std::string_view text, std::size_t at) const override {
    return model_.front.may_cut(text, at);
  }
  // The score of all text before a section can decide between two paths with nearly equal scores.
  bool continues_in_order() const noexcept override { return true; }

 private:
  unigram_tables model_;
};

}  // namespace

std::unique_ptr<const section_engine> make_sentencepiece_unigram_engine(
    const sentencepiece_model& model, const engine_tuning& tuning) {
  const bool any = std::ranges::any_of(model.pieces, [](const auto& piece) {
    return piece.type == piece_type::normal || piece.type == piece_type::user_defined ||
           piece.type == piece_type::unused;
  });
  check_size(model);
  if (!any) throw format_error(0, "a unigram model without a piece that text can match");
  return std::make_unique<unigram_engine>(model, tuning);
}

}  // namespace millrace::tokenizer::detail
