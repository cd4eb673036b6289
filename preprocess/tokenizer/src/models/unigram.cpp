// SPDX-License-Identifier: Apache-2.0
#include "models/unigram.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <string>

#include <millrace/formats/detail/free_memory.hpp>
#include <millrace/formats/detail/in_quotes.hpp>

#include "models/vocabulary.hpp"
#include "text/token_trie.hpp"
#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {
namespace {

constexpr double unknown_penalty = 10.0;

class unigram final : public word_model {
 public:
  unigram(const std::vector<unigram_piece>& pieces, std::optional<std::int32_t> unknown,
          bool byte_fallback)
      : unknown_(unknown) {
    double lowest = std::numeric_limits<double>::infinity();
    scores_.reserve(pieces.size());
    for (const unigram_piece& piece : pieces) {
      const auto id = static_cast<std::int32_t>(scores_.size());
      scores_.push_back(piece.score);
      lowest = std::min(lowest, piece.score);
      if (!piece.text.empty()) trie_.add(piece.text, id);
    }
    unknown_score_ = lowest - unknown_penalty;
    for (std::size_t byte = 0; byte < byte_ids_.size(); ++byte) {
      byte_ids_[byte] =
          byte_fallback ? id_of(byte_token(static_cast<unsigned char>(byte))) : token_trie::none;
    }
  }

  std::unique_ptr<word_encoder> make_encoder() const override {
    return std::make_unique<encoder>(*this);
  }

 private:
  // If a huge word needs scratch memory for more places than this, encode() frees the memory
  // afterwards. Ordinary words need less.
  static constexpr std::size_t kept_places = std::size_t{1} << 20;
  static constexpr std::uint32_t nowhere = 0xFFFFFFFF;

  // The best path of pieces from the start of the word to an offset: its score, and its last piece
  // with the offset where that piece begins.
  struct path {
    double score = 0;
    std::uint32_t from = nowhere;
    std::int32_t piece = 0;
  };
  struct stretch {
    std::uint32_t begin;
    std::uint32_t end;
    std::int32_t piece;
  };

  class encoder final : public word_encoder {
   public:
    explicit encoder(const unigram& model) : model_(&model) {}

    std::optional<encode_fault> encode(std::string_view word, id_buffer& ids) override {
      return encode_noting(word, ids, [](std::size_t, std::size_t, std::size_t) {});
    }

    std::optional<encode_fault> encode_with_offsets(std::string_view word, id_buffer& ids,
                                                    std::vector<byte_span>& spans) override {
      return encode_noting(word, ids, [&](std::size_t begin, std::size_t end, std::size_t count) {
        spans.resize(spans.size() + count, {begin, end});
      });
    }

   private:
    // Calls note(begin, end, number of ids) for each stretch.
    template <class Note>
    std::optional<encode_fault> encode_noting(std::string_view word, id_buffer& ids,
                                              const Note& note) {
      if (word.size() >= nowhere) {
        return encode_fault{0, "a word of " + std::to_string(word.size()) + " bytes"};
      }
      if (auto fault = model_->find_paths(word, paths_)) return fault;
      walk_back(word.size());
      write(word, ids, note);
      if (paths_.capacity() > kept_places) formats::free_memory(paths_);
      if (stretches_.capacity() > kept_places) formats::free_memory(stretches_);
      return std::nullopt;
    }

    // Collects the pieces of the best path, from the last to the first. Joins adjacent unknown
    // pieces.
    void walk_back(std::size_t end) {
      stretches_.clear();
      while (end > 0) {
        const path& best = paths_[end];
        const auto to = static_cast<std::uint32_t>(end);
        if (!stretches_.empty() && model_->unknown_ == best.piece &&
            stretches_.back().piece == best.piece) {
          stretches_.back().begin = best.from;
        } else {
          stretches_.push_back({best.from, to, best.piece});
        }
        end = best.from;
      }
    }

    template <class Note>
    void write(std::string_view word, id_buffer& ids, const Note& note) {
      for (auto s = stretches_.rbegin(); s != stretches_.rend(); ++s) {
        const std::size_t before = ids.size();
        const bool known = model_->unknown_ != s->piece;
        if (known) {
          ids.push_back(s->piece);
        } else {
          model_->write_unknown(word.substr(s->begin, s->end - s->begin), ids);
        }
        note(s->begin, s->end, ids.size() - before);
      }
    }

    const unigram* model_;
    std::vector<path> paths_;
    std::vector<stretch> stretches_;
  };

  std::int32_t id_of(std::string_view text) const noexcept {
    const token_trie::node node = trie_.walk(token_trie::root, text);
    return node == token_trie::nowhere ? token_trie::none : trie_.token(node);
  }

  std::optional<encode_fault> find_paths(std::string_view word, std::vector<path>& paths) const {
    paths.assign(word.size() + 1, path());
    const auto offer = [&](std::size_t begin, std::size_t end, double score, std::int32_t piece) {
      path& best = paths[end];
      if (best.from == nowhere || score > best.score) {
        best = {score, static_cast<std::uint32_t>(begin), piece};
      }
    };
    for (std::size_t begin = 0; begin < word.size();) {
      const double till_here = paths[begin].score;
      const std::size_t character = code_point_at(word, begin).size_bytes;
      bool character_is_piece = false;
      token_trie::node node = token_trie::root;
      for (std::size_t end = begin; end < word.size();) {
        node = trie_.next(node, static_cast<unsigned char>(word[end++]));
        if (node == token_trie::nowhere) break;
        const std::int32_t piece = trie_.token(node);
        if (piece == token_trie::none) continue;
        offer(begin, end, scores_[static_cast<std::size_t>(piece)] + till_here, piece);
        character_is_piece |= end == begin + character;
      }
      if (!character_is_piece) {
        const std::size_t end = begin + character;
        const double score = unknown_score_ + till_here;
        if (paths[end].from == nowhere || score > paths[end].score) {
          if (!unknown_) {
            return encode_fault{begin, "the character " +
                                           formats::in_quotes(word.substr(begin, character)) +
                                           " is not in the vocabulary, which has no unknown piece"};
          }
          offer(begin, end, score, *unknown_);
        }
      }
      begin += character;
    }
    return std::nullopt;
  }

  void write_unknown(std::string_view text, id_buffer& ids) const {
    if (const std::int32_t whole = id_of(text); whole != token_trie::none) {
      ids.push_back(whole);
      return;
    }
    const auto byte_id = [&](char c) { return byte_ids_[static_cast<unsigned char>(c)]; };
    if (std::ranges::any_of(text, [&](char c) { return byte_id(c) == token_trie::none; })) {
      ids.push_back(*unknown_);
      return;
    }
    for (const char c : text) ids.push_back(byte_id(c));
  }

  token_trie trie_;
  std::vector<double> scores_;
  std::optional<std::int32_t> unknown_;
  double unknown_score_ = 0;
  std::array<std::int32_t, 256> byte_ids_{};
};

}  // namespace

std::unique_ptr<const word_model> make_unigram(const std::vector<unigram_piece>& pieces,
                                               std::optional<std::int32_t> unknown,
                                               bool byte_fallback) {
  return std::make_unique<unigram>(pieces, unknown, byte_fallback);
}

}  // namespace millrace::tokenizer::detail
