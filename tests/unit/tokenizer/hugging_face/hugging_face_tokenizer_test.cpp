// SPDX-License-Identifier: Apache-2.0
#include "hugging_face/hugging_face_tokenizer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/tokenizer/tokenizer.hpp>

#include "support/encode.hpp"
#include "support/paths.hpp"
#include "unit/tokenizer/hugging_face/hugging_face_fixture.hpp"

namespace millrace::tokenizer::detail {
namespace {

TEST_F(HuggingFaceTokenizer, EncodesAndDecodesBothWays) {
  const auto t = make(json_of(word_level, white_space));
  EXPECT_EQ(encode(*t, "a b  x"), (ids_list{1, 2, 0}));
  EXPECT_EQ(encode(*t, ""), ids_list{});
  EXPECT_EQ(t->decode(std::vector<std::int64_t>{1, 2, 77}), "a b \xEF\xBF\xBD");
  EXPECT_EQ(t->vocab_size(), 3);
  EXPECT_EQ(t->eod(), std::nullopt);
}

// As in the reference, an added token gets the next id after the model's tokens, regardless of its
// id in the file.
TEST_F(HuggingFaceTokenizer, GivesAddedTokensTheNextIds) {
  const auto t =
      make(json_of(word_level, std::string(white_space) + R"("added_tokens":[)" + added("<x>") +
                                   "," + added("b") + "," + added("<y>") + "],"));
  EXPECT_EQ(encode(*t, "a<y><x>b"), (ids_list{1, 4, 3, 2}));
  EXPECT_EQ(t->vocab_size(), 5);
}

TEST_F(HuggingFaceTokenizer, LooksForNormalizedTokensInNormalizedText) {
  const auto t = make(json_of(
      word_level, std::string(white_space) + R"("normalizer":{"type":"Lowercase"},)" +
                      R"("added_tokens":[)" + added("XY", "normalized") + "," + added("Z") + "],"));
  EXPECT_EQ(encode(*t, "xY XY z Z A"), (ids_list{3, 3, 0, 4, 1}));
}

TEST_F(HuggingFaceTokenizer, DoesWithSpecialTokensInTextsWhatTheOptionSays) {
  const std::string json =
      json_of(word_level, std::string(white_space) + R"("added_tokens":[)" +
                              added("<x>", "special") + "," + added("<y>") + "],");
  const auto allow = make(json);
  EXPECT_EQ(encode(*allow, "a <x> <y>"), (ids_list{1, 3, 4}));
  const auto encoder = make(json, {.in_text = special_tokens_in_text::encode_as_text});
  EXPECT_EQ(encode(*encoder, "a <x> <y>"), (ids_list{1, 0, 4}));
  const auto refuses = make(json, {.in_text = special_tokens_in_text::error});
  EXPECT_EQ(encode(*refuses, "a <y>"), (ids_list{1, 4}));
  id_buffer ids;
  const auto fault = refuses->make_encoder()->encode("a <x>", ids);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->offset_bytes, 2U);
  EXPECT_EQ(fault->what, "the special token '<x>' in the text");
}

TEST_F(HuggingFaceTokenizer, PutsTheTemplateAroundTexts) {
  const std::string json = json_of(
      word_level, std::string(white_space) +
                      R"("post_processor":{"type":"BertProcessing","cls":["c",1],"sep":["s",2]},)");
  EXPECT_EQ(encode(*make(json), "b"), (ids_list{1, 2, 2}));
  EXPECT_EQ(encode(*make(json), ""), (ids_list{1, 2}));
  EXPECT_EQ(encode(*make(json, {.include_special_tokens = false}), "b"), ids_list{2});
}

TEST_F(HuggingFaceTokenizer, LeavesTheTemplateOutOfPartsWithoutIt) {
  const auto t = make(
      json_of(word_level,
              std::string(white_space) +
                  R"("post_processor":{"type":"BertProcessing","cls":["c",1],"sep":["s",2]},)"));
  const auto encoder = t->make_encoder();
  id_buffer ids;
  std::vector<byte_span> spans;
  EXPECT_FALSE(encoder->encode_part({.text = "b", .with_template = false}, ids));
  EXPECT_FALSE(encoder->encode_part({.text = "", .with_template = false}, ids));
  EXPECT_EQ(ids_list(ids.ids().begin(), ids.ids().end()), ids_list{2});
  EXPECT_FALSE(
      encoder->encode_part_with_offsets({.text = "a", .with_template = false}, ids, spans));
  EXPECT_EQ(ids_list(ids.ids().begin(), ids.ids().end()), (ids_list{2, 1}));
  EXPECT_EQ(spans, (std::vector<byte_span>{{0, 1}}));
}

TEST_F(HuggingFaceTokenizer, TruncatesAndPadsNothing) {
  const auto t = make(json_of(
      word_level, std::string(white_space) +
                      R"("truncation":{"max_length":1,"strategy":"LongestFirst","stride":0},)" +
                      R"("padding":{"strategy":{"Fixed":9},"pad_id":0,"pad_token":"?"},)"));
  EXPECT_EQ(encode(*t, "a b"), (ids_list{1, 2}));
}

TEST_F(HuggingFaceTokenizer, RefusesWhatContradictsItself) {
  const auto model = [](const std::string& entries) {
    return R"({"model":{"type":"BPE",)" + entries + "}}";
  };
  expect_refused(model(R"("vocab":{"a":0,"a":1},"merges":[])"), "token 'a' occurs twice",
                 "\"a\":1");
  expect_refused(model(R"("vocab":{"a":0,"b":0},"merges":[])"), "the id 0 occurs twice", "\"b\":0");
  expect_refused(model(R"("vocab":{"a":-1},"merges":[])"), "not an integer of 0..", "\"a\"");
  expect_refused(model(R"("vocab":{"a":0},"merges":["a b"])"),
                 "right part 'b' is not in the vocabulary", "\"a b\"");
  expect_refused(model(R"("vocab":{"a":0,"b":1},"merges":[["a","b"]])"),
                 "merged token 'ab' is not in the vocabulary", "[\"a\",\"b\"]");
  expect_refused(model(R"("vocab":{"a":0},"merges":["a"])"), "expected two tokens", "\"a\"]");
  expect_refused(model(R"("dropout":0.1,"vocab":{},"merges":[])"), "dropout", "\"dropout\"");
  expect_refused(R"({"model":{"type":"Other"}})", "the model type 'Other'", "\"type\"");
  expect_refused(R"({"version":"2.0","model":{}})", "version '2.0'", "\"version\"");
  expect_refused(R"({"model":[1,]})", "not JSON", "]}");
}

TEST_F(HuggingFaceTokenizer, NamesTheComponentItCannotHonour) {
  expect_refused(json_of(word_level, R"("normalizer":{"type":"Sequence","normalizers":[)"
                                     R"({"type":"NFC"},{"type":"Strange"}]},)"),
                 "Strange", "\"type\":\"Strange\"");
  expect_refused(json_of(word_level, R"("post_processor":{"type":"Strange"},)"), "Strange",
                 "\"type\":\"Strange\"");
}

// A byte-level model that lacks bytes is refused. Otherwise, bytes without a token would be dropped
// from texts without notice.
TEST_F(HuggingFaceTokenizer, RefusesAByteLevelModelThatLacksBytes) {
  EXPECT_THAT(
      [&] {
        (void)make(R"({"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,)"
                   R"("trim_offsets":true,"use_regex":true},)"
                   R"("model":{"type":"BPE","vocab":{"a":0},"merges":[]}})");
      },
      ThrowsMessage<format_error>(HasSubstr("no token for the single byte 0")));
}

