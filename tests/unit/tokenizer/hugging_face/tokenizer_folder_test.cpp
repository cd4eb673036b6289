// SPDX-License-Identifier: Apache-2.0
#include "hugging_face/tokenizer_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <millrace/error.hpp>

#include "support/encode.hpp"
#include "support/paths.hpp"
#include "unit/tokenizer/hugging_face/hugging_face_fixture.hpp"

namespace millrace::tokenizer::detail {
namespace {

using TokenizerFolder = HuggingFaceTokenizer;

TEST_F(TokenizerFolder, TakesTheEodOfItsFolder) {
  const std::string json = json_of(word_level, white_space);
  const auto eos = make_folder(json, R"({"eos_token":"</s>","sep_token":"b"})");
  EXPECT_EQ(eos->eod(), 3);
  EXPECT_EQ(eos->vocab_size(), 4);
  EXPECT_EQ(encode(*eos, "a</s>b"), (ids_list{1, 3, 2}));
  EXPECT_EQ(make_folder(json, R"({"sep_token":"b"})")->eod(), 2);
  EXPECT_EQ(make_folder(json, R"({})")->eod(), std::nullopt);
}

TEST_F(TokenizerFolder, AddsTheTokensOfItsFolder) {
  const std::string json = json_of(word_level, white_space);
  const auto t = make_folder(
      json, R"({"added_tokens_decoder":{"10":{"content":"<x>","lstrip":true,"special":true},)"
            R"("3":{"content":"<y>"}},"extra_special_tokens":["<z>"]})");
  EXPECT_EQ(encode(*t, "a <x><y><z>"), (ids_list{1, 4, 3, 5}));
}

// If the config has no "added_tokens_decoder", the names in special_tokens_map.json override those
// in the config, and a null removes a name. If the config has this entry, special_tokens_map.json
// is ignored.
TEST_F(TokenizerFolder, TakesTheNamesOfTheSpecialTokensMap) {
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

TEST_F(TokenizerFolder, NamesTheSpecialTokensMapWhereItIsWrong) {
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
               R"({"additional_special_tokens":["<x>"]})",
               "the token '<y>' is not in the list with this name");
  EXPECT_NO_THROW((void)make_folder(json, R"({"added_tokens_decoder":{}})"));
  test::write_text(folder_ / "special_tokens_map.json", "{}");
  EXPECT_THAT([&] { (void)make_folder(json, R"({"eos_token":7})"); },
              ThrowsMessage<format_error>(HasSubstr("tokenizer_config.json: ")));
}

TEST_F(TokenizerFolder, RefusesTokensThatOnlyAddedTokensJsonHas) {
  const std::string json =
      json_of(word_level, R"("added_tokens":[)" + added("<old>") + "]," + std::string(white_space));
  const auto expect_fault = [&](std::string_view text, const std::string& problem) {
    test::write_text(folder_ / "added_tokens.json", text);
    EXPECT_THAT([&] { (void)make_folder(json, "{}"); },
                ThrowsMessage<format_error>(testing::AllOf(
                    HasSubstr((folder_ / "added_tokens.json: ").string()), HasSubstr(problem))));
  };
  const std::string plain = make_folder(json, "{}")->fingerprint();
  expect_fault(R"({"<new>":10})", "the token '<new>' with the id 10 is not in added_tokens");
  expect_fault(R"({"<old>":9,"a":1})", "the token 'a' with the id 1 is not in added_tokens");
  expect_fault(R"({"<old>":8})", "where its id is 9");
  expect_fault(R"({"<old>":"9"})", "the id of a token");
  expect_fault("{", "");
  EXPECT_NO_THROW((void)make_folder(json, R"({"added_tokens_decoder":{}})"));
  test::write_text(folder_ / "added_tokens.json", R"({"<old>":9})");
  const auto t = make_folder(json, "{}");
  EXPECT_EQ(encode(*t, "a<old>"), (ids_list{1, 3}));
  EXPECT_EQ(t->fingerprint(), plain);
}

TEST_F(TokenizerFolder, RefusesFoldersThatSayTwoThings) {
  const std::string json = json_of(word_level, white_space);
  EXPECT_THAT([&] { (void)make_folder(json, R"({"auto_map":{}})"); },
              ThrowsMessage<format_error>(HasSubstr("auto_map is not supported")));
  const std::string llama = R"({"tokenizer_class":"LlamaTokenizerFast","bos_token":"a",)"
                            R"("eos_token":null,"unk_token":null})";
  EXPECT_THAT([&] { (void)make_folder(json, llama); },
              ThrowsMessage<format_error>(HasSubstr("add_bos_token")));
  EXPECT_EQ(encode(*make_folder(json, llama, {.include_special_tokens = false}), "a"), ids_list{1});
  std::filesystem::remove(folder_ / "tokenizer.json");
  EXPECT_THAT([&] { (void)make_hugging_face_tokenizer(folder_.path(), {}); },
              ThrowsMessage<config_error>(HasSubstr("no tokenizer.json")));
}

TEST_F(TokenizerFolder, RefusesConfigsThatAreNotFollowed) {
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
    expect_fault("{\"" + key + R"(":"x"})", key + " is not supported");
    EXPECT_NO_THROW((void)make_folder(json, "{\"" + key + R"(":null})"));
  }
  for (const std::string key : {"from_slow", "split_special_tokens", "fix_mistral_regex",
                                "predict_timestamps", "legacy_behaviour"}) {
    expect_fault("{\"" + key + R"(":true})", key + " is not supported");
    EXPECT_NO_THROW((void)make_folder(json, "{\"" + key + R"(":false})"));
  }
  for (const std::string name :
       {"M2M100Tokenizer", "XLMTokenizer", "NllbTokenizerFast", "MBart50Tokenizer",
        "WhisperTokenizer", "RoFormerTokenizerFast", "MistralCommonBackend"}) {
    expect_fault(R"({"tokenizer_class":")" + name + R"("})",
                 "tokenizer_class " + name + " is not supported");
  }
  expect_fault(R"({"extra_ids":2})",
               "extra_ids is 2, but <extra_id_1> is not in added_tokens of tokenizer.json");
  expect_fault(R"({"tokenizer_class":"T5TokenizerFast","eos_token":null,"unk_token":null,)"
               R"("pad_token":null})",
               "extra_ids is 100 by default");
  EXPECT_NO_THROW((void)make_folder(json, R"({"extra_ids":1})"));
  expect_fault(R"({"image_token":"<img>"})",
               "'image_token' is '<img>', which is not in added_tokens");
  expect_fault(R"({"image_token":{"content":"a"}})", "'image_token' is 'a', which");
  EXPECT_NO_THROW((void)make_folder(json, R"({"image_token":"<img>","add_bos_token":true,)"
                                          R"("additional_special_tokens":["<img>"]})"));
  EXPECT_NO_THROW((void)make_folder(
      json, R"({"model_max_length":5,"padding_side":"left","clean_up_tokenization_spaces":true,)"
            R"("chat_template":"x","name_or_path":"y","tokenizer_class":"PreTrainedTokenizerFast",)"
            R"("legacy":true,"errors":"replace","unknown_to_us":[1]})"));
}

