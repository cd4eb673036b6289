// SPDX-License-Identifier: Apache-2.0
#include "sentencepiece/unigram_lattice.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

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

// A node knows its children by five bits of their bytes. "b", "B" and U+00E2 (C3 A2) share these.
TEST(UnigramLattice, TellsApartBytesWithTheSameFiveBits) {
  const std::vector<text_piece> pieces = {{"a", 1, -1, piece_type::normal},
                                          {"ab", 2, -1, piece_type::normal},
                                          {"\xC3\xA2", 3, -1, piece_type::normal}};
  const unigram_pieces model(pieces, 0, true);
  unigram_lattice lattice(model);
  const auto expect = [&](std::string_view text, const std::vector<std::int32_t>& ids) {
    float score = 0;
    EXPECT_EQ(ids_of(lattice.best_path(text, score)), ids) << text;
    EXPECT_EQ(ids_of(lattice.settle(text).path), ids) << text;
  };
  expect("ab", {2});
  expect("aB", {1, 0});
  expect("a\xC3\xA2", {1, 3});
  expect("\xC3\x82", {0});
  expect("A\xC3\xA2", {0, 3});
}

// A piece with a much higher score than all others makes paths longer sums, so limits are lower.
TEST(UnigramLattice, LimitsCountTheLargestScoreOfTheModel) {
  const std::string huge(4001, 'x');  // scores 400
  std::vector<text_piece> pieces = {{"a", 1, -1, piece_type::normal}};
  const unigram_pieces small(pieces, 0, true);
  pieces.push_back({huge, 2, 0, piece_type::user_defined});
  const unigram_pieces large(pieces, 0, true);
  EXPECT_FLOAT_EQ(small.largest_score(), 11);
  EXPECT_FLOAT_EQ(large.largest_score(), 400);
  unigram_lattice of_small(small);
  unigram_lattice of_large(large);
  EXPECT_GT(of_small.settle("aaaa").limit, of_large.settle("aaaa").limit + 1000);
}

TEST(UnigramLattice, UserDefinedPiecesScoreByTheirLengthInTheFile) {
  const std::vector<text_piece> pieces = {{" x", 1, -50, piece_type::user_defined}};
  EXPECT_FLOAT_EQ(unigram_pieces(pieces, 0, true).score(1), 0.3F);
  EXPECT_FLOAT_EQ(unigram_pieces(pieces, 0, false).score(1), 0.1F);
}

}  // namespace
}  // namespace millrace::tokenizer::detail
