// SPDX-License-Identifier: Apache-2.0
#include "normalize/normalizers.hpp"

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "unicode/normalization_tables.hpp"
#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {
namespace {

std::string of(const normalizer_pointer& steps, std::string_view text) {
  std::string buffer;
  return std::string(steps->normalize(text, buffer));
}

TEST(NormalForms, ComposeAndDecompose) {
  EXPECT_EQ(of(make_normal_form(normal_form::nfc), "e\u0301 \u1100\u1161\u11A8"), "\u00E9 \uAC01");
  EXPECT_EQ(of(make_normal_form(normal_form::nfd), "\u1EAD \uAC01"),
            "a\u0323\u0302 \u1100\u1161\u11A8");
  EXPECT_EQ(of(make_normal_form(normal_form::nfkc), "\uFB01 \u2460"), "fi 1");
  EXPECT_EQ(of(make_normal_form(normal_form::nfkd), "\uFF76\uFF9E"), "\u30AB\u3099");
}

TEST(NormalForms, OrderMarksByTheirClassAndKeepEqualOnes) {
  EXPECT_EQ(of(make_normal_form(normal_form::nfd), "a\u0301\u0300\u0323"), "a\u0323\u0301\u0300");
  std::string marks;
  std::string below;
  for (int i = 0; i < 40; ++i) {  // more marks than the simple sort handles
    marks += "\u0301\u0323";
    below += "\u0323";
  }
  const std::string found = of(make_normal_form(normal_form::nfd), "a" + marks);
  EXPECT_TRUE(found.starts_with("a" + below + "\u0301"));
}

// Marks that were added after Unicode 9.0 are unknown, so they are neither reordered nor composed.
TEST(NormalForms, AreThoseOfUnicode9) {
  EXPECT_EQ(of(make_normal_form(normal_form::nfc), "a\u0301\u1DF6"), "\u00E1\u1DF6");
  EXPECT_EQ(of(make_normal_form(normal_form::nfd), "a\u1DF6\u0323"), "a\u1DF6\u0323");
  EXPECT_EQ(of(make_normal_form(normal_form::nfkc), "\u32FF"), "\u32FF");
}

TEST(NormalForms, ReturnTheTextItselfWhereItIsInTheForm) {
  for (const std::string& word : {std::string("plain "), std::string("\u0439\u0451\u0416 "),
                                  std::string("\u4EBA\u751F"), std::string("\u1EA5t c\u1EA3 "),
                                  std::string("\uAC00\uB098 "), std::string("\u304C\u30AC")}) {
    std::string text;
    while (text.size() < 1000) text += word;
    std::string buffer;
    EXPECT_EQ(make_normal_form(normal_form::nfc)->normalize(text, buffer).data(), text.data());
  }
}

// The scan skips characters by their bytes. It must not skip any character that is not stable in
// NFC.
TEST(NormalForms, ChangeWhatTheScanMustNotPassOver) {
  const auto nfc = make_normal_form(normal_form::nfc);
  std::size_t changing = 0;
  for (std::uint32_t point = 0x80; point < 0x110000; ++point) {
    if (point >= 0xD800 && point < 0xE000) continue;
    if (stable_blocks[stable_block_of[point / 128] * 128U + point % 128] & 1) continue;
    std::string letter = "e";  // an accent is appended, so that order matters
    append_code_point(letter, point);
    const std::string alone = of(nfc, letter + "\u0301");
    const std::string padded =
        of(nfc, std::string(100, 'x') + letter + "\u0301" + std::string(100, 'x'));
    ASSERT_EQ(padded, std::string(100, 'x') + alone + std::string(100, 'x')) << point;
    ++changing;
  }
  EXPECT_GT(changing, 1500U);
}

TEST(BertNormalizer, DoesItsStepsInTheirOrder) {
  EXPECT_EQ(of(make_bert_normalizer({}), "H\u00C9llo\t\u4E2D\x01!\u200D"), "hello  \u4E2D !");
  EXPECT_EQ(of(make_bert_normalizer({.clean_text = false,
                                     .handle_chinese_chars = false,
                                     .strip_accents = false,
                                     .lowercase = false}),
               "A\tB"),
            "A\tB");
}

TEST(Lowercase, TakesEachCharacterByItself) {
  EXPECT_EQ(of(make_lowercase(), "\u03A3\u03A3 \u0130 \u1E9E K"), "\u03C3\u03C3 i\u0307 \u00DF k");
}

TEST(Strip, TakesWhiteSpaceOfAnyKind) {
  EXPECT_EQ(of(make_strip(true, true), "\u3000 a \n"), "a");
  EXPECT_EQ(of(make_strip(true, false), " a "), "a ");
  EXPECT_EQ(of(make_strip(false, true), " \u0085"), "");
}

TEST(StripAccents, DropsMarksAndDoesNotDecompose) {
  EXPECT_EQ(of(make_strip_accents(), "e\u0301\u00E9"), "e\u00E9");
}

TEST(Nmt, DropsControlsAndMakesSpaces) {
  EXPECT_EQ(of(make_nmt(), "a\x01\tb\u200Bc\u2581"), "a b c ");
}

TEST(ByteLevelNormalizer, SpellsBytes) {
  EXPECT_EQ(of(make_byte_level_normalizer(), " \u00E9"), "\u0120\u00C3\u00A9");
}

TEST(Replace, TakesWhatDoesNotOverlap) {
  EXPECT_EQ(of(make_replace("aa", "b"), "aaaxa"), "baxa");
  EXPECT_EQ(of(make_replace(" ", ""), " a b"), "ab");
}

TEST(Prepend, LeavesTheEmptyTextAlone) {
  EXPECT_EQ(of(make_prepend("_"), "a"), "_a");
  EXPECT_EQ(of(make_prepend("_"), ""), "");
}

// Tests all ways in which a text can move through the two buffers of a sequence.
TEST(Sequence, KeepsTheTextThroughAnyMixOfSteps) {
  for (unsigned mix = 0; mix < 81; ++mix) {
    std::vector<normalizer_pointer> steps;
    std::string expected = "  text that is too long to be kept inside of a string object  ";
    const std::string text = expected;
    for (unsigned digits = mix, i = 0; i < 4; ++i, digits /= 3) {
      if (digits % 3 == 0) steps.push_back(make_replace("zz", ""));  // changes nothing
      if (digits % 3 == 1) {
        steps.push_back(make_strip(true, true));
        expected.erase(0, expected.find_first_not_of(' '));
        expected.erase(expected.find_last_not_of(' ') + 1);
      }
      if (digits % 3 == 2) {
        std::vector<normalizer_pointer> inner;
        inner.push_back(make_prepend(" +"));
        steps.push_back(make_normalizer_sequence(std::move(inner)));
        expected.insert(0, " +");
      }
    }
    EXPECT_EQ(of(make_normalizer_sequence(std::move(steps)), text), expected) << mix;
  }
}

}  // namespace
}  // namespace millrace::tokenizer::detail