TEST_F(TokenizerFolder, RefusesClassesWithAnotherTemplate) {
  const std::string plain = json_of(word_level, white_space);
  const std::string json = json_of(
      word_level, R"("post_processor":{"type":"BertProcessing","cls":["a",1],"sep":["b",2]},)" +
                      std::string(white_space));
  const std::string names = R"(,"cls_token":"a","sep_token":"b"})";
  const std::string swapped = R"(,"cls_token":"b","sep_token":"a"})";
  for (const std::string name : {"BertTokenizer", "RobertaTokenizerFast", "AlbertTokenizer"}) {
    SCOPED_TRACE(name);
    const std::string config = R"({"tokenizer_class":")" + name +
                               R"(","bos_token":null,"eos_token":null,"unk_token":null,)" +
                               R"("pad_token":null,"mask_token":null)";
    EXPECT_EQ(encode(*make_folder(json, config + names), "b"), (ids_list{1, 2, 2}));
    for (const auto& each : {std::pair(plain, names), std::pair(json, swapped)}) {
      EXPECT_THAT([&] { (void)make_folder(each.first, config + each.second); },
                  ThrowsMessage<format_error>(HasSubstr("has its own template")));
    }
    EXPECT_EQ(encode(*make_folder(plain, config + names, {.include_special_tokens = false}), "b"),
              ids_list{2});
  }
  // The templates of these classes use other names: bos_token and eos_token, not cls_token and
  // sep_token.
  const std::string xlm = R"({"tokenizer_class":"XLMRobertaTokenizer","unk_token":null,)"
                          R"("pad_token":null,"mask_token":null,"cls_token":"b","sep_token":"a")";
  EXPECT_EQ(encode(*make_folder(json, xlm + R"(,"bos_token":"a","eos_token":"b"})"), "b"),
            (ids_list{1, 2, 2}));
  EXPECT_THAT([&] { (void)make_folder(json, xlm + R"(,"bos_token":"b","eos_token":"a"})"); },
              ThrowsMessage<format_error>(HasSubstr("has its own template")));
  const std::string neox = R"({"tokenizer_class":"GPTNeoXTokenizer","bos_token":null,)"
                           R"("unk_token":null,"pad_token":null,"eos_token":"b")";
  EXPECT_NO_THROW((void)make_folder(plain, neox + "}"));
  EXPECT_THAT([&] { (void)make_folder(plain, neox + R"(,"add_eos_token":true})"); },
              ThrowsMessage<format_error>(HasSubstr("default: false and false")));
}

