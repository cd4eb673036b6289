// SPDX-License-Identifier: Apache-2.0
#include "split/bert_matcher.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "normalize/normalizers.hpp"
#include "pre_tokenize/stages.hpp"
#include "support/seed.hpp"
#include "unicode/utf8.hpp"
#include "unit/tokenizer/split/pieces.hpp"

namespace millrace::tokenizer::detail {
namespace {

using test::strings;

TEST(BertMatcher, FollowsItsRulesCaseByCase) {
  const std::vector<std::pair<std::string, strings>> cases = {
      {"", {}},
      {"Hello world", {"Hello", " world"}},
      {"it's", {"it", "'", "s"}},
      {" (a)", {" (", "a", ")"}},
      {"!!", {"!", "!"}},
      {"a  b", {"a", " ", " b"}},    // the last space belongs to the next unit
      {"a \tb", {"a", " \t", "b"}},  // only U+0020 belongs to the next unit
      {"a\n\n  b", {"a", "\n\n ", " b"}},
      {"a  ", {"a", "  "}},  // at the end, no unit follows
      {" ", {" "}},
      {"a\x01"
       "b\x7F",
       {"a\x01"
        "b\x7F"}},  // dropped characters join their neighbors
      {"a\vb\u0085"
       "c",
       {"a\vb\u0085"
        "c"}},  // these are controls here, not white space
      {"a\u00A0b\u3000"
       "c",
       {"a", "\u00A0", "b", "\u3000", "c"}},
      {"\u201Cdon\u2019t\u201D", {"\u201C", "don", "\u2019", "t", "\u201D"}},
      {"a\u037E"
       "b",
       {"a\u037E"
        "b"}},  // U+037E decomposes, so the normalizer must see it
      {"!\u0301 \u0301", {"!", "\u0301", " \u0301"}},
      {"e\u0301\u0323 x", {"e\u0301\u0323", " x"}},
  };
  for (const auto p : {pattern::bert, pattern::bert_chinese}) {
    const auto splitter = make_splitter(p);
    for (const auto& [text, parts] : cases) {
      EXPECT_EQ(test::pieces(*splitter, text), parts) << testing::PrintToString(text);
    }
  }
}

TEST(BertMatcher, CutsIdeographsOutWhereTheNormalizerDoes) {
  const std::string text = "a\u4E2D\u6587\u304B \U00020000b";
  EXPECT_EQ(test::pieces(*make_splitter(pattern::bert), text),
            (strings{"a\u4E2D\u6587\u304B", " \U00020000b"}));
  EXPECT_EQ(test::pieces(*make_splitter(pattern::bert_chinese), text),
            (strings{"a", "\u4E2D", "\u6587", "\u304B", " \U00020000", "b"}));
}

// Tests the purpose of units. If the normalizer and the pre-tokenizer process one unit at a time,
// they give the same words as for the whole text. A space before a unit makes no difference.
class Independence : public testing::TestWithParam<int> {
 public:
  static constexpr int bert_settings = 16;
  static constexpr int all_settings = bert_settings + 8 * 3;

 protected:
  Independence() {
    std::vector<stage_pointer> stages;
    const int number = GetParam();
    if (number < bert_settings) {
      normal_ = bert_normalizer(number);
      units_ = make_splitter((number & 2) != 0 ? pattern::bert_chinese : pattern::bert);
      stages.push_back(make_bert_stage());
    } else {
      const int normalizer = (number - bert_settings) / 3;
      normal_ = other_normalizer(normalizer);
      units_ = make_splitter(pattern::white_space);
      const int stage = (number - bert_settings) % 3;
      stages.push_back(stage == 0   ? make_whitespace_stage()
                       : stage == 1 ? make_whitespace_split_stage()
                                    : make_bert_stage());
    }
    words_ = make_staged_pre_tokenizer(std::move(stages));
  }

