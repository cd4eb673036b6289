// SPDX-License-Identifier: Apache-2.0
#include "hugging_face/read_components.hpp"

#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/error.hpp>

#include "hugging_face/byte_level.hpp"
#include "hugging_face/json_node.hpp"
#include "regex/pcre2_pattern.hpp"

namespace millrace::tokenizer::detail {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> pieces(const std::string& json, std::string_view text,
                                bool at_start = true) {
  const json_document document(json);
  piece_list list;
  read_pre_tokenizer(json_node(document))->split({text, at_start}, list);
  std::vector<std::string> found;
  std::size_t begin = 0;
  for (const std::size_t end : list.ends) {
    found.push_back(list.text.substr(begin, end - begin));
    begin = end;
  }
  EXPECT_EQ(begin, list.text.size());
  return found;
}

std::string pre_tokenizer_fault(const std::string& json) {
  const json_document document(json);
  try {
    (void)read_pre_tokenizer(json_node(document));
  } catch (const format_error& e) {
    return e.what();
  }
  return "accepted";
}

std::optional<byte_level_plan> plan(const std::string& json) {
  const json_document document(json);
  return byte_level_plan_of(json_node(document));
}

TEST(ReadPreTokenizer, HasNothingForNull) {
  const json_document document("null");
  EXPECT_EQ(read_pre_tokenizer(json_node(document)), nullptr);
}

TEST(ReadPreTokenizer, TreatsMatchesAsTheBehaviorSays) {
  const auto split = [](const std::string& behavior) {
    return pieces(R"({"type": "Split", "pattern": {"String": "-"}, "invert": false,
                      "behavior": ")" +
                      behavior + "\"}",
                  "the-final--countdown");
  };
  EXPECT_THAT(split("Removed"), ElementsAre("the", "final", "countdown"));
  EXPECT_THAT(split("Isolated"), ElementsAre("the", "-", "final", "-", "-", "countdown"));
  EXPECT_THAT(split("MergedWithPrevious"), ElementsAre("the-", "final-", "-", "countdown"));
  EXPECT_THAT(split("MergedWithNext"), ElementsAre("the", "-final", "-", "-countdown"));
  EXPECT_THAT(split("Contiguous"), ElementsAre("the", "-", "final", "--", "countdown"));
}

TEST(ReadPreTokenizer, InvertsPatterns) {
  if (pcre2_version().empty()) GTEST_SKIP() << "this build is without PCRE2";
  EXPECT_THAT(pieces(R"({"type": "Split", "pattern": {"Regex": "\\w+|[^\\w\\s]+"},
                         "behavior": "Removed", "invert": true})",
                     "How are you?"),
              ElementsAre("How", "are", "you", "?"));
}

TEST(ReadPreTokenizer, KnowsThePlainOnes) {
  EXPECT_THAT(pieces(R"({"type": "BertPreTokenizer"})", "Hey, you\u3000a_b"),
              ElementsAre("Hey", ",", "you", "a", "_", "b"));
  EXPECT_THAT(pieces(R"({"type": "Whitespace"})", "a_b+-c \u00B2"),
              ElementsAre("a_b", "+-", "c", "\u00B2"));
  EXPECT_THAT(pieces(R"({"type": "WhitespaceSplit"})", " a,b\tc "), ElementsAre("a,b", "c"));
  EXPECT_THAT(pieces(R"({"type": "CharDelimiterSplit", "delimiter": "|"})", "a||b"),
              ElementsAre("a", "b"));
  EXPECT_THAT(pieces(R"({"type": "Punctuation"})", "a!!b"), ElementsAre("a", "!", "!", "b"));
  EXPECT_THAT(pieces(R"({"type": "Digits", "individual_digits": false})", "a12\u0661b"),
              ElementsAre("a", "12\u0661", "b"));
  EXPECT_THAT(pieces(R"({"type": "Digits", "individual_digits": true})", "a12"),
              ElementsAre("a", "1", "2"));
  EXPECT_THAT(pieces(R"({"type": "UnicodeScripts"})", " Apples \u308A\u6797."),
              ElementsAre("Apples ", "\u308A\u6797", "."));
  EXPECT_THAT(pieces(R"({"type": "FixedLength", "length": 2})", "a\u00E9\u4E2Db!"),
              ElementsAre("a\u00E9", "\u4E2Db", "!"));
  EXPECT_THAT(pieces(R"({"type": "Whitespace"})", ""), IsEmpty());
}

