// SPDX-License-Identifier: Apache-2.0
#include "models/word_models.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/character_bpe.hpp"
#include "models/unigram.hpp"

namespace millrace::tokenizer::detail {
namespace {

using ids_list = std::vector<std::int32_t>;

std::unique_ptr<const vocabulary> vocabulary_of(const std::vector<std::string>& texts) {
  std::vector<listed_token> listed;
  listed.reserve(texts.size());
  for (const std::string& text : texts) {
    listed.push_back({text, static_cast<std::int32_t>(listed.size())});
  }
  return std::make_unique<const vocabulary>(listed);
}

ids_list encode(const word_model& model, std::string_view word) {
  id_buffer ids;
  if (model.make_encoder()->encode(word, ids)) return {-1};
  return {ids.ids().begin(), ids.ids().end()};
}

TEST(WordLevel, KnowsWholeWordsOnly) {
  const auto model = make_word_level(vocabulary_of({"[UNK]", "a", "ab"}), 0);
  EXPECT_EQ(encode(*model, "ab"), ids_list{2});
  EXPECT_EQ(encode(*model, "aba"), ids_list{0});
  EXPECT_EQ(encode(*make_word_level(vocabulary_of({"a"}), std::nullopt), "b"), ids_list{-1});
}

TEST(WordPiece, TakesTheLongestPieceEachTime) {
  const auto model =
      make_word_piece(vocabulary_of({"[UNK]", "a", "ab", "##b", "##bc", "##c"}), {"##", 4, 0});
  EXPECT_EQ(encode(*model, "abc"), (ids_list{2, 5}));
  EXPECT_EQ(encode(*model, "abbc"), (ids_list{2, 4}));
  EXPECT_EQ(encode(*model, "abx"), ids_list{0}) << "the whole word is unknown, not its rest";
  EXPECT_EQ(encode(*model, "b"), ids_list{0}) << "a piece that continues begins no word";
}

TEST(WordPiece, OfTooManyCharactersIsUnknown) {
  const auto model = make_word_piece(vocabulary_of({"[UNK]", "\xC3\xA9"}), {"", 2, 0});
  EXPECT_EQ(encode(*model, "\xC3\xA9\xC3\xA9"), (ids_list{1, 1}));
  EXPECT_EQ(encode(*model, "\xC3\xA9\xC3\xA9\xC3\xA9"), ids_list{0});
}

TEST(CharacterBpe, MergesByRank) {
  const auto model = make_character_bpe(vocabulary_of({"a", "b", "c", "bc", "ab", "abc"}),
                                        {{1, 2, 3}, {0, 1, 4}, {0, 3, 5}}, {});
  EXPECT_EQ(encode(*model, "abc"), ids_list{5});
  EXPECT_EQ(encode(*model, "abab"), (ids_list{4, 4}));
  EXPECT_EQ(encode(*model, "axb"), ids_list{4}) << "what is unknown is not there at all";
}

TEST(CharacterBpe, PutsPrefixAndSuffixAround) {
  character_bpe_options options;
  options.prefix = "##";
  options.suffix = "</w>";
  const auto model = make_character_bpe(vocabulary_of({"a", "##a", "##a</w>", "a</w>", "aa</w>"}),
                                        {{0, 2, 4}}, options);
  EXPECT_EQ(encode(*model, "a"), ids_list{3});
  EXPECT_EQ(encode(*model, "aa"), ids_list{4});
  EXPECT_EQ(encode(*model, "aaa"), (ids_list{0, 1, 2}));
}

TEST(CharacterBpe, MakesUnknownTokensOneOrMany) {
  character_bpe_options options;
  options.unknown = 0;
  EXPECT_EQ(encode(*make_character_bpe(vocabulary_of({"?", "a"}), {}, options), "xya"),
            (ids_list{0, 0, 1}));
  options.fuse_unknown = true;
  EXPECT_EQ(encode(*make_character_bpe(vocabulary_of({"?", "a"}), {}, options), "xyaz"),
            (ids_list{0, 1, 0}));
}

// As in the reference, the id of an unknown character comes just before the id of the next known
// character. If characters between these two fall back to bytes, their byte ids come first.
TEST(CharacterBpe, FallsBackToBytesIfAllOfThemAreThere) {
  character_bpe_options options;
  options.unknown = 0;
  options.byte_fallback = true;
  const auto model = make_character_bpe(vocabulary_of({"?", "a", "<0xC3>", "<0xA9>"}), {}, options);
  EXPECT_EQ(encode(*model, "\xC3\xA9"), (ids_list{2, 3}));
  EXPECT_EQ(encode(*model, "\xC3\xA8"), ids_list{0});
  EXPECT_EQ(encode(*model,
                   "x\xC3\xA9"
                   "a"),
            (ids_list{2, 3, 0, 1}));
}

TEST(CharacterBpe, TakesWholeWordsFirstOnlyIfAsked) {
  character_bpe_options options;
  EXPECT_EQ(encode(*make_character_bpe(vocabulary_of({"a", "aa"}), {}, options), "aa"),
            (ids_list{0, 0}));
  options.whole_words_first = true;
  EXPECT_EQ(encode(*make_character_bpe(vocabulary_of({"a", "aa"}), {}, options), "aa"),
            ids_list{1});
}

TEST(Unigram, TakesTheHighestSum) {
  const std::vector<unigram_piece> pieces = {{"?", 0},  {"a", 0},   {"b", 0},
                                             {"c", 0},  {"d", 0},   {"cd", 1},
                                             {"ab", 2}, {"abc", 5}, {"abcd", 10}};
  const auto model = make_unigram(pieces, 0, false);
  EXPECT_EQ(encode(*model, "abcd"), ids_list{8});
  EXPECT_EQ(encode(*model, "abcdacd"), (ids_list{8, 1, 5}));
  EXPECT_EQ(encode(*model, "axxa"), (ids_list{1, 0, 1})) << "neighbours that are unknown are one";
}

// If two paths have equal sums, the path that is found first wins. This is the path whose last
// piece begins earlier.
TEST(Unigram, KeepsTheFirstOfEqualSums) {
  const auto model = make_unigram({{"?", 0}, {"a", -1}, {"ab", -2}, {"b", -1}}, 0, false);
  EXPECT_EQ(encode(*model, "ab"), ids_list{2});
}

TEST(Unigram, SpellsUnknownTextInBytesIfAllAreThere) {
  std::vector<unigram_piece> pieces = {{"?", 0}, {"a", -1}, {"<0x78>", -5}};
  EXPECT_EQ(encode(*make_unigram(pieces, 0, true), "xxa"), (ids_list{2, 2, 1}));
  EXPECT_EQ(encode(*make_unigram(pieces, 0, true), "xy"), ids_list{0});
  EXPECT_EQ(encode(*make_unigram(pieces, 0, false), "xx"), ids_list{0});
  EXPECT_EQ(encode(*make_unigram(pieces, std::nullopt, false), "x"), ids_list{-1});
}

// A million characters without a break. Neither time nor stack size may grow as fast as the
// square of the length.
TEST(Models, TakeAMillionCharactersInOneWord) {
  const std::string word(1000000, 'a');
  EXPECT_EQ(encode(*make_character_bpe(vocabulary_of({"a", "aa"}), {{0, 0, 1}}, {}), word).size(),
            500000U);
  EXPECT_EQ(encode(*make_unigram({{"?", 0}, {"a", -1}, {"aa", -1}}, 0, false), word).size(),
            500000U);
}

}  // namespace
}  // namespace millrace::tokenizer::detail
