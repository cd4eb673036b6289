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
#include <millrace/tokenizer/make_tokenizer.hpp>

#include "hugging_face/bert_word_piece.hpp"
#include "support/encode.hpp"
#include "support/paths.hpp"

namespace millrace::tokenizer::detail {
namespace {

using ids_list = std::vector<std::int32_t>;
using test::encode;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr std::string_view word_level =
    R"("model":{"type":"WordLevel","unk_token":"?","vocab":{"?":0,"a":1,"b":2}})";
constexpr std::string_view white_space = R"("pre_tokenizer":{"type":"WhitespaceSplit"},)";

std::string added(std::string_view content, std::string_view flags = "") {
  std::string token = R"({"id":9,"content":")" + std::string(content) + R"(")";
  for (const std::string_view flag : {"single_word", "lstrip", "rstrip", "normalized", "special"}) {
    const bool set = flags.find(flag) != std::string_view::npos;
    token += ",\"" + std::string(flag) + "\":" + (set ? "true" : "false");
  }
  return token + "}";
}

class HuggingFaceTokenizer : public testing::Test {
 protected:
  std::unique_ptr<tokenizer> make(std::string_view json, const hugging_face_options& options = {}) {
    test::write_text(folder_ / "tokenizer.json", json);
    return make_hugging_face_tokenizer(folder_ / "tokenizer.json", options);
  }
  // Of the folder, with a config.
  std::unique_ptr<tokenizer> make_folder(std::string_view json, std::string_view config,
                                         const hugging_face_options& options = {}) {
    test::write_text(folder_ / "tokenizer.json", json);
    test::write_text(folder_ / "tokenizer_config.json", config);
    return make_hugging_face_tokenizer(folder_.path(), options);
  }
  // That `json` is refused, with these words, at the place where `at` is in it.
  void expect_refused(const std::string& json, const std::string& problem, std::string_view at) {
    SCOPED_TRACE(json);
    const std::string where = "(at byte " + std::to_string(json.find(at)) + ")";
    EXPECT_THAT([&] { (void)make(json); },
                ThrowsMessage<format_error>(testing::AllOf(HasSubstr("tokenizer.json: "),
                                                           HasSubstr(problem), HasSubstr(where))));
  }

