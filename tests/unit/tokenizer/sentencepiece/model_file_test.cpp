// SPDX-License-Identifier: Apache-2.0
#include "sentencepiece/model_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include <millrace/error.hpp>

#include "model_builder.hpp"

namespace millrace::tokenizer::detail {
namespace {

using namespace millrace::test;

std::string refusal(const std::string& file) {
  try {
    (void)parse_sentencepiece_model(file);
  } catch (const format_error& e) {
    EXPECT_LE(e.offset(), file.size());
    return e.problem();
  }
  return "accepted";
}

TEST(ParseSentencePieceModel, ReadsPiecesAndSettings) {
  const std::string file = unknown_piece() + piece("</s>", 0, piece_type::control) +
                           piece("ab", -2.5F) +
                           trainer(2, number_field(24, 1) + bytes_field(44, "?")) +
                           plain_normalizer(number_field(5, 0) + bytes_field(9, "unknown field"));
  const auto model = parse_sentencepiece_model(file);
  ASSERT_EQ(model.pieces.size(), 3U);
  EXPECT_EQ(model.pieces[2].text, "ab");
  EXPECT_EQ(model.pieces[2].score, -2.5F);
  EXPECT_EQ(model.pieces[2].type, piece_type::normal);
  EXPECT_EQ(model.type, model_type::bpe);
  EXPECT_TRUE(model.whitespace_as_suffix);
  EXPECT_EQ(model.unk_surface, "?");
  EXPECT_EQ(model.unk_id, 0);
  EXPECT_EQ(model.eos_id, 1);
  EXPECT_FALSE(model.normalizer.add_dummy_prefix);
  EXPECT_FALSE(model.normalizer.escape_whitespaces);
  EXPECT_FALSE(model.denormalizer);
}

TEST(ParseSentencePieceModel, DefaultsAreThoseOfTheFormat) {
  const std::string file = unknown_piece() + bytes_field(1, bytes_field(1, "a"));
  const auto model = parse_sentencepiece_model(file);
  EXPECT_EQ(model.type, model_type::unigram);
  EXPECT_TRUE(model.normalizer.add_dummy_prefix);
  EXPECT_TRUE(model.normalizer.remove_extra_whitespaces);
  EXPECT_TRUE(model.normalizer.escape_whitespaces);
  EXPECT_EQ(model.unk_surface, " \xE2\x81\x87 ");
  EXPECT_EQ(model.pieces[1].type, piece_type::normal);
  EXPECT_EQ(model.eos_id, -1);
}

TEST(ParseSentencePieceModel, EndOfSentenceIsTheControlPieceThatTheTrainerNames) {
  const std::string pieces = unknown_piece() + piece("</s>", 0, piece_type::control) +
                             piece("<eot>", 0, piece_type::control) + piece("plain");
  const auto eos = [&](const char* name) {
    return parse_sentencepiece_model(pieces + trainer(2, bytes_field(47, name))).eos_id;
  };
  EXPECT_EQ(eos("<eot>"), 2);
  EXPECT_EQ(eos("plain"), -1);
  EXPECT_EQ(eos("absent"), -1);
  EXPECT_EQ(eos(""), 1);
}

TEST(ParseSentencePieceModel, RefusesModelsThatTheReferenceRefuses) {
  using testing::HasSubstr;
  const std::string unk = unknown_piece();
  EXPECT_THAT(refusal(""), HasSubstr("the model has no pieces"));
  EXPECT_THAT(refusal("plain text"), testing::Ne("accepted"));
  EXPECT_THAT(refusal(piece("a")), HasSubstr("no unknown piece"));
  EXPECT_THAT(refusal(unk + piece("")), HasSubstr("an empty piece"));
  EXPECT_THAT(refusal(unk + piece("a") + piece("a")), HasSubstr("'a' occurs twice"));
  EXPECT_THAT(refusal(unk + piece("<u>", 0, piece_type::unknown)),
              HasSubstr("a second piece has type unknown"));
  EXPECT_THAT(refusal(unk + piece(std::string(8000, 'a'))), HasSubstr("at most 7999"));
  EXPECT_THAT(refusal(unk + piece(std::string("a\0b", 3))), HasSubstr("zero byte"));
  EXPECT_THAT(refusal(unk + piece("<0x41>", 0, piece_type::byte)),
              HasSubstr("but no byte fallback"));
  const std::string fallback = trainer(2, number_field(35, 1));
  EXPECT_THAT(refusal(unk + fallback), HasSubstr("no piece for byte 0"));
  EXPECT_THAT(refusal(unk + fallback + piece("<0x4g>", 0, piece_type::byte)),
              HasSubstr("expected <0x00> to <0xFF>"));
}

TEST(ParseSentencePieceModel, RefusesWhatItCannotHonour) {
  using testing::HasSubstr;
  const std::string unk = unknown_piece();
  EXPECT_THAT(refusal(unk + piece("\xFF")), HasSubstr("is not UTF-8"));
  EXPECT_THAT(refusal(unk + piece("a", std::numeric_limits<float>::quiet_NaN())),
              HasSubstr("not a finite number"));
  EXPECT_THAT(refusal(unk + trainer(5)), HasSubstr("model type 5"));
  EXPECT_THAT(refusal(unk + bytes_field(1, bytes_field(1, "a") + number_field(3, 7))),
              HasSubstr("piece type 7"));
}

// In a unigram model, a control piece may have the same text as a normal piece. Control pieces have
// a namespace of their own, except in BPE models.
TEST(ParseSentencePieceModel, AControlPieceMaySpellANormalOneInUnigramModels) {
  const std::string pieces = unknown_piece() + piece("a") + piece("a", 0, piece_type::control);
  EXPECT_EQ(refusal(pieces + trainer(1)), "accepted");
  EXPECT_NE(refusal(pieces + trainer(2)), "accepted");
}

}  // namespace
}  // namespace millrace::tokenizer::detail
