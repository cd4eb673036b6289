// SPDX-License-Identifier: Apache-2.0
#include "hugging_face/decoders.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace millrace::tokenizer::detail {
namespace {

std::string decoded(std::string_view json, std::vector<std::string> tokens) {
  const json_document document(json);
  const json_value decoder(document);
  read_decoder(&decoder)->apply(tokens);
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

// Whoever only encodes needs no decoder.
TEST(Decoders, OfUnknownKindsJoinTokens) {
  EXPECT_EQ(decoded(R"({"type":"Strange"})", {"a", "b"}), "ab");
  EXPECT_EQ(decoded(R"([])", {"a", "b"}), "ab");
}

}  // namespace
}  // namespace millrace::tokenizer::detail
