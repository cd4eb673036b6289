// SPDX-License-Identifier: Apache-2.0
#include <millrace/tokenizer/detail/special_ids.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "hugging_face/hugging_face_tokenizer.hpp"
#include "support/paths.hpp"
#include "support/small_vocabulary.hpp"

namespace millrace::tokenizer {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(IdsOfToken, FindTextsOfAnyVocabulary) {
  using test::small_vocabulary;
  const auto small = small_vocabulary(small_vocabulary::bytes_and({"ab"}), "a b\n").load();
  EXPECT_THAT(ids_of_token(*small, "ab"), ElementsAre(256));
  EXPECT_THAT(ids_of_token(*small, "<|endoftext|>"), ElementsAre(257));
  EXPECT_THAT(ids_of_token(*small, "abc"), IsEmpty());
  EXPECT_THAT(ids_of_token(*small, ""), IsEmpty());
}

// The added token is preferred to the word that decodes to the same text. A piece of SentencePiece
// decodes to less than its spelling.
TEST(IdsOfToken, PreferAddedTokensAndKnowSpaces) {
  const test::temp_folder folder;
  test::write_text(folder / "tokenizer.json", R"({"added_tokens":[
      {"id":3,"content":"<a>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}],
      "decoder":{"type":"Metaspace","replacement":"\u2581","prepend_scheme":"always","split":true},
      "model":{"type":"WordLevel","unk_token":"?","vocab":{"?":0,"\u2581<a>":1,"\u2581<PRE>":2,"<a>":3}}})");
  const auto made = detail::make_hugging_face_tokenizer(folder / "tokenizer.json", {});
  EXPECT_THAT(ids_of_token(*made, "<a>"), ElementsAre(3));
  EXPECT_THAT(ids_of_token(*made, "<PRE>"), ElementsAre(2));
  EXPECT_THAT(ids_of_token(*made, "\u2581<PRE>"), ElementsAre(2));
  EXPECT_THAT(ids_of_token(*made, "PRE"), IsEmpty());
}

}  // namespace
}  // namespace millrace::tokenizer