// Tokens that may match a part of the first character are refused. Suppose that normalizing turns
// one character into two, and a token matches the first of these. The reference then treats the
// second one as the start of the text too, but millrace does not.
TEST_F(HuggingFaceTokenizer, RefusesTokensThatMayTakeAPartOfTheFirstCharacter) {
  const auto json = [](const std::string& token, const std::string& scheme) {
    return R"({"added_tokens":[)" + token +
           R"(],"normalizer":{"type":"NFKC"},"pre_tokenizer":{"type":"Metaspace",)"
           R"("replacement":"_","prepend_scheme":")" +
           scheme + R"(","split":true},)" + std::string(word_level) + "}";
  };
  expect_refused(json(added("f", "normalized"), "first"),
                 "prepend_scheme 'first' is not supported with this", R"("pre_tokenizer")");
  (void)make(json(added("f"), "first"));
  (void)make(json(added("f", "normalized"), "always"));
}

// With prepend_scheme "first", only the start of a text gets a prefix. Then a normalizer that
// replaces several characters at once is refused: where it changes the start of a text, Hugging
// Face's library no longer recognizes that start.
TEST_F(HuggingFaceTokenizer, RefusesToReplaceSeveralCharactersAtAStartThatCounts) {
  const auto json = [](const std::string& normalizers, const std::string& scheme) {
    return R"({"normalizer":{"type":"Sequence","normalizers":[)" + normalizers +
           R"(]},"pre_tokenizer":{"type":"Metaspace","replacement":"_","prepend_scheme":")" +
           scheme + R"(","split":true},)" + std::string(word_level) + "}";
  };
  const auto replace = [](const std::string& kind, const std::string& from, const std::string& to) {
    return R"({"type":"Replace","pattern":{")" + kind + R"(":")" + from + R"("},"content":")" + to +
           R"("})";
  };
  for (const std::string& several :
       {replace("String", "  ", "aa"), replace("String", "ab", "c"),
        replace("String", "  ", "_") + "," + replace("String", "_", "a")}) {
    expect_refused(json(several, "first"), "or replaces several", R"("pre_tokenizer")");
    (void)make(json(several, "always"));
  }
  for (const std::string& harmless :
       {replace("String", " ", "aa"), replace("String", "\u00e9", "e"),
        replace("String", "  ", " "),
        replace("String", "a", "b") + "," + replace("String", "  ", "_x")}) {
    (void)make(json(harmless, "first"));
  }
}

