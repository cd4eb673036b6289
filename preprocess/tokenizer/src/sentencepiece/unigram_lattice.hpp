// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "sentencepiece/text_front.hpp"
#include "text/byte_trie.hpp"

namespace millrace::tokenizer::detail {

/// The pieces of a Unigram model with their scores. Immutable; threads may share it.
class unigram_pieces {
  // All that a search reads at a node of the trie of all pieces, in one cache line.
  struct node {
    std::uint32_t unit;
    std::uint32_t children;  // bit b % 32 is set if byte b may follow
    float score;             // no_piece if no piece ends here
    std::int32_t id;         // -1 if no piece ends here
  };

 public:
  /// @param pieces         the pieces that text can match; unused pieces are ignored
  /// @param unknown_id     the id for a character that is not a piece
  /// @param space_is_wide  true if a space in these pieces stands for U+2581
  unigram_pieces(const std::vector<text_piece>& pieces, std::int32_t unknown_id,
                 bool space_is_wide);

  static constexpr float no_piece = -std::numeric_limits<float>::infinity();

  /// Finds the pieces that begin at one place of a text, from the shortest to the longest. The text
  /// is passed byte by byte.
  class matcher {
   public:
    /// @param pieces  must outlive this object
    explicit matcher(const unigram_pieces& pieces) noexcept
        : nodes_(pieces.nodes_.data()), at_(nodes_ + byte_trie::root) {}

    /// Returns false if no piece begins with the bytes so far. Then the matcher is used up.
    bool next(unsigned char byte) noexcept {
      // Nearly always tells without a load of the child whether there is one.
      if ((at_->children >> (byte % 32) & 1) == 0) return false;
      at_ = nodes_ + byte_trie::place_of_child(at_->unit, byte);
      return byte_trie::leads(at_->unit, byte);
    }
    /// The score of the piece that is the bytes so far, or no_piece.
    float score() const noexcept { return at_->score; }
    /// The id of that piece, or -1.
    std::int32_t id() const noexcept { return at_->id; }

   private:
    const node* nodes_;
    const node* at_;
  };

  float score(std::int32_t id) const noexcept { return scores_[static_cast<std::size_t>(id)]; }
  std::int32_t unknown_id() const noexcept { return unknown_id_; }
  float unknown_score() const noexcept { return unknown_score_; }
  /// The largest magnitude of the scores that a path can have.
  float largest_score() const noexcept { return largest_score_; }
  bool no_score_is_positive() const noexcept { return no_score_is_positive_; }

 private:
  std::vector<node> nodes_;
  std::vector<float> scores_;  // by id
  std::int32_t unknown_id_;
  float unknown_score_;
  float largest_score_;
  bool no_score_is_positive_;
};

/// One piece of a path.
struct path_piece {
  std::uint32_t begin = 0;  ///< offset in the text
  std::int32_t id = 0;
};

/// Finds the best path of pieces through a text, in SentencePiece's own arithmetic: the score of
/// each path is summed from left to right in float32. Of several equally good paths, the first
/// wins. Owns scratch memory, so each thread needs its own lattice.
class unigram_lattice {
 public:
  /// If the |score| of the best path to a place in the text exceeds this value, that score is
  /// subtracted from the scores of all open paths.
  static constexpr float reset_threshold = 100000;
  /// Nearly all short texts have at least this limit (see settle()). Other texts have a second path
  /// with nearly the same score.
  static constexpr float steady = 98000;
  /// Maximum size of a text, in bytes. Offsets are 31-bit numbers.
  static constexpr std::size_t max_bytes = 0x7FFFFFFE;

  /// @param pieces  must outlive this object
  explicit unigram_lattice(const unigram_pieces& pieces) : pieces_(&pieces) {}

  /// Returns the best path through `text` as the continuation of a path whose score is `score`.
  /// Sets `score` to the score of both paths together. The result is valid until the next call.
  std::span<const path_piece> best_path(std::string_view text, float& score);

  /// Returns the path through `text` that is best in exact arithmetic, and a limit. For every
  /// starting score whose magnitude is at most the limit, best_path() gives the same path, and no
  /// score exceeds reset_threshold. If no starting score has this property, the limit is negative.
  ///
  /// Adding n pieces to a score s rounds n times. Each rounding error is at most u = 2^-24 of a sum
  /// whose magnitude is at most |s| + n * L, where L is the largest |piece score|. So the float
  /// score of any path is within e(s) = n * u * (|s| + n * L) of its exact score. Rounding is
  /// monotonic: x <= y implies x + p <= y + p. So the search ends with the highest float score of
  /// all paths, and the path that it returns has that score. Suppose that the exact score of the
  /// best path exceeds that of the second best path by more than 2 * e(s). Then no other path
  /// reaches the float score of the best path, so the search finds the best path, however it
  /// decides ties along the way.
  ///
  /// Exact scores are computed in double precision. The limit uses the factor 2.1 instead of 2,
  /// which amply covers the rounding errors of double. The result is valid until the next call.
  struct settled {
    std::span<const path_piece> path;
    float limit;
  };
  settled settle(std::string_view text);

 private:
  struct end {
    float score = 0;
    std::int32_t id = 0;
    std::int32_t begin = -1;  // where the last piece begins; -1: no path ends here
  };
  struct two_best {
    double first;
    double second;
    std::uint64_t last;  // of the best path's last piece: where it begins * 2^32 + its id
  };

  template <class Use>
  std::size_t visit_pieces(std::string_view text, std::size_t at, const Use& use) const;
  float largest_score_in(std::string_view text) const;
  void reach(std::size_t to, std::size_t from, float score, std::int32_t id);
  void reset(std::size_t at, std::size_t frontier);

  const unigram_pieces* pieces_;
  std::vector<end> ends_;
  std::vector<path_piece> path_;
  std::vector<two_best> sums_;
};

}  // namespace millrace::tokenizer::detail
