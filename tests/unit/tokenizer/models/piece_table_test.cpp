// SPDX-License-Identifier: Apache-2.0
#include "models/piece_table.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/seed.hpp"

namespace millrace::tokenizer::detail {
namespace {

// Copies the text to an allocation that has room only for the text and for the bytes that the table
// may read after it. So ASan detects all other reads past the text.
piece_table::match longest(const piece_table& table, std::string_view text, bool continues,
                           char behind) {
  std::vector<char> exact(text.begin(), text.end());
  exact.resize(text.size() + piece_table::read_bytes, behind);
  return table.longest({exact.data(), text.size()}, continues);
}

TEST(PieceTable, FindsTheLongestPieceOfEachKind) {
  piece_table table(5);
  table.add("a", false, 1);
  table.add("abcd", false, 2);
  table.add("ab", true, 3);
  table.add("abcdefghijklmnop", false, 4);
  table.add("abcdefghijkl", false, 5);
  const auto size = [&](std::string_view text, bool continues) {
    return longest(table, text, continues, 'd').size_bytes;
  };
  EXPECT_EQ(size("abc", false), 1U) << "what may be read behind a text is none of it";
  EXPECT_EQ(size("abcde", false), 4U);
  EXPECT_EQ(size("abcd", true), 2U);
  EXPECT_EQ(size("a", true), 0U);
  EXPECT_EQ(longest(table, "b", false, 'a').id, piece_table::none);
  EXPECT_EQ(size("abcdefghijklmno", false), 12U);
  EXPECT_EQ(size("abcdefghijklmnopq", false), 16U);
}

TEST(PieceTable, KeepsZerosApart) {
  piece_table table(2);
  table.add(std::string_view("a\0", 2), false, 0);
  EXPECT_EQ(longest(table, "a", false, '\0').id, piece_table::none);
  EXPECT_EQ(longest(table, std::string_view("a\0", 2), false, '\0').id, 0);
}

TEST(PieceTable, AgreesWithAMapOnRandomPieces) {
  std::mt19937_64 random(test::seed(81));
  for (int round = 0; round < 60; ++round) {
    // With few characters, many pieces have common prefixes. With all bytes, hashes collide.
    const std::size_t letters = round % 3 == 0 ? 256 : 2 + random() % 3;
    const auto text_of = [&](std::size_t most) {
      std::string text;
      for (auto left = random() % most + 1; left > 0; --left) {
        text += static_cast<char>(random() % letters);
      }
      return text;
    };
    std::map<std::pair<std::string, bool>, std::int32_t> pieces;
    const std::size_t count = random() % 2000;
    for (std::size_t i = 0; i < count; ++i) {
      pieces.emplace(std::pair(text_of(round % 2 == 0 ? 6 : 40), random() % 2 == 0),
                     static_cast<std::int32_t>(random() % (piece_table::max_id + 1)));
    }
    piece_table table(pieces.size());
    for (const auto& [piece, id] : pieces) table.add(piece.first, piece.second, id);
    for (int i = 0; i < 1000; ++i) {
      std::string text = text_of(50);
      if (i % 2 == 0 && !pieces.empty()) {
        auto some = pieces.begin();
        std::advance(some, static_cast<std::ptrdiff_t>(random() % pieces.size()));
        text = some->first.first + (i % 4 == 0 ? text : std::string());
      }
      const bool continues = random() % 2 == 0;
      piece_table::match expected;
      for (std::size_t size = text.size(); size > 0; --size) {
        const auto found = pieces.find({text.substr(0, size), continues});
        if (found == pieces.end()) continue;
        expected = {found->second, size};
        break;
      }
      const auto found = longest(table, text, continues, static_cast<char>(random() % letters));
      ASSERT_EQ(found.id, expected.id) << testing::PrintToString(text);
      ASSERT_EQ(found.size_bytes, expected.size_bytes) << testing::PrintToString(text);
    }
  }
}

}  // namespace
}  // namespace millrace::tokenizer::detail
