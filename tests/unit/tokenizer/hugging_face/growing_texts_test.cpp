// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <optional>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/tokenizer/detail/id_buffer.hpp>
#include <millrace/tokenizer/tokenizer.hpp>

#include "hugging_face_fixture.hpp"

namespace millrace::tokenizer::detail {
namespace {

using testing::AllOf;
using testing::Not;

std::string replace(std::string_view pattern, std::string_view content) {
  return R"({"type":"Replace","pattern":{"String":")" + std::string(pattern) + R"("},"content":")" +
         std::string(content) + R"("})";
}

std::string sequence(const char* parts, int count, const std::string& part) {
  std::string json = R"({"type":"Sequence",")" + std::string(parts) + R"(":[)";
  for (int i = 0; i < count; ++i) json += (i == 0 ? "" : ",") + part;
  return json + "]}";
}

std::string with_normalizer(const std::string& normalizer, const std::string& before = "") {
  return "{" + before + R"("normalizer":)" + normalizer + "," + std::string(white_space) +
         std::string(word_level) + "}";
}

class GrowingTexts : public HuggingFaceTokenizer {
 protected:
  static std::optional<encode_fault> fault_of(encoder& encoder, std::string_view text) {
    id_buffer ids;
    return encoder.encode(text, ids);
  }
};

TEST_F(GrowingTexts, AreRefusedAndTheNextTextIsEncoded) {
  const auto t = make(with_normalizer(sequence("normalizers", 40, replace("a", "aa"))));
  const auto encoder = t->make_encoder();
  const auto fault = fault_of(*encoder, "b a");
  ASSERT_TRUE(fault);
  EXPECT_THAT(fault->what, AllOf(HasSubstr("Replace 'a' makes more than"),
                                 HasSubstr("of a text of 3 bytes"), HasSubstr("32 times")));
  EXPECT_EQ(encode(*encoder, "b b"), (ids_list{2, 2}));
}

// A text is refused if many of its sections grow. No section between two added tokens exceeds the
// limit, but all sections together do.
TEST_F(GrowingTexts, AreRefusedWhereManySectionsGrow) {
  std::string content;
  for (int i = 0; i < 20'000; ++i) content += "a ";
  const std::string tokens = R"("added_tokens":[)" + added("|") + "],";
  const auto t = make(with_normalizer(replace("c", content), tokens));
  const auto encoder = t->make_encoder();
  EXPECT_EQ(encode(*encoder, "c|b").size(), 20'002U);
  std::string text;
  for (int i = 0; i < 100; ++i) text += "c|";
  const auto fault = fault_of(*encoder, text);
  ASSERT_TRUE(fault);
  EXPECT_THAT(fault->what, AllOf(HasSubstr("the tokenizer makes more than 1054976 ids of a text of "
                                           "200 bytes"),
                                 Not(HasSubstr("Replace"))));
}

TEST_F(GrowingTexts, AreRefusedByDecoders) {
  const auto t = make(R"({"decoder":)" + sequence("decoders", 40, replace("a", "aa")) + "," +
                      std::string(word_level) + "}");
  const auto decode = [&](std::int64_t id) { return t->decode({&id, 1}); };
  EXPECT_EQ(decode(2), "b");
  EXPECT_THAT([&] { (void)decode(1); },
              ThrowsMessage<error>(HasSubstr("Replace 'a' makes more than")));
}

TEST_F(GrowingTexts, AreRefusedAsAddedTokens) {
  const std::string tokens = R"("added_tokens":[)" + added("xa", "normalized") + "],";
  const auto make_of = [&](int steps) {
    return make(with_normalizer(sequence("normalizers", steps, replace("a", "aa")), tokens));
  };
  EXPECT_NE(make_of(4), nullptr);
  for (const int steps : {12, 40}) {
    EXPECT_THAT(
        [&] { (void)make_of(steps); },
        ThrowsMessage<config_error>(HasSubstr("the added token 'xa' cannot be normalized")));
  }
}

TEST_F(GrowingTexts, AreInterruptedBetweenTwoSteps) {
  struct stop {};
  const auto t = make(with_normalizer(sequence("normalizers", 3, replace("c", "a"))));
  const auto encoder = t->make_encoder();
  int calls = 0;
  encoder->set_interrupt_check([&] {
    if (++calls == 3) throw stop();
  });
  EXPECT_THROW((void)fault_of(*encoder, "c"), stop);
  encoder->set_interrupt_check({});
  EXPECT_EQ(encode(*encoder, "c b"), (ids_list{1, 2}));
}

}  // namespace
}  // namespace millrace::tokenizer::detail