// The class of the tokenizer is taken from the model's config.json. The tokenizer config in GPT-2's
// own folder names neither tokens nor a class.
TEST_F(TokenizerFolder, TakesTheClassOfTheModel) {
  const std::string json =
      json_of(word_level, R"("added_tokens":[)" + added("<|endoftext|>", "special") + "]," +
                              std::string(white_space));
  const std::string config = R"({"model_max_length":1024})";
  const auto none = make_folder(json, config);
  EXPECT_EQ(none->eod(), std::nullopt);
  const auto eod_of = [&](const std::string& model) {
    test::write_text(folder_ / "config.json", model);
    return make_folder(json, config)->eod();
  };
  EXPECT_EQ(eod_of(R"({"model_type":"gpt2"})"), 3);
  EXPECT_NE(make_folder(json, config)->fingerprint(), none->fingerprint());
  EXPECT_EQ(eod_of(R"({"model_type":"bert","tokenizer_class":"GPT2Tokenizer"})"), 3);
  EXPECT_EQ(eod_of(R"({"vocab_size":3})"), std::nullopt);
  // The class in the tokenizer config takes precedence over the class in config.json.
  EXPECT_EQ(make_folder(json, R"({"tokenizer_class":"PreTrainedTokenizerFast"})")->eod(),
            std::nullopt);
  for (const char* type : {"llama", "my_model"}) {
    EXPECT_THAT(
        [&] { (void)eod_of(R"({"model_type":")" + std::string(type) + R"("})"); },
        ThrowsMessage<format_error>(testing::AllOf(HasSubstr("config.json"), HasSubstr(type),
                                                   HasSubstr("name it by tokenizer_class"))));
  }
  EXPECT_THAT([&] { (void)eod_of("{"); }, ThrowsMessage<format_error>(HasSubstr("config.json")));
}

TEST_F(TokenizerFolder, RefusesAClassThatItDoesNotKnow) {
  const std::string json = json_of(word_level, white_space);
  for (const char* name : {"NougatTokenizerFast", "XGLMTokenizer", "MT5Tokenizer", "MyTokenizer"}) {
    EXPECT_THAT(
        [&] { (void)make_folder(json, R"({"tokenizer_class":")" + std::string(name) + R"("})"); },
        ThrowsMessage<format_error>(HasSubstr("millrace does not know this class")));
  }
}

