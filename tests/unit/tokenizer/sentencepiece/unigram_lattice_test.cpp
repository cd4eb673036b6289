// SPDX-License-Identifier: Apache-2.0
#include "sentencepiece/unigram_lattice.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {
namespace {

std::vector<std::int32_t> ids_of(std::span<const path_piece> path) {
  std::vector<std::int32_t> ids;
  for (const path_piece& p : path) ids.push_back(p.id);
  return ids;
}

// Tests the contract of settle(). If the score before a text is within the returned limit, rounding
// cannot change the path. Adding up the scores of that path then gives the same sum as the search.
TEST(UnigramLattice, PathsHoldUpToTheirLimits) {
  std::mt19937 random(1);
  const auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
  std::size_t held = 0;
  std::size_t changed_beyond = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<text_piece> pieces = {{"a", 1, -2.1F, piece_type::normal},
                                      {"b", 2, -3.3F, piece_type::normal}};
    for (const char* text : {"ab", "ba", "aab", "abb"}) {  // scores close to sums of parts
      float score = std::ldexp(static_cast<float>(below(64)) - 32.0F, -16);
      for (const char* c = text; *c != 0; ++c) score += pieces[*c == 'a' ? 0 : 1].score;
      pieces.push_back(
          {text, static_cast<std::int32_t>(pieces.size()) + 1, score, piece_type::normal});
    }
    const unigram_pieces model(pieces, 0, true);
    unigram_lattice lattice(model);
    std::string text;
    for (unsigned i = 1 + below(8); i != 0; --i) text += static_cast<char>('a' + below(3));
    const auto [path, limit] = lattice.settle(text);
    const auto expected = ids_of(path);
    for (int i = 0; i < 10; ++i) {
      const float before =
          -std::ldexp(static_cast<float>(below(1 << 24)), -static_cast<int>(below(20)) - 8);
      float score = before;
      const auto found = ids_of(lattice.best_path(text, score));
      if (!(std::abs(before) <= limit)) {
        changed_beyond += found != expected;
        continue;
      }
      ++held;
      ASSERT_EQ(found, expected) << text << " after " << before;
      float sum = before;
      for (const std::int32_t id : expected) sum += model.score(id);
      ASSERT_EQ(sum, score);
    }
  }
  EXPECT_GT(held, 1000U);           // otherwise, nothing was tested
  EXPECT_GT(changed_beyond, 100U);  // otherwise, no limit was needed
}

TEST(UnigramLattice, OfEqualPathsNoneIsSettled) {
  const std::vector<text_piece> pieces = {{"a", 1, -1, piece_type::normal},
                                          {"aa", 2, -2, piece_type::normal}};
  const unigram_pieces model(pieces, 0, true);
  unigram_lattice lattice(model);
  EXPECT_LT(lattice.settle("aa").limit, 0);
  float score = 0;
  // The path whose piece begins earlier is found first. A path with an equal score does not replace
  // it.
  EXPECT_EQ(ids_of(lattice.best_path("aa", score)), (std::vector<std::int32_t>{2}));
}

// The path that a search finds that looks up every part of the text, in the same arithmetic.
std::vector<std::int32_t> naive_path(const std::map<std::string, text_piece>& pieces,
                                     float unknown_score, const std::string& text) {
  struct end {
    float score = 0;
    std::size_t begin = 0;
    std::int32_t id = -1;
  };
  std::vector<end> ends(text.size() + 1);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t next = at + code_point_at(text, at).size_bytes;
    const auto reach = [&](std::size_t to, float own, std::int32_t id) {
      const float score = ends[at].score + own;
      if (ends[to].id < 0 || score > ends[to].score) ends[to] = {score, at, id};
    };
    for (std::size_t to = at + 1; to <= text.size(); ++to) {
      const auto piece = pieces.find(text.substr(at, to - at));
      if (piece != pieces.end()) reach(to, piece->second.score, piece->second.id);
    }
    if (!pieces.contains(text.substr(at, next - at))) reach(next, unknown_score, 0);
    at = next;
  }
  std::vector<std::int32_t> ids;
  for (std::size_t at = text.size(); at > 0; at = ends[at].begin) ids.push_back(ends[at].id);
  return {ids.rbegin(), ids.rend()};
}

