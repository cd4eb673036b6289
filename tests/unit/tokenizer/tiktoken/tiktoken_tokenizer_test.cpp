// SPDX-License-Identifier: Apache-2.0
#include "tiktoken/tiktoken_tokenizer.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include <millrace/error.hpp>

#include "support/encode.hpp"
#include "support/paths.hpp"
#include "support/rank_vocabulary.hpp"

namespace millrace::tokenizer::detail {
namespace {

using test::encode;
using test::rank_vocabulary;
using ids_list = std::vector<std::int32_t>;

/// Writes the file of a vocabulary and returns its options, which a test may change.
class TiktokenTokenizer : public testing::Test {
 protected:
  tokenizer_options rank_options(const std::vector<std::string>& more) {
    test::write_text(folder_ / "ranks.tiktoken", rank_vocabulary(more).rank_file());
    tokenizer_options options;
    options.type = "TikTokenizer";
    options.model = folder_ / "ranks.tiktoken";
    options.tiktoken_pattern = "r50k";
    options.special_tokens = {"<|endoftext|>", "<|x|>"};
    return options;
  }
  tokenizer_options megatron_options(const std::vector<std::string>& more) {
    test::write_text(folder_ / "v.vocab.json", rank_vocabulary(more).megatron_json());
    tokenizer_options options;
    options.type = "TikTokenizer";
    options.model = folder_ / "v.vocab.json";
    options.tiktoken_num_special_tokens = 10;
    options.vocab_size = static_cast<std::int64_t>(266 + more.size());
    return options;
  }

