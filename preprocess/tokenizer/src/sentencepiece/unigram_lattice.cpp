// SPDX-License-Identifier: Apache-2.0
#include "sentencepiece/unigram_lattice.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <millrace/error.hpp>

#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {
namespace {

// If a huge text makes the list of ends longer than this, its memory is freed before the next text
// is searched.
constexpr std::size_t kept_ends = std::size_t{1} << 20;

byte_trie trie_of(const std::vector<text_piece>& pieces) {
  std::vector<std::pair<std::string_view, std::int32_t>> entries;
  for (const text_piece& piece : pieces) {
    if (piece.type != piece_type::unused) entries.emplace_back(piece.text, piece.id);
  }
  return byte_trie(std::move(entries));
}

// The score of a user-defined piece depends on its size in bytes in the file.
float score_of(const text_piece& piece, bool space_is_wide) {
  if (piece.type != piece_type::user_defined) return piece.score;
  std::size_t bytes = piece.text.size();
  if (space_is_wide) {
    bytes +=
        static_cast<std::size_t>(std::ranges::count(piece.text, ' ')) * (space_symbol.size() - 1);
  }
  return static_cast<float>(0.1 * (static_cast<int>(bytes) - 1));
}

}  // namespace

unigram_pieces::unigram_pieces(const std::vector<text_piece>& pieces, std::int32_t unknown_id,
                               bool space_is_wide)
    : unknown_id_(unknown_id) {
  float lowest = std::numeric_limits<float>::max();
  for (const text_piece& piece : pieces) {
    if (piece.type == piece_type::normal) lowest = std::min(lowest, piece.score);
    const auto id = static_cast<std::size_t>(piece.id);
    if (id >= scores_.size()) scores_.resize(id + 1);
    scores_[id] = score_of(piece, space_is_wide);
  }
  unknown_score_ = lowest - 10.0F;
  if (unknown_id >= 0) {
    scores_.resize(std::max(scores_.size(), static_cast<std::size_t>(unknown_id) + 1));
    scores_[static_cast<std::size_t>(unknown_id)] = unknown_score_;
  }
  largest_score_ = std::abs(unknown_score_);
  for (const text_piece& piece : pieces) {
    if (piece.type == piece_type::unused) continue;
    largest_score_ = std::max(largest_score_, std::abs(score(piece.id)));
  }
  no_score_is_positive_ = std::ranges::all_of(scores_, [](float score) { return score <= 0; });

  const byte_trie trie = trie_of(pieces);
  nodes_.resize(trie.size());
  for (byte_trie::node at = 0; at < trie.size(); ++at) {
    const std::int32_t id = trie.value(at);
    nodes_[at] = {trie.unit(at), 0, id >= 0 ? score(id) : no_piece, id};
  }
  for (const text_piece& piece : pieces) {
    byte_trie::node at = byte_trie::root;
    for (std::size_t i = 0; i < piece.text.size() && at != byte_trie::none; ++i) {
      const auto byte = static_cast<unsigned char>(piece.text[i]);
      nodes_[at].children |= std::uint32_t{1} << (byte % 32);
      at = trie.step(at, byte);
    }
  }
}

// Calls use(end, score, id) for each piece that begins at `at`, and for the character there if it
// is not a piece. To spare a branch that the processor would often predict wrongly, also calls it
// for beginnings of pieces that are no pieces, with the score no_piece. Returns the end of the
// character.
template <class Use>
std::size_t unigram_lattice::visit_pieces(std::string_view text, std::size_t at,
                                          const Use& use) const {
  const std::size_t next = at + code_point_at(text, at).size_bytes;
  bool alone = false;
  unigram_pieces::matcher matcher(*pieces_);
  for (std::size_t to = at;
       to < text.size() && matcher.next(static_cast<unsigned char>(text[to]));) {
    ++to;
    use(to, matcher.score(), matcher.id());
    alone |= to == next && matcher.score() != unigram_pieces::no_piece;
  }
  if (!alone) use(next, pieces_->unknown_score(), pieces_->unknown_id());
  return next;
}