// A node of the trie knows its children by five bits of their bytes, and children of many nodes lie
// side by side. "b" and "B" have the same five bits, as "!" and "a", and C2 and A2.
TEST(UnigramLattice, FindsThePathsOfANaiveSearch) {
  const std::vector<std::string> letters = {"a", "A", "!", "b",        "B",        "\"",
                                            "c", "C", "#", "\xC3\xA2", "\xC3\x82", "\xE3\x81\x82"};
  std::mt19937 random(5);
  const auto some = [&](std::size_t most) {
    std::string text;
    for (std::size_t n = 1 + random() % most; n > 0; --n)
      text += letters[random() % letters.size()];
    return text;
  };
  std::map<std::string, text_piece> by_text;
  std::vector<text_piece> pieces;
  while (pieces.size() < 2000) {
    const auto id = static_cast<std::int32_t>(pieces.size() + 1);
    const text_piece piece = {some(5), id, -1 - static_cast<float>(random() % 100000) / 9999,
                              piece_type::normal};
    if (by_text.emplace(piece.text, piece).second) pieces.push_back(piece);
  }
  const unigram_pieces model(pieces, 0, true);
  unigram_lattice lattice(model);
  std::size_t settled_count = 0;
  for (int i = 0; i < 5000; ++i) {
    const std::string text = some(20);
    const auto expected = naive_path(by_text, model.unknown_score(), text);
    float score = 0;
    ASSERT_EQ(ids_of(lattice.best_path(text, score)), expected) << text;
    const auto settled = lattice.settle(text);
    if (settled.limit < 0) continue;
    ++settled_count;
    ASSERT_EQ(ids_of(settled.path), expected) << text;
  }
  EXPECT_GT(settled_count, 4000U);  // the others have two paths that are nearly equal
}

// Very large scores lower only the limits of texts with such pieces.
TEST(UnigramLattice, LimitsCountTheScoresOfTheText) {
  std::vector<text_piece> pieces = {{"a", 1, -1, piece_type::normal},
                                    {"c", 2, -9e9F, piece_type::unused}};
  const unigram_pieces small(pieces, 0, true);
  pieces.push_back({std::string(40001, 'b'), 3, 0, piece_type::user_defined});  // scores 4,000
  pieces.push_back({"b", 4, -2000, piece_type::normal});
  const unigram_pieces large(pieces, 0, true);
  EXPECT_FLOAT_EQ(small.largest_score(), 11);
  EXPECT_FLOAT_EQ(large.largest_score(), 4000);
  unigram_lattice of_small(small);
  unigram_lattice of_large(large);
  EXPECT_GE(of_small.settle("aaaa").limit, unigram_lattice::steady);
  EXPECT_GE(of_large.settle("aaaa").limit, unigram_lattice::steady);
  EXPECT_NEAR(of_large.settle("aaab").limit, 0.999 * (100000 - 1.01 * 4 * 2000 - 1), 1);
  EXPECT_NEAR(of_large.settle("a?").limit, 0.999 * (100000 - 1.01 * 2 * 2010 - 1), 1);
}

TEST(UnigramLattice, UserDefinedPiecesScoreByTheirLengthInTheFile) {
  const std::vector<text_piece> pieces = {{" x", 1, -50, piece_type::user_defined}};
  EXPECT_FLOAT_EQ(unigram_pieces(pieces, 0, true).score(1), 0.3F);
  EXPECT_FLOAT_EQ(unigram_pieces(pieces, 0, false).score(1), 0.1F);
}

}  // namespace
}  // namespace millrace::tokenizer::detail
