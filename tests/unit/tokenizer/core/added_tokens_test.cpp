// SPDX-License-Identifier: Apache-2.0
#include "core/added_tokens.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace millrace::tokenizer::detail {
namespace {

added_token token(const char* content, std::int32_t id) {
  return {content, id};
}

// Returns all matches as "begin-end:id". Searches in the same way as a tokenizer.
std::string matches(const added_token_finder& finder, std::string_view text) {
  std::string all;
  std::size_t from = 0;
  std::size_t taken = 0;
  while (const auto found = finder.next(text, from, taken)) {
    all += std::to_string(found->begin) + "-" + std::to_string(found->end) + ":" +
           std::to_string(found->id) + " ";
    from = found->search_from;
    taken = found->end;
  }
  return all;
}

TEST(AddedTokens, AreFoundLeftmostAndOfThoseTheLongest) {
  const added_token_finder finder({token("<a>", 1), token("<a><b>", 2), token("a>", 3)});
  EXPECT_EQ(matches(finder, "x<a><b><a>a>"), "1-7:2 7-10:1 10-12:3 ");
  EXPECT_EQ(matches(finder, "<<a"), "");
}

// A single-word token matches only if no word character touches it. Word characters are those of
// \w: letters, marks, digits and connectors.
TEST(AddedTokens, OfSingleWordsAreTouchedByNone) {
  added_token alone = token("ab", 1);
  alone.single_word = true;
  const added_token_finder finder({alone});
  EXPECT_EQ(matches(finder, "ab"), "0-2:1 ");
  EXPECT_EQ(matches(finder, "-ab."), "1-3:1 ");
  EXPECT_EQ(matches(finder,
                    "xab ab_ \xC3\xA9"
                    "ab ab\xCC\x81 1ab"),
            "");
}

// A match may give no token, for example because a word character touches it. Such a match is
// skipped as a whole, so no token inside the match is found.
TEST(AddedTokens, ThatDoNotCountHideOthers) {
  added_token alone = token("a-b", 1);
  alone.single_word = true;
  added_token text = token("<|x|>", 3);
  text.stays_text = true;
  const added_token_finder finder({alone, token("-b", 2), text, token("|x", 4)});
  EXPECT_EQ(matches(finder, "xa-b"), "");
  EXPECT_EQ(matches(finder, "x-b"), "1-3:2 ");
  EXPECT_EQ(matches(finder, "<|x|>|x"), "5-7:4 ");
}

TEST(AddedTokens, TakeWhiteSpaceAlong) {
  added_token left = token("<l>", 1);
  left.strips_left = true;
  added_token right = token("<r>", 2);
  right.strips_right = true;
  const added_token_finder finder({left, right});
  EXPECT_EQ(matches(finder, "a \xC2\xA0<l> b"), "1-7:1 ");
  EXPECT_EQ(matches(finder,
                    "a <r> \n\xE3\x80\x80"
                    "b"),
            "2-10:2 ");
  EXPECT_EQ(matches(finder, "<r>  <l>"), "0-5:2 5-8:1 ") << "what is taken is not taken twice";
}

// As in the reference, the search resumes directly after a token, not after the white space that
// the token strips.
TEST(AddedTokens, MayBeginInWhiteSpaceThatAnotherHasTaken) {
  added_token right = token("<r>", 1);
  right.strips_right = true;
  const added_token_finder finder({right, token("  ", 2)});
  EXPECT_EQ(matches(finder, "<r>   b"), "0-6:1 3-5:2 ");
}

}  // namespace
}  // namespace millrace::tokenizer::detail