  test::temp_folder folder_;
};

std::string json_of(std::string_view model, std::string_view more = "") {
  return "{" + std::string(more) + std::string(model) + "}";
}

TEST_F(HuggingFaceTokenizer, EncodesAndDecodesBothWays) {
  const auto t = make(json_of(word_level, white_space));
  EXPECT_EQ(encode(*t, "a b  x"), (ids_list{1, 2, 0}));
  EXPECT_EQ(encode(*t, ""), ids_list{});
  EXPECT_EQ(t->decode(std::vector<std::int64_t>{1, 2, 77}), "a b \xEF\xBF\xBD");
  EXPECT_EQ(t->vocab_size(), 3);
  EXPECT_EQ(t->eod(), std::nullopt);
}

// As there: the next id behind the model's tokens, whatever the file says it is.
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
  expect_refused(model(R"("vocab":{"a":0,"a":1},"merges":[])"), "token 'a' is there twice",
                 "\"a\":1");
  expect_refused(model(R"("vocab":{"a":0,"b":0},"merges":[])"), "the id 0 is there twice",
                 "\"b\":0");
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

// A byte without a token would drop out of texts and nobody would know.
TEST_F(HuggingFaceTokenizer, RefusesAByteLevelModelThatLacksBytes) {
  EXPECT_THAT(
      [&] {
        (void)make(R"({"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,)"
                   R"("trim_offsets":true,"use_regex":true},)"
                   R"("model":{"type":"BPE","vocab":{"a":0},"merges":[]}})");
      },
      ThrowsMessage<format_error>(HasSubstr("no token for byte 0 alone")));
}

TEST_F(HuggingFaceTokenizer, TakesTheEodOfItsFolder) {
  const std::string json = json_of(word_level, white_space);
  const auto eos = make_folder(json, R"({"eos_token":"</s>","sep_token":"b"})");
  EXPECT_EQ(eos->eod(), 3);
  EXPECT_EQ(eos->vocab_size(), 4);
  EXPECT_EQ(encode(*eos, "a</s>b"), (ids_list{1, 3, 2}));
  EXPECT_EQ(make_folder(json, R"({"sep_token":"b"})")->eod(), 2);
  EXPECT_EQ(make_folder(json, R"({})")->eod(), std::nullopt);
}

TEST_F(HuggingFaceTokenizer, AddsTheTokensOfItsFolder) {
  const std::string json = json_of(word_level, white_space);
  const auto t = make_folder(
      json, R"({"added_tokens_decoder":{"10":{"content":"<x>","lstrip":true,"special":true},)"
            R"("3":{"content":"<y>"}},"extra_special_tokens":["<z>"]})");
  EXPECT_EQ(encode(*t, "a <x><y><z>"), (ids_list{1, 4, 3, 5}));
}

// Without "added_tokens_decoder" the map's names go before the config's, one of null takes a name
// away; with it the file does not count.
TEST_F(HuggingFaceTokenizer, TakesTheNamesOfTheSpecialTokensMap) {
  const std::string json = json_of(word_level, white_space);
  const auto map = [&](std::string_view text) {
    test::write_text(folder_ / "special_tokens_map.json", text);
  };
  map(R"({"eos_token":{"content":"</s>","lstrip":true},"additional_special_tokens":["<z>"]})");
  const auto t = make_folder(json, "{}");
  EXPECT_EQ(t->eod(), 3);
  EXPECT_EQ(encode(*t, "a </s><z>b"), (ids_list{1, 3, 4, 2}));
  EXPECT_EQ(make_folder(json, R"({"eos_token":"b"})")->eod(), 3);
  EXPECT_EQ(make_folder(json, R"({"eos_token":"b","added_tokens_decoder":{}})")->eod(), 2);
  map(R"({"sep_token":"b"})");
  EXPECT_EQ(make_folder(json, "{}")->eod(), 2);
  EXPECT_EQ(make_folder(json, R"({"eos_token":"a"})")->eod(), 1);
  map(R"({"eos_token":null,"sep_token":"b"})");
  EXPECT_EQ(make_folder(json, R"({"eos_token":"a"})")->eod(), 2);
}

TEST_F(HuggingFaceTokenizer, NamesTheSpecialTokensMapWhereItIsWrong) {
  const std::string json = json_of(word_level, white_space);
  const auto expect_fault = [&](std::string_view map, std::string_view config,
                                const std::string& problem) {
    test::write_text(folder_ / "special_tokens_map.json", map);
    EXPECT_THAT(
        [&] { (void)make_folder(json, config); },
        ThrowsMessage<format_error>(testing::AllOf(
            HasSubstr((folder_ / "special_tokens_map.json: ").string()), HasSubstr(problem))));
  };
  expect_fault("{", "{}", "");
  expect_fault("[]", "{}", "");
  expect_fault(R"({"eos_token":7})", "{}", "");
  expect_fault(R"({"extra_special_tokens":{"x":"<x>"}})", "{}", "is not an array");
  expect_fault(R"({"additional_special_tokens":["<x>","<y>"]})",
               R"({"additional_special_tokens":["<x>"]})", "the token '<y>' is in no such list");
  EXPECT_NO_THROW((void)make_folder(json, R"({"added_tokens_decoder":{}})"));
  test::write_text(folder_ / "special_tokens_map.json", "{}");
  EXPECT_THAT([&] { (void)make_folder(json, R"({"eos_token":7})"); },
              ThrowsMessage<format_error>(HasSubstr("tokenizer_config.json: ")));
}

TEST_F(HuggingFaceTokenizer, RefusesTokensThatOnlyAddedTokensJsonHas) {
  const std::string json =
      json_of(word_level, R"("added_tokens":[)" + added("<old>") + "]," + std::string(white_space));
  const auto expect_fault = [&](std::string_view text, const std::string& problem) {
    test::write_text(folder_ / "added_tokens.json", text);
    EXPECT_THAT([&] { (void)make_folder(json, "{}"); },
                ThrowsMessage<format_error>(testing::AllOf(
                    HasSubstr((folder_ / "added_tokens.json: ").string()), HasSubstr(problem))));
  };
  const std::string plain = make_folder(json, "{}")->fingerprint();
  expect_fault(R"({"<new>":10})", "the token '<new>' with the id 10 is not among added_tokens");
  expect_fault(R"({"<old>":9,"a":1})", "the token 'a' with the id 1 is not among added_tokens");
  expect_fault(R"({"<old>":8})", "where its id is 9");
  expect_fault(R"({"<old>":"9"})", "the id of a token");
  expect_fault("{", "");
  EXPECT_NO_THROW((void)make_folder(json, R"({"added_tokens_decoder":{}})"));
  test::write_text(folder_ / "added_tokens.json", R"({"<old>":9})");
  const auto t = make_folder(json, "{}");
  EXPECT_EQ(encode(*t, "a<old>"), (ids_list{1, 3}));
  EXPECT_EQ(t->fingerprint(), plain);
}

// One character may become two, and the token is found in the first: then what is behind it is at
// the beginning of the text as well, but only to the reference.
TEST_F(HuggingFaceTokenizer, RefusesTokensThatMayTakeAPartOfTheFirstCharacter) {
  const auto json = [](const std::string& token, const std::string& scheme) {
    return R"({"added_tokens":[)" + token +
           R"(],"normalizer":{"type":"NFKC"},"pre_tokenizer":{"type":"Metaspace",)"
           R"("replacement":"_","prepend_scheme":")" +
           scheme + R"(","split":true},)" + std::string(word_level) + "}";
  };
  expect_refused(json(added("f", "normalized"), "first"),
                 "prepend_scheme 'first' is not honoured where", R"("pre_tokenizer")");
  (void)make(json(added("f"), "first"));
  (void)make(json(added("f", "normalized"), "always"));
}

