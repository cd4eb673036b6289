// SPDX-License-Identifier: Apache-2.0
#include "hugging_face/decoders.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace millrace::tokenizer::detail {
namespace {

std::string decoded(std::string_view json, std::vector<std::string> tokens,
                    std::vector<std::string>* notes = nullptr) {
  const json_document document(json);
  const json_node decoder(document);
  std::vector<std::string> written;
  read_decoder(&decoder, written)->apply(tokens);
  if (notes == nullptr) {
    EXPECT_EQ(written, std::vector<std::string>());
  } else {
    *notes = written;
  }
  std::string text;
  for (const std::string& token : tokens) text += token;
  return text;
}

TEST(Decoders, DoWhatTheirNamesSay) {
  EXPECT_EQ(
      decoded(R"({"type":"WordPiece","prefix":"##","cleanup":true})", {"do", "##n", "'t", "!"}),
      "don 't!");
  EXPECT_EQ(decoded(R"({"type":"ByteLevel"})", {"\xC4\xA0"
                                                "a",
                                                "\xC3\x83", "\xC2\xA9", "\xE4\xB8\xAD"}),
            " a\xC3\xA9\xE4\xB8\xAD")
      << "what is outside the alphabet is text";
  EXPECT_EQ(decoded(R"({"type":"BPEDecoder","suffix":"</w>"})", {"a</w>", "b", "c</w>"}), "a bc");
  EXPECT_EQ(
      decoded(R"({"type":"Metaspace","replacement":"_","prepend_scheme":"first"})", {"_a", "_b"}),
      "a b");
  EXPECT_EQ(decoded(R"({"type":"CTC","pad_token":"-","word_delimiter_token":"|","cleanup":true})",
                    {"a", "a", "-", "a", "|", "b"}),
            "aa b");
}

TEST(Decoders, InSequenceAreThatOfLlama) {
  constexpr std::string_view json =
      R"({"type":"Sequence","decoders":[)"
      R"({"type":"Replace","pattern":{"String":"_"},"content":" "},{"type":"ByteFallback"},)"
      R"({"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]})";
  EXPECT_EQ(decoded(json, {"_", "_a", "<0xC3>", "<0xA9>", "<0xFF>", "b"}),
            " a\xEF\xBF\xBD\xEF\xBF\xBD"
            "\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(decoded(json, {"_a", "<0xC3>", "<0xA9>"}), "a\xC3\xA9");
}

// A decoder of an unknown kind joins the tokens, and is reported in a note. It is not refused,
// because a user who only encodes needs no decoder.
TEST(Decoders, OfUnknownKindsJoinTokensAndAreNoted) {
  for (const auto& [json, reason] : {
           std::pair(R"({"type":"Strange"})", "the decoder 'Strange' is unknown"),
           std::pair(R"({"type":"Sequence","decoders":[{"type":"Fuse"},{"type":"Odd"}]})",
                     "the decoder 'Odd' is unknown"),
           std::pair(R"({"type":"WordPiece"})", "prefix"),
           std::pair(R"([])", ""),
       }) {
    SCOPED_TRACE(json);
    std::vector<std::string> notes;
    EXPECT_EQ(decoded(json, {"a", "b"}, &notes), "ab");
    EXPECT_THAT(notes, testing::ElementsAre(testing::AllOf(
                           testing::StartsWith("the decoder of the tokenizer is not supported"),
                           testing::HasSubstr(reason))));
  }
}

}  // namespace
}  // namespace millrace::tokenizer::detail
