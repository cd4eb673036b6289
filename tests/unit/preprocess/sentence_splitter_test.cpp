// SPDX-License-Identifier: Apache-2.0
#include "record/sentence_splitter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include <millrace/error.hpp>

#include "support/cpu_time.hpp"

namespace millrace::preprocess {
namespace {

using namespace std::string_view_literals;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

constexpr const char* needs_icu = "needs a build with ICU";

class SentenceSplitter : public testing::Test {
 protected:
  void SetUp() override {
    if (icu_version().empty()) GTEST_SKIP() << needs_icu;
  }
  static std::vector<std::string> split(
      std::string_view text, bool keep_newlines = false, std::string_view language = "english",
      std::size_t window = sentence_splitter::usual_window_bytes) {
    sentence_splitter splitter(language, keep_newlines, window);
    std::vector<std::string_view> sentences{"left from before"};
    splitter.split(text, sentences);
    return {sentences.begin(), sentences.end()};
  }
};

TEST_F(SentenceSplitter, FindsNothingInNothing) {
  EXPECT_THAT(split(""), IsEmpty());
  EXPECT_THAT(split(" \t\r\n\u00A0\u3000\x1F\n"), IsEmpty());
  EXPECT_THAT(split(" \n ", true), IsEmpty());
}

TEST_F(SentenceSplitter, DropsTheWhiteSpaceBetweenSentences) {
  EXPECT_THAT(split("One.  Two?\n\n\u3000Three! Four"),
              ElementsAre("One.", "Two?", "Three!", "Four"));
}

// The start and the end of a text are treated as in NLTK. The first of NLTK's sentences begins at
// the start of the text, and every other sentence at the start of a word. Sentences end after the
// last character that is not white space. With the language variables that Megatron passes for
// --keep-newlines, a sentence ends where the next sentence begins.
TEST_F(SentenceSplitter, LeavesTheEndsOfATextAsNltkDoes) {
  EXPECT_THAT(split("\n One. Two. \n"), ElementsAre("\n One.", "Two."));
  EXPECT_THAT(split("\n One. Two. \n", true), ElementsAre("\n One. ", "Two."));
}

TEST_F(SentenceSplitter, KeepsWhiteSpaceWithTheSentenceBefore) {
  EXPECT_THAT(split("One.  Two?\n\n Three! \nFour", true),
              ElementsAre("One.  ", "Two?\n\n ", "Three! \n", "Four"));
}

TEST_F(SentenceSplitter, DoesNotEndASentenceByALineEndAlone) {
  EXPECT_THAT(split("A title\n\nThe first line\r\ngoes \"on\"\u2028and on. The end"),
              ElementsAre("A title\n\nThe first line\r\ngoes \"on\"\u2028and on.", "The end"));
  EXPECT_THAT(split("a\nb\nc"), ElementsAre("a\nb\nc"));
}

TEST_F(SentenceSplitter, EndsASentenceWhereItsStopIsTheLastOfALine) {
  EXPECT_THAT(split("He left.\nShe (too).\n\"They did!\" \nand so on"),
              ElementsAre("He left.", "She (too).", "\"They did!\"", "and so on"));
}

TEST_F(SentenceSplitter, KnowsTheAbbreviationsOfALanguage) {
  EXPECT_THAT(split("Mr. Smith met Mrs. Jones. He ran."),
              ElementsAre("Mr. Smith met Mrs. Jones.", "He ran."));
  EXPECT_THAT(split("Das ist Dr. Mabuse. Er geht.", false, "german"),
              ElementsAre("Das ist Dr. Mabuse.", "Er geht."));
}

TEST_F(SentenceSplitter, KnowsFullStopsWithoutSpaces) {
  EXPECT_THAT(split("これは文です。次の文。"), ElementsAre("これは文です。", "次の文。"));
  EXPECT_THAT(split("यह वाक्य है। दूसरा।"), ElementsAre("यह वाक्य है।", "दूसरा।"));
}

TEST_F(SentenceSplitter, KnowsTheQuestionMarkOfGreek) {
  EXPECT_THAT(split("Τι κάνεις;\nΚαλά.", false, "greek"), ElementsAre("Τι κάνεις;", "Καλά."));
  EXPECT_THAT(split("one;\ntwo."), ElementsAre("one;\ntwo."));
}

TEST_F(SentenceSplitter, TakesBytesThatAreZero) {
  EXPECT_THAT(split("a\0b. C."sv), ElementsAre("a\0b."sv, "C."));
}

TEST_F(SentenceSplitter, TakesEveryNameOfALanguage) {
  EXPECT_EQ(sentence_languages().size(), 19);
  for (const std::string_view language : sentence_languages()) {
    EXPECT_THAT(split("Aaa. Bbb.", false, language), ElementsAre("Aaa.", "Bbb.")) << language;
  }
}

// For any text, the sentences together contain everything except white space, in order.
TEST_F(SentenceSplitter, LosesNothingButWhiteSpace) {
  const std::string alphabet[] = {".",  " ",      "\n", "a", "B",     "\"",
                                  "。", "\u00A0", "1",  "!", "\u0301"};
  unsigned state = 1;
  for (int i = 0; i < 500; ++i) {
    std::string text;
    for (int j = 0; j < 30; ++j) {
      state = state * 1664525 + 1013904223;
      text += alphabet[(state >> 16) % std::size(alphabet)];
    }
    std::string kept;
    for (const std::string& sentence : split(text, true)) {
      EXPECT_FALSE(sentence.empty());
      kept += sentence;
    }
    ASSERT_TRUE(text.starts_with(kept)) << text;
    EXPECT_THAT(split(text.substr(kept.size())), IsEmpty()) << "only white space may be left";

    const std::vector<std::string> plain = split(text);
    const std::vector<std::string> with_newlines = split(text, true);
    ASSERT_EQ(plain.size(), with_newlines.size());
    for (std::size_t s = 0; s < plain.size(); ++s) {
      EXPECT_TRUE(with_newlines[s].starts_with(plain[s]));
    }
  }
}

// Texts above 1 GiB are processed in windows. With small windows, the sentences must be the same.
TEST_F(SentenceSplitter, CutsAlikeInWindows) {
  std::string text = " ";
  for (int i = 0; i < 200; ++i) {
    text += "Sentence no. " + std::to_string(i) + " of Mr. Müller...  ";
    if (i % 3 == 0) text += "\n\n";
    if (i % 7 == 0) text += "e.g. この文。次!";
  }
  for (const bool keep : {false, true}) {
    const std::vector<std::string> whole = split(text, keep);
    ASSERT_GT(whole.size(), 200);
    for (const std::size_t window : {200U, 201U, 202U, 203U, 500U, 4096U}) {
      EXPECT_THAT(split(text, keep, "english", window), ElementsAreArray(whole)) << window;
    }
  }
}

TEST_F(SentenceSplitter, CutsASentenceLongerThanAWindowBetweenCharacters) {
  const std::string text = "ééééééééééé. Next one.";
  std::string joined;
  for (const std::string& part : split(text, true, "english", 9)) {
    EXPECT_LE(part.size(), 9);
    EXPECT_NE(part.front() & 0xC0, 0x80) << "starts inside a character";
    joined += part;
  }
  EXPECT_EQ(joined, text);
}

// For sixteen times the text, less than sixty-four times the time is allowed. A quadratic algorithm
// would need 256 times.
TEST_F(SentenceSplitter, TakesTimeInProportionToTheText) {
  sentence_splitter splitter("english", false);
  std::vector<std::string_view> sentences;
  const auto seconds = [&](const std::string& text) {
    const double start = test::cpu_seconds();
    splitter.split(text, sentences);
    return test::cpu_seconds() - start;
  };
  for (const std::string unit :
       {"\n", " ", ".", "1. ", "a\n", "Mr. ", ". ,", "\u0301", "a ", ".\n"}) {
    const auto text = [&](std::size_t bytes) {
      std::string out = "x. ";
      while (out.size() < bytes) out += unit;
      return out + 'x';
    };
    const double small = seconds(text(1 << 15)) + 0.002;
    EXPECT_LT(seconds(text(1 << 19)), 64 * small) << "of '" << unit << "'";
  }
}

TEST(SentenceLanguages, RefusesOthersByName) {
  EXPECT_THAT(
      [] { sentence_splitter("klingon", false); },
      ThrowsMessage<config_error>(testing::AllOf(
          HasSubstr("--lang klingon"), HasSubstr("czech, danish"), HasSubstr("swedish, turkish"))));
}

TEST(SentenceLanguages, AreRefusedInABuildWithoutIcu) {
  if (!icu_version().empty()) GTEST_SKIP() << "this build has ICU " << icu_version();
  EXPECT_THAT([] { sentence_splitter("english", false); },
              ThrowsMessage<config_error>(HasSubstr("no ICU")));
}

TEST(SentenceSplitterWords, FitATerminal) {
  const std::string_view words = sentence_splitter_words();
  EXPECT_THAT(words, HasSubstr("NLTK"));
  for (std::size_t at = 0; at < words.size();) {
    const std::size_t end = words.find('\n', at);
    ASSERT_NE(end, words.npos);
    EXPECT_LE(end - at, 100) << words.substr(at, end - at);
    at = end + 1;
  }
}

}  // namespace
}  // namespace millrace::preprocess
