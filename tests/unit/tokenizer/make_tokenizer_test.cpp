// SPDX-License-Identifier: Apache-2.0
#include <millrace/tokenizer/tokenizer.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include <millrace/error.hpp>

#include "support/rank_vocabulary.hpp"
#include "support/small_vocabulary.hpp"

namespace millrace::tokenizer {
namespace {

std::string config_fault(const tokenizer_options& options) {
  try {
    (void)make_tokenizer(options);
    return "accepted";
  } catch (const config_error& e) {
    return e.what();
  }
}

TEST(MakeTokenizer, BuildsEachType) {
  EXPECT_EQ(make_tokenizer({})->vocab_size(), 512);

  tokenizer_options null;
  null.type = "NullTokenizer";
  null.vocab_size = 100;
  EXPECT_EQ(make_tokenizer(null)->vocab_size(), 100);

  const test::small_vocabulary files(test::small_vocabulary::bytes_and({"ab"}), "a b\n");
  EXPECT_EQ(make_tokenizer(files.options())->vocab_size(), 258);

  const test::temp_folder folder;
  test::write_text(folder / "ranks", test::rank_vocabulary({"ab"}).rank_file());
  tokenizer_options ranks;
  ranks.type = "TikTokenizer";
  ranks.model = folder / "ranks";
  ranks.tiktoken_pattern = "r50k";
  ranks.special_tokens = {"<s>"};
  EXPECT_EQ(make_tokenizer(ranks)->vocab_size(), 258);
}

TEST(MakeTokenizer, NamesTheTypesThatThereAre) {
  tokenizer_options options;
  options.type = "gpt3";
  EXPECT_EQ(config_fault(options),
            "--tokenizer-type 'gpt3': unknown, expected one of ByteLevelTokenizer, NullTokenizer, "
            "GPT2BPETokenizer, SentencePieceTokenizer, GPTSentencePieceTokenizer, Llama2Tokenizer, "
            "HuggingFaceTokenizer, BertWordPieceLowerCase, BertWordPieceCase, TikTokenizer");
}

TEST(MakeTokenizer, NamesTheTypeThatWasMeant) {
  tokenizer_options options;
  for (const char* typed : {"gpt2", "gpt2bpetokenizer", "GPT2-BPE-Tokenizer", "GPT2BPE"}) {
    options.type = typed;
    EXPECT_EQ(config_fault(options), "--tokenizer-type '" + std::string(typed) +
                                         "': unknown, did you mean GPT2BPETokenizer?");
  }
}

TEST(MakeTokenizer, SaysWhyItDoesNotBuildSomeOfMegatronsTypes) {
  for (const char* type : {"MultimodalTokenizer", "NullMultimodalTokenizer", "SFTTokenizer"}) {
    tokenizer_options options;
    options.type = type;
    EXPECT_THAT(config_fault(options),
                testing::StartsWith("--tokenizer-type " + options.type + ": "));
    EXPECT_THAT(config_fault(options), testing::HasSubstr("not "));
  }
}

TEST(MakeTokenizer, NamesTheOptionThatIsMissing) {
  tokenizer_options options;
  options.type = "NullTokenizer";
  EXPECT_EQ(config_fault(options), "--tokenizer-type NullTokenizer requires --vocab-size");
  options.type = "GPT2BPETokenizer";
  EXPECT_EQ(config_fault(options), "--tokenizer-type GPT2BPETokenizer requires --vocab-file");
  options.vocab_file = "vocab.json";
  EXPECT_EQ(config_fault(options), "--tokenizer-type GPT2BPETokenizer requires --merge-file");
}

// An option that the type does not take is refused. If it were ignored, the user would not get the
// expected vocabulary.
TEST(MakeTokenizer, RefusesOptionsThatTheTypeDoesNotTake) {
  const std::string prefix = "--tokenizer-type ByteLevelTokenizer does not take ";
  tokenizer_options options;
  options.model = "m";
  EXPECT_EQ(config_fault(options), prefix + "--tokenizer-model");
  options = {};
  options.vocab_file = "v";
  EXPECT_EQ(config_fault(options), prefix + "--vocab-file");
  options = {};
  options.merge_file = "m";
  EXPECT_EQ(config_fault(options), prefix + "--merge-file");
  options = {};
  options.vocab_size = 512;
  EXPECT_EQ(config_fault(options), prefix + "--vocab-size");
  const auto expect_refused = [&](const std::string& flag, const auto& change) {
    tokenizer_options changed;
    change(changed);
    EXPECT_EQ(config_fault(changed), prefix + flag);
  };
  expect_refused("--tokenizer-special-tokens", [](auto& o) { o.special_tokens = {"<x>"}; });
  expect_refused("--special-tokens-in-text",
                 [](auto& o) { o.in_text = special_tokens_in_text::error; });
  expect_refused("--eod-token", [](auto& o) { o.eod_token = "<x>"; });
  expect_refused("--tiktoken-pattern", [](auto& o) { o.tiktoken_pattern = "v1"; });
  expect_refused("--tiktoken-num-special-tokens",
                 [](auto& o) { o.tiktoken_num_special_tokens = 1000; });
  expect_refused("--tokenizer-sentencepiece-legacy",
                 [](auto& o) { o.sentencepiece_legacy = true; });
  expect_refused("--no-tokenizer-sentencepiece-ignore-extra-whitespaces",
                 [](auto& o) { o.sentencepiece_ignore_extra_whitespaces = false; });
  expect_refused("--tokenizer-hf-no-include-special-tokens",
                 [](auto& o) { o.hf_include_special_tokens = false; });
  expect_refused("--null-tokenizer-eod-id", [](auto& o) { o.null_eod_id = 3; });
  expect_refused("--null-tokenizer-pad-id", [](auto& o) { o.null_pad_id = 3; });
}

// Special tokens are refused if they would have no effect. Megatron accepts this option but does
// not use it.
TEST(MakeTokenizer, RefusesSpecialTokensWhereTheyWouldNotCount) {
  for (const char* type : {"BertWordPieceCase", "SentencePieceTokenizer"}) {
    tokenizer_options options;
    options.type = type;
    (options.type == "BertWordPieceCase" ? options.vocab_file : options.model) = "file";
    options.special_tokens = {"<x>"};
    EXPECT_EQ(config_fault(options), std::string("--tokenizer-type ") + type +
                                         " does not take --tokenizer-special-tokens");
  }
}

// A program for Megatron's command lines takes out what Megatron does not use. What is then left is
// refused as before, and what the type takes stays.
TEST(MakeTokenizer, LetsAProgramTakeOutWhatMegatronDoesNotUse) {
  tokenizer_options all;
  all.model = "m";
  all.vocab_file = "v";
  all.merge_file = "f";
  all.vocab_size = 1;
  all.special_tokens = {"<x>"};
  all.tiktoken_pattern = "v1";
  all.tiktoken_num_special_tokens = 1;
  all.sentencepiece_legacy = true;
  all.sentencepiece_ignore_extra_whitespaces = false;
  all.hf_include_special_tokens = false;
  all.null_eod_id = 1;
  all.null_pad_id = 1;
  all.vocab_extra_ids = 1;
  all.eod_token = "<x>";
  const std::vector<std::string> tiktoken = {"--tiktoken-pattern", "--tiktoken-num-special-tokens"};
  const std::vector<std::string> sentencepiece = {
      "--tokenizer-sentencepiece-legacy", "--no-tokenizer-sentencepiece-ignore-extra-whitespaces"};
  const std::vector<std::string> hf = {"--tokenizer-hf-no-include-special-tokens"};
  const std::vector<std::string> null = {"--null-tokenizer-eod-id", "--null-tokenizer-pad-id"};
  const std::vector<std::string> extra = {"--vocab-extra-ids"};
  const auto expect = [&](const char* type, const std::vector<std::vector<std::string>>& parts) {
    SCOPED_TRACE(type);
    tokenizer_options options = all;
    options.type = type;
    std::vector<std::string> wanted;
    for (const auto& part : parts) wanted.insert(wanted.end(), part.begin(), part.end());
    EXPECT_THAT(drop_unused_flags(options), testing::UnorderedElementsAreArray(wanted));
    EXPECT_EQ(options.eod_token, "<x>");
    EXPECT_THAT(drop_unused_flags(options), testing::IsEmpty());
  };
  const std::vector<std::string> sizes = {"--vocab-size"};
  const std::vector<std::string> special = {"--tokenizer-special-tokens"};
  const std::vector<std::string> files = {"--vocab-file", "--merge-file"};
  const std::vector<std::string> model = {"--tokenizer-model"};
  expect("ByteLevelTokenizer", {});
  expect("NullTokenizer", {model, files, special, tiktoken, sentencepiece, hf, extra});
  for (const char* type : {"GPT2BPETokenizer", "BertWordPieceLowerCase"}) {
    expect(type, {model, sizes, tiktoken, sentencepiece, null, extra});
  }
  expect("BertWordPieceCase", {model, sizes, special, tiktoken, sentencepiece, null, extra});
  for (const char* type :
       {"SentencePieceTokenizer", "GPTSentencePieceTokenizer", "Llama2Tokenizer"}) {
    expect(type, {files, sizes, special, tiktoken, hf, null, extra});
  }
  expect("HuggingFaceTokenizer", {sizes, tiktoken, sentencepiece, null, extra});
  expect("TikTokenizer", {files, sentencepiece, hf, null, extra});
}

TEST(MakeTokenizer, RefusesExtraIdsWithAWord) {
  tokenizer_options options;
  options.vocab_extra_ids = 100;
  EXPECT_THAT(config_fault(options), testing::StartsWith("--vocab-extra-ids is not supported: "));
}

TEST(MakeTokenizer, HandsTheNullTokenizerItsEndOfADocument) {
  tokenizer_options null;
  null.type = "NullTokenizer";
  null.vocab_size = 100;
  EXPECT_EQ(make_tokenizer(null)->eod(), 99);
  null.null_eod_id = 7;
  null.null_pad_id = -1;
  EXPECT_EQ(make_tokenizer(null)->eod(), 7);
}

TEST(MakeTokenizer, GivesEachTypeAFingerprintOfItsOwn) {
  tokenizer_options null;
  null.type = "NullTokenizer";
  null.vocab_size = 512;
  EXPECT_NE(make_tokenizer({})->fingerprint(), make_tokenizer(null)->fingerprint());
}

}  // namespace
}  // namespace millrace::tokenizer
