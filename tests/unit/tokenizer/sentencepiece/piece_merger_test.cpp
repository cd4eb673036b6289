// SPDX-License-Identifier: Apache-2.0
#include "sentencepiece/piece_merger.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "support/cpu_time.hpp"

namespace millrace::tokenizer::detail {
namespace {

std::vector<std::int32_t> merged(const std::vector<text_piece>& pieces, std::string_view text) {
  const piece_merges merges(pieces);
  piece_merger merger(merges);
  std::vector<piece_merger::symbol> symbols;
  for (const char c : text) symbols.push_back(merges.of_character(static_cast<unsigned char>(c)));
  const std::size_t count = merger.merge(symbols);
  std::vector<std::int32_t> ids;
  for (std::size_t i = 0; i < count; ++i) {
    merger.take_apart(symbols[i],
                      [&](piece_merger::symbol leaf) { ids.push_back(merges.id(leaf)); });
  }
  return ids;
}

// Implements the definition: merges the two adjacent pieces whose joined text has the highest
// score; on ties, the leftmost two.
std::vector<std::int32_t> naive(const std::vector<text_piece>& pieces, std::string_view text) {
  const auto find = [&](const std::string& wanted) -> const text_piece* {
    for (const text_piece& p : pieces) {
      if (p.text == wanted) return &p;
    }
    return nullptr;
  };
  std::vector<std::string> symbols;
  for (const char c : text) symbols.emplace_back(1, c);
  for (;;) {
    const text_piece* best = nullptr;
    std::size_t place = 0;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      const text_piece* found = find(symbols[i] + symbols[i + 1]);
      if (found != nullptr && (best == nullptr || found->score > best->score)) {
        best = found;
        place = i;
      }
    }
    if (best == nullptr) break;
    symbols[place] = best->text;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
  std::vector<std::int32_t> ids;
  ids.reserve(symbols.size());
  for (const std::string& s : symbols) ids.push_back(find(s) != nullptr ? find(s)->id : -1);
  return ids;
}

TEST(PieceMerger, GivesWhatItsDefinitionGives) {
  std::mt19937 random(1);
  const auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
  const auto word = [&](unsigned longest) {
    std::string text;
    for (unsigned i = 1 + below(longest); i != 0; --i) text += static_cast<char>('a' + below(3));
    return text;
  };
  for (int round = 0; round < 200; ++round) {
    std::vector<text_piece> pieces;
    for (unsigned i = 3 + below(20); i != 0; --i) {
      const std::string text = word(5);
      const bool there = std::any_of(pieces.begin(), pieces.end(),
                                     [&](const text_piece& p) { return p.text == text; });
      if (there) continue;
      const auto id = static_cast<std::int32_t>(pieces.size());
      pieces.push_back({text, id, -static_cast<float>(below(6)), piece_type::normal});
    }
    for (int i = 0; i < 20; ++i) {
      const std::string text = word(i < 10 ? 12 : 80);  // sizes for both algorithms
      EXPECT_EQ(merged(pieces, text), naive(pieces, text)) << text;
    }
  }
}

// The parts of a text may end anywhere. The tests include merges that depend on text far to the
// right, pieces longer than a part, characters without a piece, and many pieces of equal score.
TEST(PieceMerger, GivesItForTextsInPartsAsWell) {
  std::mt19937 random(2);
  const auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
  for (int round = 0; round < 24; ++round) {
    std::vector<text_piece> pieces;
    const unsigned letters = 1 + below(3);
    const auto word = [&](unsigned longest) {
      std::string text;
      for (unsigned i = 1 + below(longest); i != 0; --i) {
        text += static_cast<char>('a' + below(letters));
      }
      return text;
    };
    const auto add = [&](const std::string& text) {
      const bool there = std::any_of(pieces.begin(), pieces.end(),
                                     [&](const text_piece& p) { return p.text == text; });
      if (there) return;
      const auto id = static_cast<std::int32_t>(pieces.size());
      const unsigned scores = round % 3 == 0 ? 2 : 1000;
      pieces.push_back({text, id, -static_cast<float>(below(scores)), piece_type::normal});
    };
    for (unsigned i = 2 + below(12); i != 0; --i) add(word(5));
    std::string twice = word(3);
    for (unsigned i = below(11); i != 0; --i) add(twice += twice);
    for (int i = 0; i < 3; ++i) {
      std::string text;
      while (text.size() < 1200) {
        text += below(4) == 0    ? word(8)
                : below(20) == 0 ? "x"
                                 : pieces[below(3) % pieces.size()].text;
      }
      text.resize(1200);
      ASSERT_EQ(merged(pieces, text), naive(pieces, text)) << "round " << round << ": " << text;
    }
  }
}

TEST(PieceMerger, TakesUnusedPiecesApart) {
  const std::vector<text_piece> pieces = {{"a", 0, 0, piece_type::normal},
                                          {"b", 1, 0, piece_type::normal},
                                          {"ab", 2, -1, piece_type::unused},
                                          {"aba", 3, -2, piece_type::unused},
                                          {"abab", 4, -3, piece_type::normal}};
  EXPECT_EQ(merged(pieces, "ab"), (std::vector<std::int32_t>{0, 1}));
  EXPECT_EQ(merged(pieces, "aba"), (std::vector<std::int32_t>{0, 1, 0}));
  EXPECT_EQ(merged(pieces, "abab"), (std::vector<std::int32_t>{4}));
}

// The text is a long run of one character. At each level of merging, every second pair merges.
TEST(PieceMerger, AMillionOfOneCharacterTakesNoLongerThanItShould) {
  std::vector<text_piece> pieces;
  std::string text = "a";
  for (int level = 0; level < 12; ++level) {
    pieces.push_back({text, level, -static_cast<float>(level), piece_type::normal});
    text += text;
  }
  const double start = test::cpu_seconds();
  EXPECT_EQ(merged(pieces, std::string(1 << 20, 'a')).size(), (1U << 20) / 2048);
  EXPECT_LT(test::cpu_seconds() - start, 20.0);
}

}  // namespace
}  // namespace millrace::tokenizer::detail