  test::temp_folder folder_;
};

std::string fault_of(const tokenizer_options& options) {
  try {
    (void)make_tiktoken_tokenizer(options);
    return "accepted";
  } catch (const config_error& e) {
    return e.what();
  } catch (const format_error& e) {
    return e.what();
  }
}

TEST_F(TiktokenTokenizer, OfRanksTakesSpecialTokensForText) {
  const auto tokenizer = make_tiktoken_tokenizer(rank_options({"ab", " ab"}));
  EXPECT_EQ(tokenizer->vocab_size(), 260);
  EXPECT_EQ(encode(*tokenizer, "ab ab<|x|>"), (ids_list{256, 257, '<', '|', 'x', '|', '>'}));
  EXPECT_EQ(tokenizer->decode(std::vector<std::int64_t>{256, 257, 259, 260, 'c'}),
            "ab ab<|x|>\xEF\xBF\xBD"
            "c");
  EXPECT_EQ(tokenizer->eod(), std::nullopt);
}

TEST_F(TiktokenTokenizer, LetsSpecialTokensThroughWhereItIsTold) {
  auto options = rank_options({"ab"});
  options.in_text = special_tokens_in_text::allow;
  const auto tokenizer = make_tiktoken_tokenizer(options);
  const auto encoder = tokenizer->make_encoder();
  EXPECT_EQ(encode(*encoder, "<|x|>ab<|endoftext|><|y|>"),
            (ids_list{258, 256, 257, '<', '|', 'y', '|', '>'}));
  EXPECT_EQ(encoder->special_tokens_found(), 2);
}

TEST_F(TiktokenTokenizer, RefusesTextsWithSpecialTokensWhereItIsTold) {
  auto options = rank_options({});
  options.in_text = special_tokens_in_text::error;
  const auto tokenizer = make_tiktoken_tokenizer(options);
  id_buffer ids;
  const auto fault = tokenizer->make_encoder()->encode("ab <|x|>", ids);
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->offset_bytes, 3U);
  EXPECT_EQ(fault->what, "the special token '<|x|>' in the text");
}

// A whole pretoken that is a token becomes that token, even if no merges produce it.
TEST_F(TiktokenTokenizer, LooksWholePretokensUpFirst) {
  const auto tokenizer = make_tiktoken_tokenizer(rank_options({"bc", "abcd"}));
  EXPECT_EQ(encode(*tokenizer, "abcd"), (ids_list{257}));
  EXPECT_EQ(encode(*tokenizer, "abcde"), (ids_list{'a', 256, 'd', 'e'}));
}

TEST_F(TiktokenTokenizer, OfMegatronLetsSpecialTokensThrough) {
  const auto tokenizer = make_tiktoken_tokenizer(megatron_options({"ab"}));
  EXPECT_EQ(tokenizer->vocab_size(), 267);
  EXPECT_EQ(tokenizer->eod(), 2);
  EXPECT_EQ(encode(*tokenizer, "</s>ab<SPECIAL_9><SPECIAL_10>").front(), 2);
  EXPECT_EQ(encode(*tokenizer, "</s>ab<SPECIAL_9>"), (ids_list{2, 266, 9}));
  EXPECT_EQ(encode(*tokenizer, "ba"), (ids_list{10 + 'b', 10 + 'a'}));
}

TEST_F(TiktokenTokenizer, OfMegatronTakesSpecialTokensForTextWhereItIsTold) {
  auto options = megatron_options({"</"});
  options.in_text = special_tokens_in_text::encode_as_text;
  const auto tokenizer = make_tiktoken_tokenizer(options);
  const auto encoder = tokenizer->make_encoder();
  EXPECT_EQ(encode(*encoder, "</s>"), (ids_list{266, 10 + 's', 10 + '>'}));
  EXPECT_EQ(encoder->special_tokens_found(), 0);
  EXPECT_EQ(tokenizer->eod(), 2);
}

TEST_F(TiktokenTokenizer, TakesAnyTokenForTheEndOfADocument) {
  auto options = rank_options({"\n\n"});
  options.eod_token = "<|endoftext|>";
  EXPECT_EQ(make_tiktoken_tokenizer(options)->eod(), 257);
  options.eod_token = "\n\n";
  EXPECT_EQ(make_tiktoken_tokenizer(options)->eod(), 256);
  options.eod_token = "</s>";
  EXPECT_EQ(fault_of(options), "--eod-token '</s>' is not the text of any token");
  auto megatron = megatron_options({});
  megatron.eod_token = "<pad>";
  EXPECT_EQ(make_tiktoken_tokenizer(megatron)->eod(), 4);
}

TEST_F(TiktokenTokenizer, SaysWhichOptionsDoNotGoWithRanks) {
  auto options = rank_options({});
  options.tiktoken_pattern.clear();
  EXPECT_TRUE(
      fault_of(options).starts_with("--tiktoken-pattern is required for a .tiktoken file: the name "
                                    "of its vocabulary, one of r50k, "))
      << fault_of(options);
  options.tiktoken_pattern = "r50";
  EXPECT_TRUE(
      fault_of(options).starts_with("--tiktoken-pattern 'r50': unknown, expected one of r50k, "));
  options = rank_options({});
  options.vocab_size = 300;
  EXPECT_EQ(fault_of(options),
            "--tokenizer-type TikTokenizer takes --vocab-size only "
            "with a .vocab.json");
  options = rank_options({});
  options.tiktoken_num_special_tokens = 3;
  EXPECT_EQ(fault_of(options),
            "--tokenizer-type TikTokenizer takes "
            "--tiktoken-num-special-tokens only with a .vocab.json");
}

// If the pattern names a public vocabulary, a file of another vocabulary is refused. With the
// special tokens of the wrong vocabulary, ids would be wrong without notice.
TEST_F(TiktokenTokenizer, RefusesAFileThatIsNotTheOneItsPatternIsNamedAfter) {
  auto options = rank_options({"ab"});
  options.special_tokens.clear();
  const std::string size = std::to_string(rank_vocabulary({"ab"}).rank_file().size());
  EXPECT_EQ(
      fault_of(options),
      options.model.string() +
          ": the file has 257 ranks, expected the 50256 of r50k; for another vocabulary, pass its "
          "special tokens with --tokenizer-special-tokens (at byte " +
          size + ")");
}

TEST_F(TiktokenTokenizer, SaysWhichOptionsMegatronWouldRefuse) {
  auto options = megatron_options({});
  options.tiktoken_pattern = "cl100k";
  EXPECT_EQ(fault_of(options), "--tiktoken-pattern cl100k: a .vocab.json takes v1 or v2");
  options = megatron_options({});
  options.special_tokens = {"<unk>", "<s>", "</s>", "<mask>", "<pad>", "<cls>"};
  EXPECT_EQ(fault_of(options),
            "--tokenizer-special-tokens lacks <sep>, which TikTokenizer requires; add it");
  options.special_tokens.insert(options.special_tokens.end(), {"<sep>", "<s>"});
  EXPECT_EQ(fault_of(options), "special token '<s>' occurs twice");
  options.special_tokens.back() = "<SPECIAL_9>";
  EXPECT_EQ(fault_of(options), "special token '<SPECIAL_9>' occurs twice");
  options = megatron_options({});
  options.tiktoken_num_special_tokens = 6;
  EXPECT_EQ(fault_of(options),
            "--tiktoken-num-special-tokens 6: expected 7..265, at least the tokens of "
            "--tokenizer-special-tokens and fewer than --vocab-size");
  options.tiktoken_num_special_tokens = 266;
  EXPECT_TRUE(fault_of(options).starts_with("--tiktoken-num-special-tokens 266: expected 7..265"));
  options = megatron_options({});
  options.vocab_size = 1;
  EXPECT_EQ(fault_of(options), "--vocab-size 1: expected 2..4194304");
  options = megatron_options({});
  options.vocab_size.reset();
  EXPECT_TRUE(fault_of(options).find("fewer than the 131062 that") != std::string::npos)
      << fault_of(options);
}

TEST_F(TiktokenTokenizer, RefusesTokensOfWhichOneBeginsAnother) {
  auto options = rank_options({});
  options.special_tokens = {"<ab>", "<a", "x", "<ab"};
  EXPECT_EQ(fault_of(options), "accepted");
  options.in_text = special_tokens_in_text::allow;
  EXPECT_EQ(
      fault_of(options),
      "special token '<ab' begins with '<a', which is also a special token, so it is undefined "
      "which one a text contains; pass --special-tokens-in-text encode-as-text");
}

TEST_F(TiktokenTokenizer, RefusesWhatIsNoTokenizer) {
  auto options = rank_options({});
  const std::string path = options.model.string();
  test::write_text(options.model, "");
  EXPECT_EQ(fault_of(options), path +
                                   ": the file has no line, expected tokens in base64 with "
                                   "their ranks (at byte 0)");
  test::write_text(options.model, R"({"model": 1})");
  options.tiktoken_pattern.clear();
  options.special_tokens.clear();
  EXPECT_EQ(fault_of(options), path + ": expected a JSON list of tokens (at byte 0)");
}

TEST_F(TiktokenTokenizer, HasAFingerprintOfEverythingThatDecidesIds) {
  std::vector<tokenizer_options> all;
  const auto with = [&](tokenizer_options options, const auto& change) {
    change(options);
    all.push_back(std::move(options));
  };
  const auto ranks = rank_options({"ab"});
  with(ranks, [](auto&) {});
  with(ranks, [](auto& o) { o.special_tokens = {"<|endoftext|>", "<|y|>"}; });
  with(ranks, [](auto& o) { o.special_tokens = {"<|endoftext|>"}; });
  with(ranks, [](auto& o) { o.in_text = special_tokens_in_text::allow; });
  with(ranks, [](auto& o) { o.in_text = special_tokens_in_text::error; });
  with(ranks, [](auto& o) { o.eod_token = "a"; });
  with(ranks, [](auto& o) { o.tiktoken_pattern = "p50k"; });
  const auto megatron = megatron_options({"ab"});
  with(megatron, [](auto&) {});
  with(megatron, [](auto& o) { o.vocab_size = 266; });
  with(megatron, [](auto& o) { o.tiktoken_num_special_tokens = 11; });
  with(megatron, [](auto& o) { o.tiktoken_pattern = "v1"; });
  std::set<std::string> prints;
  for (const auto& options : all) prints.insert(make_tiktoken_tokenizer(options)->fingerprint());
  EXPECT_EQ(prints.size(), all.size());

  auto same = ranks;
  same.tiktoken_pattern = "r50k_base";
  same.in_text = special_tokens_in_text::encode_as_text;  // this is the default behavior
  EXPECT_EQ(make_tiktoken_tokenizer(same)->fingerprint(),
            make_tiktoken_tokenizer(ranks)->fingerprint());
}

}  // namespace
}  // namespace millrace::tokenizer::detail