TEST_F(HuggingFaceTokenizer, AddsTheSpecialTokensOfAnOption) {
  const std::string json =
      json_of(word_level, R"("added_tokens":[)" + added("<old>") + "]," + std::string(white_space));
  const hugging_face_options options = {.special_tokens = {"<x>", "b", "<old>", "<x>", "<y>"}};
  for (const auto& made : {make(json, options), make_folder(json, "{}", options)}) {
    EXPECT_EQ(made->vocab_size(), 6);
    EXPECT_EQ(encode(*made, "a<x>ab<y>a<old>"), (ids_list{1, 4, 1, 2, 5, 1, 3}));
    EXPECT_NE(made->fingerprint(), make(json)->fingerprint());
  }
  EXPECT_EQ(encode(*make(json, {.special_tokens = {"<x>"},
                                .in_text = special_tokens_in_text::encode_as_text}),
                   "a <x> a"),
            (ids_list{1, 0, 1}));
  EXPECT_THAT([&] { (void)make(json, {.special_tokens = {""}}); },
              ThrowsMessage<config_error>(HasSubstr("a token is empty")));

  test::write_text(folder_ / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nab\n");
  const auto lower =
      make_bert_word_piece_tokenizer(folder_ / "vocab.txt", true, {.special_tokens = {"<X>"}});
  EXPECT_EQ(encode(*lower, "AB<X><x>"), (ids_list{2, 5, 106, 1, 1, 1, 3}));
  const auto given = make_bert_word_piece_tokenizer(
      folder_ / "vocab.txt", true,
      {.special_tokens = {"<X>"}, .in_text = special_tokens_in_text::allow});
  EXPECT_EQ(given->fingerprint(), lower->fingerprint());
}

TEST_F(HuggingFaceTokenizer, FingerprintsFilesAndOptions) {
  const std::string json = json_of(word_level, white_space);
  const std::string plain = make(json)->fingerprint();
  EXPECT_EQ(make(json)->fingerprint(), plain);
  EXPECT_NE(make(json + " ")->fingerprint(), plain);
  EXPECT_NE(make(json, {.include_special_tokens = false})->fingerprint(), plain);
  const auto under = [&](special_tokens_in_text policy) {
    return make(json, {.in_text = policy})->fingerprint();
  };
  EXPECT_EQ(under(special_tokens_in_text::allow), plain) << "the default, given";
  EXPECT_NE(under(special_tokens_in_text::encode_as_text), plain);
  EXPECT_NE(under(special_tokens_in_text::error), plain);
  EXPECT_NE(make_folder(json, "{}")->fingerprint(), make_folder(json, "{ }")->fingerprint());
}

TEST_F(HuggingFaceTokenizer, OfAVocabularyOfBertIsMegatrons) {
  test::write_text(folder_ / "vocab.txt",
                   "[PAD]\n[UNK]\r\n[CLS]\n[SEP]\n[MASK]\nab\n##c\nab\xC3\xA9");
  const auto cased = make_bert_word_piece_tokenizer(folder_ / "vocab.txt", false);
  EXPECT_EQ(encode(*cased, "abc Ab [MASK]<extra_id_7>"), (ids_list{2, 5, 6, 1, 4, 15, 3}));
  EXPECT_EQ(cased->vocab_size(), 108);
  EXPECT_EQ(cased->eod(), 3);
  const auto lower = make_bert_word_piece_tokenizer(folder_ / "vocab.txt", true);
  EXPECT_EQ(encode(*lower, "AB\xC3\x87"), (ids_list{2, 5, 6, 3}));
  EXPECT_EQ(encode(*lower, "ab<extra_id_7>"), (ids_list{2, 5, 15, 3}));
  EXPECT_EQ(lower->vocab_size(), 108);
  EXPECT_NE(lower->fingerprint(), cased->fingerprint());

  test::write_text(folder_ / "vocab.txt", "[UNK]\na\na\n");
  EXPECT_THAT([&] { (void)make_bert_word_piece_tokenizer(folder_ / "vocab.txt", true); },
              ThrowsMessage<format_error>(HasSubstr("line 3: token 'a' occurs twice (at byte 8)")));
  test::write_text(folder_ / "vocab.txt", "[UNK]\na\n");
  EXPECT_THAT([&] { (void)make_bert_word_piece_tokenizer(folder_ / "vocab.txt", true); },
              ThrowsMessage<format_error>(HasSubstr("lacks [SEP]")));
}

// Only regular expressions that PCRE2 matches are noted, because they are slower.
TEST_F(HuggingFaceTokenizer, NotesTheRegularExpressionsThatPcre2Matches) {
  const auto split = [](std::string_view regex) {
    return R"({"pre_tokenizer":{"type":"Split","pattern":{"Regex":")" + std::string(regex) +
           R"("},"behavior":"Isolated","invert":false},)" + std::string(word_level) + "}";
  };
  EXPECT_THAT(make("{" + std::string(white_space) + std::string(word_level) + "}")->notes(),
              testing::IsEmpty());
  if (optional_parts() == "without PCRE2") {
    expect_refused(split("a+"), "this build of millrace has no PCRE2", R"("Regex")");
    return;
  }
  const auto tokenizer = make(split("a+"));
  EXPECT_EQ(encode(*tokenizer, "abab"), (ids_list{1, 2, 1, 2}));
  EXPECT_THAT(tokenizer->notes(),
              testing::ElementsAre(testing::AllOf(HasSubstr("expression 'a+' is matched by PCRE2"),
                                                  HasSubstr("slower"))));
  const auto both =
      make(R"({"normalizer":{"type":"Replace","pattern":{"Regex":"a{2}"},"content":"b"},)" +
           split("b+").substr(1));
  EXPECT_THAT(both->notes(), testing::ElementsAre(HasSubstr("'a{2}'"), HasSubstr("'b+'")));
}