  static normalizer_pointer bert_normalizer(int bits) {
    return make_bert_normalizer({.clean_text = (bits & 1) != 0,
                                 .handle_chinese_chars = (bits & 2) != 0,
                                 .strip_accents = (bits & 4) != 0,
                                 .lowercase = (bits & 8) != 0});
  }
  // Returns one of several normalizers that do not look beyond the next white space.
  static normalizer_pointer other_normalizer(int number) {
    constexpr normal_form forms[] = {normal_form::nfc, normal_form::nfd, normal_form::nfkc,
                                     normal_form::nfkd};
    if (number < 4) return make_normal_form(forms[number]);
    if (number == 4) return make_lowercase();
    if (number == 5) return make_strip_accents();
    if (number == 6) return bert_normalizer(15);
    std::vector<normalizer_pointer> steps;
    steps.push_back(make_normal_form(normal_form::nfkd));
    steps.push_back(make_lowercase());
    steps.push_back(make_strip_accents());
    steps.push_back(make_normal_form(normal_form::nfc));
    return make_normalizer_sequence(std::move(steps));
  }

  void add_words(std::string_view text, strings& words) {
    words_->split({normal_->normalize(text, buffer_), false}, pieces_);
    std::size_t begin = 0;
    for (const std::size_t end : pieces_.ends) {
      words.push_back(pieces_.text.substr(begin, end - begin));
      begin = end;
    }
  }

  void expect_independent(std::string_view text) {
    strings expected;
    add_words(text, expected);
    strings found;
    for (const std::string& unit : test::pieces(*units_, text)) {
      const bool spaced = unit.size() > 1 && unit.front() == ' ';
      add_words(std::string_view(unit).substr(spaced ? 1 : 0), found);
    }
    ASSERT_EQ(found, expected) << testing::PrintToString(text);
  }

 private:
  std::unique_ptr<const normalizer> normal_;
  std::unique_ptr<const word_splitter> units_;
  std::unique_ptr<const pre_tokenizer> words_;
  std::string buffer_;
  piece_list pieces_;
};

TEST_P(Independence, HoldsForRandomTexts) {
  const strings characters = {
      "a",      "B",      " ",          " ",          "\n",         "\t",     "\v",     "\x01",
      "!",      "'",      "=",          "1",          "\u00A0",     "\u0085", "\u00AD", "\u00C5",
      "\u0130", "\u0301", "\u0307",     "\u0323",     "\u0327",     "\u0334", "\u0338", "\u0345",
      "\u037E", "\u03A3", "\u05B0",     "\u0378",     "\u0F73",     "\u1E9E", "\u200B", "\u2019",
      "\u2260", "\u2329", "\u3002",     "\u3099",     "\u304C",     "\u4E2D", "\uAC01", "\uF900",
      "\uFEFF", "\uFFFD", "\U00011047", "\u9FFF",     "\U00020000", "\u1680", "\u2001", "\u180E",
      "\u0F0B", "\uFF21", "\U0001D165", "\U0002F800", "\U0002B820"};
  std::mt19937_64 random(test::seed(65));
  for (int i = 0; i < 4000; ++i) {
    std::string text;
    for (auto left = random() % 24 + 1; left > 0; --left) {
      text += characters[random() % characters.size()];
    }
    expect_independent(text);
  }
}

TEST_P(Independence, HoldsForEveryCodePoint) {
  std::mt19937_64 random(test::seed(66));
  const strings neighbours = {"a",      "A",      " ",    "!",      "\u0301",
                              "\u0323", "\u4E2D", "\x01", "\u0315", ""};
  std::string text;
  for (std::uint32_t point = 0; point < 0x110000; ++point) {
    if (point >= 0xD800 && point < 0xE000) continue;  // surrogates are not text
    append_code_point(text, point);
    text += neighbours[random() % neighbours.size()];
    if (point % 256 == 255) {
      expect_independent(text);
      text.clear();
    }
    if (point == 0x3FFFF) point = 0xDFFFF;  // skip planes without characters
  }
}

INSTANTIATE_TEST_SUITE_P(Steps, Independence, testing::Range(0, Independence::all_settings));

}  // namespace
}  // namespace millrace::tokenizer::detail