TEST(ReadPreTokenizer, SpellsBytesBehindThePatternOfGpt2) {
  EXPECT_THAT(pieces(R"({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true})",
                     "it's \u00E9"),
              ElementsAre("\u0120it", "'s", "\u0120\u00C3\u00A9"));
  EXPECT_THAT(pieces(R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
                         "use_regex": false})",
                     "a b"),
              ElementsAre("a\u0120b"));
}

TEST(ReadPreTokenizer, PrependsMetaspaceAsTheSchemeSays) {
  const auto cut = [](const std::string& fields, bool at_start) {
    return pieces(R"({"type": "Metaspace", "replacement": "_")" + fields + "}", "a  b", at_start);
  };
  EXPECT_THAT(cut("", false), ElementsAre("_a", "_", "_b"));
  EXPECT_THAT(cut(R"(, "prepend_scheme": "first")", true), ElementsAre("_a", "_", "_b"));
  EXPECT_THAT(cut(R"(, "prepend_scheme": "first")", false), ElementsAre("a", "_", "_b"));
  EXPECT_THAT(cut(R"(, "prepend_scheme": "never", "add_prefix_space": false)", true),
              ElementsAre("a", "_", "_b"));
  EXPECT_THAT(cut(R"(, "str_rep": "_", "add_prefix_space": true, "split": false)", true),
              ElementsAre("_a__b"));
}

TEST(ReadPreTokenizer, RunsSequencesStageByStage) {
  EXPECT_THAT(pieces(R"({"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"},
                         {"type": "Metaspace", "replacement": "\u2581"}]})",
                     "a b"),
              ElementsAre("\u2581a", "\u2581b"));
}

TEST(ReadPreTokenizer, NamesWhatItRefusesAndWhere) {
  EXPECT_THAT(pre_tokenizer_fault(R"({"type": "Sequence", "pretokenizers": [{"type": "Cut"}]})"),
              HasSubstr("pre_tokenizer.pretokenizers[0].type: unknown pre-tokenizer 'Cut'"));
  EXPECT_THAT(
      pre_tokenizer_fault(R"({"type": "Sequence", "pretokenizers": [{"type": "Whitespace"},
                            {"type": "Metaspace", "replacement": "_",
                             "prepend_scheme": "first"}]})"),
      HasSubstr(
          "pretokenizers[1].prepend_scheme: is 'first', which is not supported after another"));
  EXPECT_THAT(pre_tokenizer_fault(R"({"type": "Metaspace", "replacement": "__"})"),
              HasSubstr("replacement: is '__', expected one character"));
  EXPECT_THAT(pre_tokenizer_fault(R"({"type": "Metaspace", "replacement": "_",
                            "add_prefix_space": false})"),
              HasSubstr("contradicts"));
  EXPECT_THAT(pre_tokenizer_fault(R"({"type": "Punctuation", "behavior": "isolated"})"),
              HasSubstr("pre_tokenizer.behavior: is 'isolated', expected"));
  EXPECT_THAT(pre_tokenizer_fault(R"({"type": "FixedLength", "length": 0})"), HasSubstr("is 0"));
  EXPECT_THAT(pre_tokenizer_fault(R"({"type": "Split", "pattern": {"Regex": "(a)\\1"},
                            "behavior": "Isolated", "invert": false})"),
              HasSubstr("pattern.Regex: the escape \\1 is not supported (at byte 4"));
}

TEST(ByteLevelPlan, IsTheStepsBeforeByteLevel) {
  const auto found = plan(R"({"type": "Sequence", "pretokenizers": [
      {"type": "Split", "pattern": {"Regex": "x+"}, "behavior": "Isolated", "invert": false},
      {"type": "Digits", "individual_digits": true},
      {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
       "use_regex": false}]})");
  ASSERT_TRUE(found);
  ASSERT_EQ(found->steps.size(), 2U);
  EXPECT_EQ(found->steps[0].regex, "x+");
  EXPECT_EQ(found->steps[1].what, byte_level_plan::step::kind::individual_digits);
  EXPECT_FALSE(found->add_prefix_space);
  EXPECT_FALSE(found->byte_level_regex);
}

TEST(ByteLevelPlan, IsNothingForOtherForms) {
  EXPECT_TRUE(plan(R"({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true})"));
  EXPECT_FALSE(plan("null"));
  EXPECT_FALSE(plan(R"({"type": "Whitespace"})"));
  EXPECT_FALSE(plan(R"({"type": "Sequence", "pretokenizers": [
      {"type": "Split", "pattern": {"Regex": "x+"}, "behavior": "Removed", "invert": false},
      {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true}]})"));
}

}  // namespace
}  // namespace millrace::tokenizer::detail
