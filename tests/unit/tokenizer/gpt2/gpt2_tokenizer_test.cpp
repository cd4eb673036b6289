// SPDX-License-Identifier: Apache-2.0
#include "gpt2/gpt2_tokenizer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include <millrace/error.hpp>

#include "support/encode.hpp"
#include "support/small_vocabulary.hpp"

namespace millrace::tokenizer::detail {
namespace {

using test::small_vocabulary;
using ids_list = std::vector<std::int32_t>;
using wide_ids = std::vector<std::int64_t>;

const std::string end_of_text = "<|endoftext|>";

// The ids are: 256 for "ab", 257 for "abc", 258 for " a" (a space is spelled U+0120), and 259 for
// the special token.
small_vocabulary usual() {
  return {small_vocabulary::bytes_and({"ab", "abc",
                                       "\u0120"
                                       "a",
                                       end_of_text}),
          "#version: 0.2\na b\nab c\n\u0120 a\n"};
}

TEST(Gpt2Tokenizer, MergesInsidePretokensOnly) {
  const auto gpt2 = usual().load();
  EXPECT_EQ(test::encode(*gpt2, "abc"), ids_list({257}));
  EXPECT_EQ(test::encode(*gpt2, "abcab"), ids_list({257, 256}));
  EXPECT_EQ(test::encode(*gpt2, "b abc"), ids_list({'b', 32, 257}));  // a b ranks before " " a
  EXPECT_EQ(test::encode(*gpt2, " ac"), ids_list({258, 'c'}));
  EXPECT_EQ(test::encode(*gpt2, "a1b"), ids_list({'a', '1', 'b'}));
  EXPECT_EQ(test::encode(*gpt2, "\u00E9"), ids_list({0xC3, 0xA9}));
  EXPECT_EQ(test::encode(*gpt2, ""), ids_list());
}

TEST(Gpt2Tokenizer, FindsTheSpecialTokenInTexts) {
  const auto gpt2 = usual().load();
  EXPECT_EQ(gpt2->eod(), 259);
  EXPECT_EQ(gpt2->vocab_size(), 260);
  EXPECT_EQ(test::encode(*gpt2, end_of_text), ids_list({259}));
  EXPECT_EQ(test::encode(*gpt2, "ab" + end_of_text + end_of_text + "c"),
            ids_list({256, 259, 259, 'c'}));
  // For the pattern, the text ends at the special token. So the space before the token is a
  // pretoken, and the space after the token belongs to the next pretoken.
  EXPECT_EQ(test::encode(*gpt2, " " + end_of_text + " a"), ids_list({32, 259, 258}));
  EXPECT_EQ(test::encode(*gpt2, "<|endoftext|").size(), 12U);
  EXPECT_EQ(test::encode(*gpt2, "<|" + end_of_text), ids_list({'<', '|', 259}));
}

// For the pattern, the text ends at a special token. The pattern looks ahead: two spaces at the end
// of the text are one pretoken, but two spaces before a letter are two pretokens.
TEST(Gpt2Tokenizer, EndsThePatternsTextAtASpecialToken) {
  const auto tokens = small_vocabulary::bytes_and({"\u0120\u0120", end_of_text});
  const auto gpt2 = small_vocabulary(tokens, "\u0120 \u0120\n").load();
  EXPECT_EQ(test::encode(*gpt2, "  a"), ids_list({32, 32, 'a'}));
  EXPECT_EQ(test::encode(*gpt2, "  " + end_of_text + "a"), ids_list({256, 257, 'a'}));
}

TEST(Gpt2Tokenizer, AddsTheSpecialTokenToVocabulariesWithout) {
  const auto gpt2 = small_vocabulary(small_vocabulary::bytes_and({"ab"}), "a b\n").load();
  EXPECT_EQ(gpt2->eod(), 257);
  EXPECT_EQ(gpt2->vocab_size(), 258);
  EXPECT_EQ(test::encode(*gpt2, "ab" + end_of_text), ids_list({256, 257}));
  EXPECT_EQ(gpt2->decode(wide_ids{256, 257}), "ab" + end_of_text);
}

// Gaps between ids count toward the vocabulary size. If ids have gaps, `transformers` still uses
// the number of entries as the id of the added token. Its vocabulary size also ignores gaps, so
// higher ids might not fit in a dtype that is chosen by that size.
TEST(Gpt2Tokenizer, CountsGapsAsVocabulary) {
  auto tokens = small_vocabulary::bytes();
  tokens.emplace_back("ab", 70000);
  const auto gpt2 = small_vocabulary(tokens, "a b\n").load();
  EXPECT_EQ(gpt2->eod(), 257);
  EXPECT_EQ(gpt2->vocab_size(), 70001);
  EXPECT_EQ(test::encode(*gpt2, "abc"), ids_list({70000, 'c'}));
  EXPECT_EQ(gpt2->decode(wide_ids{70000, 256, 300, 257}), "ab\uFFFD\uFFFD" + end_of_text);
}

TEST(Gpt2Tokenizer, RefusesAnIdForTwoTokens) {
  auto tokens = small_vocabulary::bytes();
  tokens[0].second = 256;  // 256 entries without the special token, whose id would be 256
  EXPECT_THROW(small_vocabulary(tokens, "#version: 0.2\n").load(), format_error);
}

TEST(Gpt2Tokenizer, NeedsATokenForEveryByteOfUtf8) {
  const auto without = [](std::initializer_list<int> bytes) {
    small_vocabulary::tokens kept;
    for (const auto& token : small_vocabulary::bytes()) {
      if (std::ranges::find(bytes, token.second) == bytes.end()) kept.push_back(token);
    }
    kept.emplace_back(end_of_text, 256);
    return small_vocabulary(kept, "#version: 0.2\n");
  };
  // GPT-NeoX and similar vocabularies omit these bytes, because they never occur in UTF-8.
  EXPECT_EQ(test::encode(*without({0xC0, 0xC1, 0xF5, 0xFF}).load(), "a"), ids_list({'a'}));
  try {
    (void)without({'b'}).load();
    FAIL() << "accepted";
  } catch (const format_error& e) {
    EXPECT_THAT(e.what(), testing::AllOf(testing::HasSubstr("vocab.json: "),
                                         testing::HasSubstr("no token for the single byte 98")));
  }
}

TEST(Gpt2Tokenizer, NamesTheFileAtFault) {
  const auto message_of = [](std::string_view vocab, std::string_view merges) -> std::string {
    try {
      (void)small_vocabulary(vocab, merges).load();
      return "accepted";
    } catch (const format_error& e) {
      return e.what();
    }
  };
  const std::string good = small_vocabulary::json(small_vocabulary::bytes_and({"ab"}));
  EXPECT_EQ(message_of(good, "a b\n"), "accepted");
  EXPECT_THAT(message_of("[]", "a b\n"), testing::HasSubstr("vocab.json: expected a JSON object"));
  EXPECT_THAT(message_of("", "a b\n"), testing::HasSubstr("vocab.json: the file is empty"));
  EXPECT_THAT(message_of(good, ""), testing::HasSubstr("merges.txt: the file is empty"));
  EXPECT_THAT(
      message_of(good, "a b\na c\n"),
      testing::AllOf(testing::HasSubstr("merges.txt: line 2"), testing::EndsWith("(at byte 4)")));
}

TEST(Gpt2Tokenizer, SaysThatAFileIsNotThere) {
  auto options = usual().options();  // the folder of its files is already deleted
  EXPECT_THROW(make_tokenizer(options), io_error);
}

TEST(Gpt2Tokenizer, FollowsTheLaterOfTwoEqualMerges) {
  const auto tokens = small_vocabulary::bytes_and({"ab", "bc"});
  EXPECT_EQ(test::encode(*small_vocabulary(tokens, "a b\nb c\n").load(), "abc"),
            ids_list({256, 'c'}));
  EXPECT_EQ(test::encode(*small_vocabulary(tokens, "a b\nb c\na b\n").load(), "abc"),
            ids_list({'a', 257}));
}

// Words are cached. Their ids must not depend on what was encoded before, or on where in memory the
// word ends.
TEST(Gpt2Tokenizer, GivesEqualTextsEqualIds) {
  const auto gpt2 = usual().load();
  const auto warm = gpt2->make_encoder();
  std::string text;
  for (int i = 0; i < 3000; ++i) {
    text += static_cast<char>('a' + i * i % 26);
    text += i % 7 == 0 ? " abc" : i % 5 == 0 ? "ab" : "";
  }
  const auto first = test::encode(*warm, text);
  EXPECT_EQ(test::encode(*warm, text), first);
  for (std::size_t size = 0; size < 200; ++size) {
    const std::vector<char> alone(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(size));
    const std::string_view part(alone.data(), alone.size());
    EXPECT_EQ(test::encode(*warm, part), test::encode(*gpt2, part)) << size;
  }
}

TEST(Gpt2Tokenizer, DecodesToTheText) {
  const auto gpt2 = usual().load();
  const std::string text = "abc ab\u00E9\n" + end_of_text + " \U0001F600";
  const auto ids = test::encode(*gpt2, text);
  EXPECT_EQ(gpt2->decode(wide_ids(ids.begin(), ids.end())), text);
  EXPECT_EQ(gpt2->decode(wide_ids{0xC3}), "\xC3");  // half a character is kept
  EXPECT_EQ(gpt2->decode(wide_ids{-1, 260, std::int64_t{1} << 40}), "\uFFFD\uFFFD\uFFFD");
}

TEST(Gpt2Tokenizer, HasAFingerprintOfItsFiles) {
  const auto tokens = small_vocabulary::bytes_and({"ab", "abc",
                                                   "\u0120"
                                                   "a",
                                                   end_of_text});
  const std::string known = usual().load()->fingerprint();
  EXPECT_THAT(known, testing::MatchesRegex("[0-9a-f]{64}"));
  EXPECT_EQ(usual().load()->fingerprint(), known) << "where the files lie does not matter";
  EXPECT_NE(small_vocabulary(tokens, "a b\nab c\n").load()->fingerprint(), known);
}

TEST(Gpt2Tokenizer, GivesSpecialTokensTheNextIds) {
  const small_vocabulary files(small_vocabulary::bytes_and({"ab"}), "a b\n");
  auto options = files.options();
  options.special_tokens = {"<x>", "<|endoftext|>", "ab", "<y>"};
  const auto tokenizer = make_tokenizer(options);
  EXPECT_EQ(tokenizer->vocab_size(), 260);  // including <|endoftext|>, id 257
  EXPECT_EQ(tokenizer->eod(), 257);
  const auto encoder = tokenizer->make_encoder();
  EXPECT_EQ(test::encode(*encoder, "<y>xaby<x>"),
            (std::vector<std::int32_t>{259, 'x', 256, 'y', 258}));
  EXPECT_EQ(encoder->special_tokens_found(), 3);
  EXPECT_EQ(tokenizer->decode(std::vector<std::int64_t>{258, 256, 259}), "<x>ab<y>");
  EXPECT_NE(tokenizer->fingerprint(), files.load()->fingerprint());
}

TEST(Gpt2Tokenizer, TreatsSpecialTokensInTextsAsItIsTold) {
  const small_vocabulary files(small_vocabulary::bytes(), "");
  auto options = files.options();
  test::write_text(options.merge_file, "#version: 0.2\n");
  options.in_text = special_tokens_in_text::encode_as_text;
  EXPECT_EQ(test::encode(*make_tokenizer(options), "<|endoftext|>").size(), 13U);
  options.in_text = special_tokens_in_text::allow;
  EXPECT_EQ(test::encode(*make_tokenizer(options), "<|endoftext|>").size(), 1U);
  options.in_text = special_tokens_in_text::error;
  id_buffer ids;
  const auto tokenizer = make_tokenizer(options);
  const auto fault = tokenizer->make_encoder()->encode("ab<|endoftext|>", ids);
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->offset_bytes, 2U);
}

TEST(Gpt2Tokenizer, RefusesSpecialTokensThatAreNone) {
  const small_vocabulary files(small_vocabulary::bytes_and({"ab"}), "a b\n");
  auto options = files.options();
  options.special_tokens = {"<x>", "<x>"};
  EXPECT_THROW(make_tokenizer(options), config_error);
  options.special_tokens = {""};
  EXPECT_THROW(make_tokenizer(options), config_error);
}

}  // namespace
}  // namespace millrace::tokenizer::detail
