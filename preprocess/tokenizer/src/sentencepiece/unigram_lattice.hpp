// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "sentencepiece/text_front.hpp"
#include "text/byte_trie.hpp"

namespace millrace::tokenizer::detail {

/// The pieces of a Unigram model with their scores. Immutable, shared by threads.
class unigram_pieces {
 public:
  /// @param pieces         those that text can match; unused ones are left out
  /// @param unknown_id     of a character that is no piece
  /// @param space_is_wide  a space stands for U+2581
  unigram_pieces(const std::vector<text_piece>& pieces, std::int32_t unknown_id,
                 bool space_is_wide);

  struct leaf {
    std::int32_t id = -1;
    float score = 0;
  };

  const byte_trie& trie() const noexcept { return trie_; }
  /// @pre trie().is_end(at)
  const leaf& at(byte_trie::node at) const noexcept { return leaves_[at]; }
  float score(std::int32_t id) const noexcept { return scores_[static_cast<std::size_t>(id)]; }
  std::int32_t unknown_id() const noexcept { return unknown_id_; }
  float unknown_score() const noexcept { return unknown_score_; }

 private:
  byte_trie trie_;
  std::vector<leaf> leaves_;   // by node
  std::vector<float> scores_;  // by id
  std::int32_t unknown_id_;
  float unknown_score_;
};

/// One piece of a path.
struct path_piece {
  std::uint32_t begin = 0;  ///< in the text
  std::int32_t id = 0;
};

/// Finds the best path of pieces through a text, in SentencePiece's own arithmetic: float32, each
/// path summed up from the left, and the first of equal ones wins. Owns the scratch memory of
/// that, for one thread.
class unigram_lattice {
 public:
  /// Beyond it a path's score is subtracted from all the open paths.
  static constexpr float reset_threshold = 100000;
  /// Longest text: places in it are 31-bit.
  static constexpr std::size_t max_bytes = 0x7FFFFFFE;

  /// @param pieces  outlives this
  explicit unigram_lattice(const unigram_pieces& pieces) : pieces_(&pieces) {}

  /// The best path through `text`, which begins where a path of `score` ends, that becomes the
  /// score of the whole. Valid until the next call.
  std::span<const path_piece> best_path(std::string_view text, float& score);

  /// The path through `text` that is best in real numbers, and the largest |score| with which
  /// best_path() gives the same and never passes the threshold; negative if there is none.
  ///
  /// Adding up n pieces from a score s rounds n times, by at most u = 2^-24 of a sum that is never
  /// larger than s + n * largest piece score: any path's float score is within
  /// e(s) = n * u * (|s| + n * largest) of its real one. Rounding keeps order, x <= y gives
  /// x + p <= y + p, so what the search stores at the end is the highest float score of all paths,
  /// and its path has that score. If the best path leads the second best by more than 2 * e(s) in
  /// real numbers, no other path's float score reaches its own, and the search finds it whatever
  /// the ties along the way.
  ///
  /// The real scores are had in double, whose own rounding the factor 2.1 covers by far.
  /// Valid until the next call.
  struct settled {
    std::span<const path_piece> path;
    float limit;
  };
  settled settle(std::string_view text);

 private:
  struct end {
    float score = 0;
    std::int32_t id = 0;
    std::int32_t begin = -1;  // of the last piece; -1: not reached
  };
  struct two_best {
    double first;
    double second;
    std::int32_t id;  // of the last piece of the first, and where it begins
    std::int32_t begin;
  };

  void reach(std::size_t to, std::size_t from, float score, std::int32_t id);
  void reset(std::size_t at, std::size_t frontier);

  const unigram_pieces* pieces_;
  std::vector<end> ends_;
  std::vector<path_piece> path_;
  std::vector<two_best> sums_;
};

}  // namespace millrace::tokenizer::detail