TEST_F(HuggingFaceTokenizer, RefusesFoldersThatSayTwoThings) {
  const std::string json = json_of(word_level, white_space);
  EXPECT_THAT([&] { (void)make_folder(json, R"({"auto_map":{}})"); },
              ThrowsMessage<format_error>(HasSubstr("auto_map is not honoured")));
  const std::string llama = R"({"tokenizer_class":"LlamaTokenizerFast","bos_token":"a"})";
  EXPECT_THAT([&] { (void)make_folder(json, llama); },
              ThrowsMessage<format_error>(HasSubstr("add_bos_token")));
  EXPECT_EQ(encode(*make_folder(json, llama, {.include_special_tokens = false}), "a"), ids_list{1});
  std::filesystem::remove(folder_ / "tokenizer.json");
  EXPECT_THAT([&] { (void)make_hugging_face_tokenizer(folder_.path(), {}); },
              ThrowsMessage<config_error>(HasSubstr("no tokenizer.json")));
}

TEST_F(HuggingFaceTokenizer, RefusesConfigsThatAreNotFollowed) {
  const std::string json =
      json_of(word_level, R"("added_tokens":[)" + added("<extra_id_0>", "special") + "]," +
                              std::string(white_space));
  const auto expect_fault = [&](const std::string& config, const std::string& problem) {
    SCOPED_TRACE(config);
    EXPECT_THAT([&] { (void)make_folder(json, config); },
                ThrowsMessage<format_error>(
                    testing::AllOf(HasSubstr("tokenizer_config.json: "), HasSubstr(problem))));
  };
  for (const std::string key : {"src_lang", "tgt_lang", "language", "task"}) {
    expect_fault("{\"" + key + R"(":"x"})", key + " is not honoured");
    EXPECT_NO_THROW((void)make_folder(json, "{\"" + key + R"(":null})"));
  }
  for (const std::string key : {"from_slow", "split_special_tokens", "fix_mistral_regex",
                                "predict_timestamps", "legacy_behaviour"}) {
    expect_fault("{\"" + key + R"(":true})", key + " is not honoured");
    EXPECT_NO_THROW((void)make_folder(json, "{\"" + key + R"(":false})"));
  }
  for (const std::string name :
       {"M2M100Tokenizer", "XLMTokenizer", "NllbTokenizerFast", "MBart50Tokenizer",
        "WhisperTokenizer", "RoFormerTokenizerFast", "MistralCommonBackend"}) {
    expect_fault(R"({"tokenizer_class":")" + name + R"("})",
                 "tokenizer_class " + name + " is not honoured");
  }
  expect_fault(R"({"extra_ids":2})",
               "extra_ids is 2, but tokenizer.json does not add <extra_id_1>");
  expect_fault(R"({"tokenizer_class":"T5TokenizerFast"})",
               "extra_ids is 100 where it is not given");
  EXPECT_NO_THROW((void)make_folder(json, R"({"extra_ids":1})"));
  expect_fault(R"({"image_token":"<img>"})", "image_token is <img>, which tokenizer.json does not");
  expect_fault(R"({"image_token":{"content":"a"}})", "image_token is a, which");
  EXPECT_NO_THROW((void)make_folder(json, R"({"image_token":"<img>","add_bos_token":true,)"
                                          R"("additional_special_tokens":["<img>"]})"));
  EXPECT_NO_THROW((void)make_folder(
      json, R"({"model_max_length":5,"padding_side":"left","clean_up_tokenization_spaces":true,)"
            R"("chat_template":"x","name_or_path":"y","tokenizer_class":"PreTrainedTokenizerFast",)"
            R"("legacy":true,"errors":"replace","unknown_to_us":[1]})"));
}

