// SPDX-License-Identifier: Apache-2.0
#include "hugging_face/read_components.hpp"

#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/error.hpp>

#include "hugging_face/json_node.hpp"

namespace millrace::tokenizer::detail {
namespace {

std::string normal_of(const std::string& json, std::string_view text) {
  const json_document document(json);
  std::string buffer;
  return std::string(read_normalizer(json_node(document))->normalize(text, buffer));
}

std::string normalizer_fault(const std::string& json) {
  const json_document document(json);
  try {
    (void)read_normalizer(json_node(document));
  } catch (const format_error& e) {
    return e.what();
  }
  return "accepted";
}

TEST(ReadNormalizer, HasNothingForNull) {
  const json_document document("null");
  EXPECT_EQ(read_normalizer(json_node(document)), nullptr);
}

TEST(ReadNormalizer, ReadsSequencesInSequences) {
  EXPECT_EQ(normal_of(R"({"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "_"},
                      {"type": "Sequence", "normalizers": [{"type": "Replace",
                        "pattern": {"String": " "}, "content": "_"}]},
                      {"type": "Replace", "pattern": {"String": "__"}, "content": "-"},
                      {"type": "Strip", "strip_left": true, "strip_right": true}]})",
                      "a  b"),
            "_a-b");
}

TEST(ReadNormalizer, StripsAccentsWhereItLowersCaseUnlessTold) {
  const std::string begin = R"({"type": "BertNormalizer", "clean_text": true,
                               "handle_chinese_chars": true, "lowercase": )";
  EXPECT_EQ(normal_of(begin + "true}", "\u00C9"), "e");
  EXPECT_EQ(normal_of(begin + R"(true, "strip_accents": null})", "\u00C9"), "e");
  EXPECT_EQ(normal_of(begin + R"(true, "strip_accents": false})", "\u00C9"), "\u00E9");
  EXPECT_EQ(normal_of(begin + "false}", "\u00C9"), "\u00C9");
}

TEST(ReadNormalizer, SaysAtWhichByteItRefuses) {
  const auto expect_fault_at = [](const std::string& json, std::string_view place) {
    const json_document document(json);
    try {
      (void)read_normalizer(json_node(document));
      ADD_FAILURE() << "accepted " << json;
    } catch (const format_error& e) {
      EXPECT_EQ(e.offset(), json.find(place)) << e.what();
    }
  };
  expect_fault_at(R"({"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Shout"}]})",
                  R"("type": "Shout")");
  expect_fault_at(R"({"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Strip"}]})",
                  R"({"type": "Strip")");  // a missing field
  expect_fault_at(R"({"type": "Sequence", "normalizers": [{"type": "NFC"}, 7]})", "7");
  expect_fault_at(R"({"type": "Replace", "pattern": {"Regex": "(a"}, "content": ""})",
                  R"("Regex")");
}

TEST(ReadNormalizer, NamesWhatItRefusesAndWhere) {
  using testing::HasSubstr;
  EXPECT_THAT(normalizer_fault(R"({"type": "Sequence", "normalizers": [{"type": "NFC"},
                            {"type": "Sequence", "normalizers": [{"type": "Shout"}]}]})"),
              HasSubstr("normalizer.normalizers[1].normalizers[0].type: unknown normalizer "
                        "'Shout'"));
  EXPECT_THAT(normalizer_fault(R"({"type": "Strip", "strip_left": true})"),
              HasSubstr("normalizer: Strip without the field 'strip_right'"));
  EXPECT_THAT(normalizer_fault(R"({"type": "Strip", "strip_left": 1, "strip_right": true})"),
              HasSubstr("normalizer.strip_left: is neither true nor false"));
  EXPECT_THAT(normalizer_fault(R"({"type": "NFC", "form": 3})"), HasSubstr("field 'form'"));
  EXPECT_THAT(normalizer_fault(R"({"type": "Prepend", "prepend": ""})"), HasSubstr("is empty"));
  EXPECT_THAT(normalizer_fault(R"({"type": "Replace", "pattern": "a", "content": ""})"),
              HasSubstr("normalizer.pattern: is not a pattern"));
  EXPECT_THAT(
      normalizer_fault(R"({"type": "Replace", "pattern": {"Regex": "(a"}, "content": ""})"),
      HasSubstr("normalizer.pattern.Regex: a group without its closing parenthesis (at byte 0"));
  EXPECT_THAT(normalizer_fault(R"({"type": "Replace", "pattern": {"Regex": "a*"}, "content": ""})"),
              HasSubstr("may match nothing"));
  EXPECT_THAT(normalizer_fault(R"({"type": "Precompiled", "precompiled_charsmap": null})"),
              HasSubstr("normalizer.precompiled_charsmap: is not a string"));
  EXPECT_THAT(normalizer_fault(R"({"type": "Precompiled", "precompiled_charsmap": "AAA"})"),
              HasSubstr("normalizer.precompiled_charsmap: is not base64"));
  EXPECT_THAT(normalizer_fault(R"({"type": "Precompiled", "precompiled_charsmap": ""})"),
              HasSubstr("normalizer.precompiled_charsmap: the charsmap is truncated"));
  EXPECT_THAT(normalizer_fault(R"({"prepend": "x"})"), HasSubstr("without the field 'type'"));
  EXPECT_THAT(normalizer_fault("[]"), HasSubstr("normalizer: is not an object"));
}

}  // namespace
}  // namespace millrace::tokenizer::detail