TEST_F(TokenizerFolder, TakesNamesOfItsClass) {
  const std::string json =
      json_of(word_level, R"("added_tokens":[)" + added("<|endoftext|>", "special") + "]," +
                              std::string(white_space));
  const std::string gpt2 = R"({"tokenizer_class":"GPT2Tokenizer","model_max_length":1024)";
  EXPECT_EQ(make_folder(json, gpt2 + "}")->eod(), 3);
  EXPECT_EQ(make_folder(json, gpt2 + R"(,"eos_token":null})")->eod(), std::nullopt);
  EXPECT_EQ(make_folder(json, gpt2 + R"(,"eos_token":"b"})")->eod(), 2);
  test::write_text(folder_ / "special_tokens_map.json", R"({"eos_token":"a"})");
  EXPECT_EQ(make_folder(json, gpt2 + "}")->eod(), 1);
  EXPECT_EQ(make_folder(json, R"({"tokenizer_class":"PreTrainedTokenizerFast",)"
                              R"("added_tokens_decoder":{}})")
                ->eod(),
            std::nullopt);
}

// Tokens that only the class defines are refused, because the class determines their flags.
TEST_F(TokenizerFolder, RefusesTokensThatOnlyTheClassHas) {
  const std::string json = json_of(word_level, white_space);
  const auto expect_fault = [&](const std::string& config, const std::string& problem) {
    SCOPED_TRACE(config);
    EXPECT_THAT([&] { (void)make_folder(json, config); },
                ThrowsMessage<format_error>(HasSubstr(problem)));
  };
  const std::string neox = R"({"tokenizer_class":"GPTNeoXTokenizerFast","bos_token":null,)";
  expect_fault(neox + R"("unk_token":null})",
               "tokenizer_class GPTNeoXTokenizerFast "
               "has the default eos_token '<|endoftext|>', which is not in added_tokens");
  expect_fault(neox + R"("unk_token":null,"eos_token":null})", "has the default pad_token");
  EXPECT_NO_THROW(
      (void)make_folder(json, neox + R"("unk_token":null,"eos_token":null,"pad_token":null})"));
  const std::string llama = R"("bos_token":"a","eos_token":"b","unk_token":"?",)"
                            R"("add_bos_token":false})";
  EXPECT_NO_THROW((void)make_folder(json, R"({"tokenizer_class":"LlamaTokenizer",)" + llama));
  expect_fault(R"({"tokenizer_class":"CodeLlamaTokenizer",)" + llama,
               "has the default prefix_token");
  expect_fault(R"({"tokenizer_class":"XLNetTokenizer","bos_token":null,"eos_token":null,)"
               R"("unk_token":null,"sep_token":"b","pad_token":null,"cls_token":"a",)"
               R"("mask_token":null})",
               "has the token '<eop>'");
}

TEST_F(TokenizerFolder, RefusesFlagsThatDependOnTheVersion) {
  const std::string json = json_of(word_level, white_space);
  EXPECT_THAT(
      [&] {
        (void)make_folder(json, R"({"added_tokens_decoder":{"3":{"content":"<x>"},)"
                                R"("4":{"content":"<x>","lstrip":true}}})");
      },
      ThrowsMessage<format_error>(HasSubstr("the token '<x>' occurs twice")));
  EXPECT_THAT(
      [&] {
        (void)make_folder(json,
                          R"({"bos_token":{"content":"<x>","lstrip":true},"eos_token":"<x>"})");
      },
      ThrowsMessage<format_error>(HasSubstr("lists it twice with different flags")));
  EXPECT_NO_THROW((void)make_folder(json, R"({"bos_token":"<x>","eos_token":"<x>"})"));
  const std::string with_old =
      json_of(word_level,
              R"("added_tokens":[)" + added("<old>", "special") + "]," + std::string(white_space));
  const std::string list = R"({"additional_special_tokens":[{"content":"<old>","lstrip":)";
  EXPECT_NO_THROW((void)make_folder(with_old, list + "false}]}"));
  EXPECT_THAT([&] { (void)make_folder(with_old, list + "true}]}"); },
              ThrowsMessage<format_error>(HasSubstr("'<old>' has other flags than in")));
  const std::string twice =
      json_of(word_level, R"("added_tokens":[)" + added("<old>") + "," + added("<old>", "special") +
                              "]," + std::string(white_space));
  EXPECT_NO_THROW((void)make(twice));
  EXPECT_THAT([&] { (void)make_folder(twice, "{}"); },
              ThrowsMessage<format_error>(testing::AllOf(
                  HasSubstr("tokenizer.json: "), HasSubstr("the token '<old>' occurs twice"))));
}