TEST_F(HuggingFaceTokenizer, RefusesClassesWithAnotherTemplate) {
  const std::string plain = json_of(word_level, white_space);
  const std::string json = json_of(
      word_level, R"("post_processor":{"type":"BertProcessing","cls":["a",1],"sep":["b",2]},)" +
                      std::string(white_space));
  const std::string names = R"(,"cls_token":"a","sep_token":"b"})";
  for (const std::string name : {"BertTokenizer", "RobertaTokenizerFast", "XLMRobertaTokenizer"}) {
    SCOPED_TRACE(name);
    const std::string config = R"({"tokenizer_class":")" + name + "\"";
    EXPECT_EQ(encode(*make_folder(json, config + names), "b"), (ids_list{1, 2, 2}));
    for (const auto& each : {std::pair(plain, names), std::pair(json, std::string("}"))}) {
      EXPECT_THAT([&] { (void)make_folder(each.first, config + each.second); },
                  ThrowsMessage<format_error>(HasSubstr("has a template of its own")));
    }
    EXPECT_EQ(encode(*make_folder(plain, config + "}", {.include_special_tokens = false}), "b"),
              ids_list{2});
  }
  const std::string neox = R"({"tokenizer_class":"GPTNeoXTokenizer","eos_token":"b")";
  EXPECT_NO_THROW((void)make_folder(plain, neox + "}"));
  EXPECT_THAT([&] { (void)make_folder(plain, neox + R"(,"add_eos_token":true})"); },
              ThrowsMessage<format_error>(HasSubstr("not given: false and false")));
}

// Without the entry release 4 takes false, and release 5 the file's for some classes.
TEST_F(HuggingFaceTokenizer, RefusesAPrefixSpaceThatTheConfigDoesNotHave) {
  const auto json = [](const char* prefix) {
    return R"({"pre_tokenizer":{"type":"ByteLevel","trim_offsets":true,"use_regex":true,)"
           R"("add_prefix_space":)" +
           std::string(prefix) + R"(},"model":{"type":"WordLevel","unk_token":"?",)" +
           R"("vocab":{"?":0,"a":1}}})";
  };
  EXPECT_NO_THROW((void)make_folder(json("false"), "{}"));
  EXPECT_NO_THROW((void)make_folder(json("true"), R"({"add_prefix_space":true})"));
  EXPECT_THAT([&] { (void)make_folder(json("true"), "{}"); },
              ThrowsMessage<format_error>(HasSubstr("add_prefix_space is false where it is not")));
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
  EXPECT_THAT(
      [&] { (void)make_bert_word_piece_tokenizer(folder_ / "vocab.txt", true); },
      ThrowsMessage<format_error>(HasSubstr("line 3: token 'a' is there twice (at byte 8)")));
  test::write_text(folder_ / "vocab.txt", "[UNK]\na\n");
  EXPECT_THAT([&] { (void)make_bert_word_piece_tokenizer(folder_ / "vocab.txt", true); },
              ThrowsMessage<format_error>(HasSubstr("lacks [SEP]")));
}

// What is slower than it might be is said, and what no engine is needed for is not.
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
  EXPECT_EQ(fault->offset_bytes, 4U);  // of the section
  EXPECT_EQ(fault->what,
            "the regular expression '(?:a?a)+c' gives up at byte 0 of a piece of 302: there are "
            "too many ways to match it");
}

}  // namespace
}  // namespace millrace::tokenizer::detail