void unigram_lattice::reach(std::size_t to, std::size_t from, float score, std::int32_t id) {
  end& e = ends_[to];
  if (e.begin < 0 || score > e.score) e = {score, id, static_cast<std::int32_t>(from)};
}

void unigram_lattice::reset(std::size_t at, std::size_t frontier) {
  const float offset = ends_[at].score;
  for (std::size_t i = at; i <= frontier; ++i) {
    if (i == at || ends_[i].begin >= 0) ends_[i].score -= offset;
  }
}

std::span<const path_piece> unigram_lattice::best_path(std::string_view text, float& score) {
  if (ends_.size() > kept_ends) {
    ends_ = {};
    path_ = {};
  }
  ends_.assign(text.size() + 1, {});
  ends_[0].score = score;
  std::size_t frontier = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (std::abs(ends_[at].score) > reset_threshold) reset(at, std::max(at, frontier));
    const float before = ends_[at].score;
    at = visit_pieces(text, at, [&](std::size_t to, float own, std::int32_t id) {
      if (own == unigram_pieces::no_piece) return;
      reach(to, at, own + before, id);
      frontier = std::max(frontier, to);
    });
  }

  score = ends_[text.size()].score;
  path_.clear();
  for (std::size_t at = text.size(); at > 0; at = path_.back().begin) {
    path_.push_back({static_cast<std::uint32_t>(ends_[at].begin), ends_[at].id});
  }
  std::ranges::reverse(path_);
  return path_;
}

float unigram_lattice::largest_score_in(std::string_view text) const {
  float largest = 0;
  for (std::size_t at = 0; at < text.size();) {
    at = visit_pieces(text, at, [&](std::size_t, float own, std::int32_t) {
      if (own != unigram_pieces::no_piece) largest = std::max(largest, std::abs(own));
    });
  }
  return largest;
}

unigram_lattice::settled unigram_lattice::settle(std::string_view text) {
  constexpr double unreached = -std::numeric_limits<double>::infinity();
  sums_.assign(text.size() + 1, {unreached, unreached, 0});
  sums_[0].first = 0;
  double characters = 0;
  for (std::size_t at = 0; at < text.size();) {
    const double first_here = sums_[at].first;
    const double second_here = sums_[at].second;
    // The score no_piece is -infinity, so it changes nothing.
    at = visit_pieces(text, at, [&](std::size_t to, float own, std::int32_t id) {
      two_best& sum = sums_[to];
      const double first = first_here + double{own};
      const double second = second_here + double{own};
      const std::uint64_t last = std::uint64_t{at} << 32 | static_cast<std::uint32_t>(id);
      const std::uint64_t is_better = 0 - std::uint64_t{first > sum.first};
      sum.last ^= (sum.last ^ last) & is_better;
      sum.second = std::max({sum.second, second, std::min(sum.first, first)});
      sum.first = std::max(sum.first, first);
    });
    ++characters;
  }

  path_.clear();
  for (std::size_t at = text.size(); at > 0; at = path_.back().begin) {
    const std::uint64_t last = sums_[at].last;
    path_.push_back({static_cast<std::uint32_t>(last >> 32), static_cast<std::int32_t>(last)});
  }
  std::ranges::reverse(path_);

  const two_best& whole = sums_.back();
  const double lead = whole.first - whole.second;  // infinite if there is only one path
  const auto limit_with = [&](double largest) {
    constexpr double rounding = 1.0 / (1 << 24);
    const double all = characters * largest;
    const double limit =
        std::min(lead / (2.1 * characters * rounding) - all, reset_threshold - 1.01 * all - 1);
    return limit > 0 ? static_cast<float>(0.999 * limit) : -1.0F;
  };
  // The largest score of the model bounds those in the text. If it makes the limit too low, looks
  // for the largest in the text, for the sake of models where few pieces have very large scores.
  const float limit = limit_with(pieces_->largest_score());
  return {path_, limit >= steady ? limit : limit_with(largest_score_in(text))};
}

}  // namespace millrace::tokenizer::detail