// A config as `transformers` saves it. The length is 10^30 if it is unknown, and the extra tokens
// have no names.
TEST_F(TokenizerFolder, TakesWhatTransformersSaves) {
  const std::string json = json_of(word_level, white_space);
  const std::string saved =
      R"({"clean_up_tokenization_spaces":false,"eos_token":"b","extra_special_tokens":{},)"
      R"("model_max_length":1000000000000000019884624838656,)"
      R"("tokenizer_class":"PreTrainedTokenizerFast"})";
  EXPECT_EQ(make_folder(json, saved)->eod(), 2);
  EXPECT_THAT(
      [&] { (void)make_folder(json, R"({"extra_special_tokens":{"image":"<img>"}})"); },
      ThrowsMessage<format_error>(HasSubstr("'image' is '<img>', which is not in added_tokens")));
}

TEST_F(TokenizerFolder, RefusesANormalizerThatTheClassWouldChange) {
  const std::string json = json_of(
      word_level, R"("normalizer":{"type":"BertNormalizer","clean_text":true,)"
                  R"("handle_chinese_chars":true,"strip_accents":null,"lowercase":false},)" +
                      std::string(white_space));
  const std::string names = R"("unk_token":"?","sep_token":null,"pad_token":null,)"
                            R"("cls_token":null,"mask_token":null,"bos_token":null,)"
                            R"("eos_token":null)";
  const hugging_face_options options = {.include_special_tokens = false};
  for (const std::string name : {"Bert", "DistilBert", "Electra", "MPNet"}) {
    std::string config = R"({"tokenizer_class":")";
    config.append(name).append(R"(TokenizerFast",)").append(names);
    EXPECT_THAT([&] { (void)make_folder(json, config + "}", options); },
                ThrowsMessage<format_error>(HasSubstr("do_lower_case is true by default")));
    config += R"(,"do_lower_case":false})";
    EXPECT_NO_THROW((void)make_folder(json, config, options));
  }
}

// A prefix space is refused if the config has no entry for it. Without this entry, release 4 of
// `transformers` uses false. Release 5 uses the value in tokenizer.json for some classes.
TEST_F(TokenizerFolder, RefusesAPrefixSpaceThatTheConfigDoesNotHave) {
  const auto json = [](const char* prefix) {
    return R"({"pre_tokenizer":{"type":"ByteLevel","trim_offsets":true,"use_regex":true,)"
           R"("add_prefix_space":)" +
           std::string(prefix) + R"(},"model":{"type":"WordLevel","unk_token":"?",)" +
           R"("vocab":{"?":0,"a":1}}})";
  };
  EXPECT_NO_THROW((void)make_folder(json("false"), "{}"));
  EXPECT_NO_THROW((void)make_folder(json("true"), R"({"add_prefix_space":true})"));
  EXPECT_THAT([&] { (void)make_folder(json("true"), "{}"); },
              ThrowsMessage<format_error>(HasSubstr("add_prefix_space is false by default")));
}

}  // namespace
}  // namespace millrace::tokenizer::detail