TEST_F(HuggingFaceTokenizer, NotesADecoderThatIsNotUnderstood) {
  const auto t = make(json_of(word_level, R"("decoder":{"type":"Odd"},)"));
  EXPECT_THAT(t->notes(), testing::ElementsAre(HasSubstr("the decoder 'Odd' is unknown")));
  EXPECT_EQ(encode(*t, "a"), ids_list{1});
  EXPECT_EQ(t->decode(std::vector<std::int64_t>{1, 2}), "ab");
}

TEST_F(HuggingFaceTokenizer, SaysWhichRegularExpressionGivesUpOnAText) {
  if (optional_parts() == "without PCRE2") GTEST_SKIP() << "this build is without PCRE2";
  const auto tokenizer = make(R"({"pre_tokenizer":{"type":"Split","pattern":{"Regex":"(?:a?a)+c"},)"
                              R"("behavior":"Isolated","invert":false},"added_tokens":[)" +
                              added("<x>", "special") + "]," + std::string(word_level) + "}");
  id_buffer ids;
  const auto fault = tokenizer->make_encoder()->encode("b<x>" + std::string(300, 'a') + "bc", ids);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->offset_bytes, 4U);  // offset within the section
  EXPECT_EQ(fault->what,
            "the regular expression '(?:a?a)+c' gives up at byte 0 of a piece of 302: there are "
            "too many ways to match it");
}

}  // namespace
}  // namespace millrace::tokenizer::detail
