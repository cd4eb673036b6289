// SPDX-License-Identifier: Apache-2.0
#include "sentencepiece/sentencepiece_tokenizer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/error.hpp>

#include "model_builder.hpp"
#include "sentencepiece/encode_fragments.hpp"
#include "support/charsmap_builder.hpp"
#include "support/encode.hpp"
#include "support/paths.hpp"

namespace millrace::tokenizer::detail {
namespace {

using namespace millrace::test;
using testing::HasSubstr;
using testing::ThrowsMessage;
using ids_list = std::vector<std::int32_t>;

class SentencePieceTokenizer : public testing::Test {
 protected:
  std::unique_ptr<tokenizer> load(const std::string& file,
                                  const sentencepiece_options& options = {}) {
    write_text(folder_ / "some.model", file);
    return make_sentencepiece_tokenizer(folder_ / "some.model", options);
  }

  temp_folder folder_;
  const std::string pieces_ = unknown_piece() + piece("a", -1) + piece("\xE2\x96\x81", -2) +
                              piece(
                                  "\xE2\x96\x81"
                                  "a",
                                  -3);
};

TEST_F(SentencePieceTokenizer, UnknownCharactersInARunAreOneId) {
  for (const unsigned type : {1U, 2U}) {
    const auto t = load(pieces_ + trainer(type) + plain_normalizer());
    EXPECT_EQ(encode(*t, "xya\xE4\xB8\x80z"), (ids_list{0, 1, 0}));
    EXPECT_EQ(encode(*t, std::string(100, 'x')), (ids_list{0}));  // also across fragments
    EXPECT_EQ(encode(*t, "x\ny"), (ids_list{0}));
    EXPECT_EQ(encode(*t, "a a"), (ids_list{1, 3}));
    EXPECT_EQ(encode(*t,
                     "a\xE2\x96\x81"
                     "a"),
              (ids_list{1, 3}));
    EXPECT_EQ(encode(*t, ""), ids_list{});
  }
}

TEST_F(SentencePieceTokenizer, IdsDoNotDependOnWhatWasEncodedBefore) {
  const auto t = load(pieces_ + trainer(2) + plain_normalizer());
  const auto encoder = t->make_encoder();
  EXPECT_EQ(encode(*encoder, "ax"), (ids_list{1, 0}));
  EXPECT_EQ(encode(*encoder, "xa"), (ids_list{0, 1}));
}

// Runs of spaces become one space. U+2581 at the end of a text is dropped, as a space is.
TEST_F(SentencePieceTokenizer, SpacesGoWhereTheReferenceDropsThem) {
  const std::string joining = bytes_field(3, number_field(3, 0) + number_field(4, 1));
  for (const unsigned type : {1U, 2U}) {
    const auto t = load(pieces_ + trainer(type) + joining);
    EXPECT_EQ(encode(*t, "  a     a a  "), (ids_list{1, 3, 3}));
    EXPECT_EQ(encode(*t, "a \xE2\x96\x81"), (ids_list{1}));
    EXPECT_EQ(encode(*t, "\xE2\x96\x81  \xE2\x96\x81"), ids_list{});
    EXPECT_EQ(encode(*t, "a a\xE2\x96\x81  \xE2\x96\x81"), (ids_list{1, 3}));
    EXPECT_EQ(encode(*t, "a \xE2\x96\x81  a"), (ids_list{1, 2, 2, 3}));
    EXPECT_EQ(encode(*t, "   "), ids_list{});
  }
}

// A piece may end with the space that a run of spaces becomes.
TEST_F(SentencePieceTokenizer, APieceMayEndInTheSpaceOfARun) {
  const std::string joining = bytes_field(3, number_field(3, 0) + number_field(4, 1));
  const std::string behind = piece("a\xE2\x96\x81", -0.5F);
  for (const unsigned type : {1U, 2U}) {
    const auto t = load(pieces_ + behind + trainer(type) + joining);
    EXPECT_EQ(encode(*t, "a     a"), (ids_list{4, 1}));
  }
}

// As in Llama 2: runs of spaces merge last. The space before "b" belongs to the word, but the one
// before "bc" to the run, because "bc" merges before " b".
TEST_F(SentencePieceTokenizer, TheLastSpaceOfARunBelongsToTheWordIfItMergesWithIt) {
  const std::string space = "\xE2\x96\x81";
  const auto t =
      load(pieces_ + piece("b", -9) + piece("c", -9) + piece("bc", -4) + piece(space + "b", -5) +
           piece(space + space, -1e9F) + piece(space + space + space + space, -1e9F) + trainer(2) +
           plain_normalizer());
  enum : std::int32_t { a = 1, one = 2, space_a = 3, bc = 6, space_b = 7, two = 8, four = 9 };
  const std::vector<std::pair<std::string, ids_list>> cases = {
      {"a    a", {a, two, one, space_a}},
      {"a    b", {a, two, one, space_b}},
      {"a    bc", {a, four, bc}},
      {"a bc", {a, one, bc}},
      {"a b", {a, space_b}},
      {"a  b", {a, one, space_b}},
      {"a     b", {a, four, space_b}},
      {"a     bc", {a, four, one, bc}},
      {"a  bc a   bc", {a, two, bc, space_a, two, one, bc}},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(encode(*t, text), expected) << text;
  const auto encoder = t->make_encoder();
  for (int round = 0; round < 2; ++round) {
    for (const auto& [text, expected] : cases) EXPECT_EQ(encode(*encoder, text), expected) << text;
  }
}

// In the pieces, all neighbors of the letter b are outside ASCII.
TEST_F(SentencePieceTokenizer, LettersMayHaveNeighboursOfOtherScriptsAlone) {
  const auto t = load(pieces_ + piece("\xC3\xA9", -4) + piece("b\xC3\xA9", -3) + piece("b", -5) +
                      trainer(2) + plain_normalizer());
  EXPECT_EQ(encode(*t, "a b\xC3\xA9"), (ids_list{1, 2, 5}));
}

// A long text gives the same ids the second time. In this text, the sums of scores exceed the limit
// up to which cached paths are valid.
TEST_F(SentencePieceTokenizer, LongTextsAreTheSameTwice) {
  const auto t = load(unknown_piece() + piece("a", -3) + piece("aa", -6) + piece("b", -2000) +
                      piece("ab", -2003.001F) + trainer(1) + plain_normalizer());
  std::string text;
  for (int i = 0; i < 4000; ++i) text += i % 3 == 0 ? "ab" : i % 7 == 0 ? "aaab\n" : "b a";
  const auto encoder = t->make_encoder();
  const ids_list once = encode(*encoder, text);
  EXPECT_EQ(encode(*encoder, text), once);
  const auto portable =
      load(unknown_piece() + piece("a", -3) + piece("aa", -6) + piece("b", -2000) +
               piece("ab", -2003.001F) + trainer(1) + plain_normalizer(),
           {.tuning = {0, instruction_set::portable}});
  EXPECT_EQ(encode(*portable->make_encoder(0), text), once);
}

// The sums rise above 100,000, where SentencePiece starts again from 0, and fall. So before " cd",
// the sum is not the 27,000 that the scores add up to, and " c" and "d" round to a higher sum
// than " cd". The ids are those of SentencePiece 0.2.3.
TEST_F(SentencePieceTokenizer, SumsOfScoresMayRiseAndFall) {
  const std::string space = "\xE2\x96\x81";
  const auto t = load(unknown_piece() + piece(space + "a", 900) + piece(space + "b", -900) +
                      piece(space + "c", -1.0035F) + piece("d", -1.0035F) +
                      piece(space + "cd", -2.0041F) + trainer(1) + plain_normalizer());
  std::string text;
  ids_list expected;
  for (int i = 0; i < 130; ++i) text += " a", expected.push_back(1);
  for (int i = 0; i < 100; ++i) text += " b", expected.push_back(2);
  expected.insert(expected.end(), {3, 4});
  const auto encoder = t->make_encoder();
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(encode(*encoder, text + " cd"), expected);
    EXPECT_EQ(encode(*encoder, " b cd"), (ids_list{2, 5}));
  }
}

// Fragments with more ids than a table entry holds, in both sizes of entries. Because of the last
// piece, a word is one fragment.
TEST_F(SentencePieceTokenizer, FragmentsOfManyIdsAreTheSameAgain) {
  const ids_list word = {1, 1, 2, 1, 2, 2, 1};
  const ids_list long_word(27, 2);
  ids_list expected;
  std::string text;
  for (const ids_list& ids : {word, long_word, word, word, long_word}) {
    if (!text.empty()) text += ' ', expected.push_back(3);
    for (const std::int32_t id : ids) text += id == 1 ? 'a' : 'b', expected.push_back(id);
  }
  for (const unsigned type : {1U, 2U}) {
    const auto t =
        load(unknown_piece() + piece("a", -1) + piece("b", -1.5F) + piece("\xE2\x96\x81", -2) +
             piece("aabbaz", -50) + trainer(type) + plain_normalizer());
    const auto encoder = t->make_encoder();
    for (int round = 0; round < 3; ++round) EXPECT_EQ(encode(*encoder, text), expected) << type;
    EXPECT_EQ(encode(*t->make_encoder(), text), expected);  // knows the words, not where ids are
  }
}

TEST(FuseUnknown, JoinsIdsAcrossCallsButNotAcrossTexts) {
  const auto fused = [](ids_list all, std::size_t begin, std::size_t text_begin) {
    id_buffer ids;
    ids.append(all);
    fuse_unknown(ids, begin, text_begin, 0);
    return ids_list(ids.ids().begin(), ids.ids().end());
  };
  EXPECT_EQ(fused({5, 0, 0, 7}, 2, 0), (ids_list{5, 0, 7}));  // the second 0 is in a later call
  EXPECT_EQ(fused({5, 0, 0, 7}, 2, 2), (ids_list{5, 0, 0, 7}));
  EXPECT_EQ(fused({5, 0, 7, 0}, 1, 0), (ids_list{5, 0, 7, 0}));
  EXPECT_EQ(fused({0, 0, 7, 0, 0, 0, 8}, 0, 0), (ids_list{0, 7, 0, 8}));
  EXPECT_EQ(fused({7, 8, 0, 0}, 1, 0), (ids_list{7, 8, 0}));
  EXPECT_EQ(fused({7}, 1, 0), (ids_list{7}));
}

TEST_F(SentencePieceTokenizer, EndsDocumentsWithTheTokenThatIsNamed) {
  const std::string file = pieces_ + piece("<end>", 0, piece_type::control) +
                           piece("</s>", 0, piece_type::control) + trainer(2) + plain_normalizer();
  EXPECT_EQ(load(file)->eod(), 5);
  EXPECT_EQ(load(file, {.eod_token = "</s>"})->eod(), 5);
  EXPECT_EQ(load(file, {.eod_token = "<end>"})->eod(), 4);
  EXPECT_NE(load(file, {.eod_token = "<end>"})->fingerprint(), load(file)->fingerprint());
  EXPECT_EQ(encode(*load(file, {.eod_token = "</s>"}), "a"), encode(*load(file), "a"));
  EXPECT_THAT([&] { (void)load(file, {.eod_token = "<pad>"}); },
              ThrowsMessage<config_error>(HasSubstr("'<pad>' is not the text of any token")));
  // The end-of-document token may also be a piece that occurs in texts. The option then gives the
  // text of this piece.
  const std::string word = file + piece("end");
  EXPECT_EQ(load(word, {.eod_token = "end"})->eod(), 6);
}

TEST_F(SentencePieceTokenizer, FingerprintsTellFilesAndOptionsApart) {
  const auto a = load(pieces_ + trainer(2))->fingerprint();
  EXPECT_EQ(a, load(pieces_ + trainer(2))->fingerprint());
  EXPECT_NE(a, load(pieces_ + trainer(1))->fingerprint());
  sentencepiece_options keeping;
  keeping.ignore_extra_whitespaces = false;
  EXPECT_NE(a, load(pieces_ + trainer(2), keeping)->fingerprint());
}

TEST_F(SentencePieceTokenizer, WhatCannotBeHonouredIsRefusedByName) {
  EXPECT_THAT([&] { load(pieces_ + trainer(3)); },
              ThrowsMessage<config_error>(HasSubstr("type WORD")));
  EXPECT_THAT([&] { load(pieces_ + trainer(4)); },
              ThrowsMessage<config_error>(HasSubstr("type CHAR")));
  EXPECT_THAT([&] { load("{}"); }, ThrowsMessage<format_error>(HasSubstr("some.model: ")));
  EXPECT_THAT([&] { load(unknown_piece() + trainer(1)); },
              ThrowsMessage<format_error>(HasSubstr("without a piece")));
}

TEST_F(SentencePieceTokenizer, ControlPiecesInTextsAreAsThePolicySays) {
  const std::string model = pieces_ + piece("</s>", 0, piece_type::control) + trainer(2);
  const auto plain = load(model);
  const auto ids_of = [](const tokenizer& t, std::string_view text) {
    return test::encode(*t.make_encoder(), text);
  };
  auto expected = ids_of(*plain, "a");
  const auto eos = static_cast<std::int32_t>(plain->vocab_size() - 1);
  expected.push_back(eos);
  for (const std::int32_t id : ids_of(*plain, "a a")) expected.push_back(id);

  sentencepiece_options options;
  options.special_tokens = special_tokens_in_text::allow;
  const auto allowing = load(model, options);
  EXPECT_EQ(ids_of(*allowing, "a</s>a a"), expected);
  EXPECT_NE(allowing->fingerprint(), plain->fingerprint());
  const auto encoder = allowing->make_encoder();
  id_buffer ids;
  EXPECT_FALSE(encoder->encode("a</s></s>", ids));
  EXPECT_EQ(encoder->special_tokens_found(), 2);

  options.special_tokens = special_tokens_in_text::error;
  const auto fault = load(model, options)->make_encoder()->encode("a</s>", ids);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->offset_bytes, 1U);
  options.special_tokens = special_tokens_in_text::encode_as_text;
  EXPECT_EQ(ids_of(*load(model, options), "a</s>"), ids_of(*plain, "a</s>"));
}

TEST_F(SentencePieceTokenizer, DecodesAsTheReference) {
  const auto t = load(pieces_ + piece("</s>", 0, piece_type::control) + trainer(2) +
                      bytes_field(3, number_field(4, 0)));
  EXPECT_EQ(t->decode(std::vector<std::int64_t>{2, 3, 3, 4}), " a a");  // one was the dummy space
  EXPECT_EQ(t->decode(std::vector<std::int64_t>{3, 0, 1}), "a \xE2\x81\x87 a");
  EXPECT_EQ(t->decode(std::vector<std::int64_t>{1, 99, -1}), "a\xEF\xBF\xBD\xEF\xBF\xBD");
}

// A rule may replace a letter with a hundred kilobytes. No single replacement exceeds the limit of
// the text, but all replacements together do.
TEST_F(SentencePieceTokenizer, RefusesATextThatItsRulesMakeTooLong) {
  std::string much;
  while (much.size() < 100'000) much += "ab";
  const std::string rules = charsmap_of({{"x", much}, {"y", "a"}});
  std::string text;
  for (int i = 0; i < 200; ++i) text += i % 2 == 0 ? "x " : "x\ny ";
  for (const unsigned type : {1U, 2U}) {
    for (const std::string& seams : {std::string(), piece("aa", -4) + piece(" x", -9)}) {
      const auto t = load(pieces_ + piece("b", -3) + seams + trainer(type) +
                          plain_normalizer(bytes_field(2, rules)));
      const auto encoder = t->make_encoder();
      EXPECT_EQ(encode(*encoder, "y y"), (ids_list{1, 3}));
      id_buffer ids;
      const auto fault = encoder->encode(text, ids);
      ASSERT_TRUE(fault) << type;
      EXPECT_LT(ids.size(), std::size_t{3} << 20) << "ids that were made before that showed";
      EXPECT_THAT(fault->what, HasSubstr("normalization rules makes more than"));
      EXPECT_EQ(encode(*encoder, "y y"), (ids_list{1, 3})) << "as before";
    }
  }
}

}  // namespace
}  // namespace millrace::tokenizer::detail
