// SPDX-License-Identifier: Apache-2.0
#include "record/fim_encoder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/error.hpp>

#include "support/naive_fim.hpp"
#include "support/paths.hpp"
#include "support/seed.hpp"
#include "support/tokenizers.hpp"

namespace millrace::preprocess {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

fim_options of_bytes(double rate, double spm_rate = 0.5) {
  return {.rate = rate,
          .spm_rate = spm_rate,
          .prefix_token = "P",
          .middle_token = "M",
          .suffix_token = "S"};
}

// Permutes texts with the byte tokenizer, so that ids are characters of a text.
class FimEncoder : public testing::Test {
 protected:
  std::string permuted(const fim_options& options, const std::vector<std::string>& texts,
                       std::uint64_t begin = 0) {
    const std::vector<input_file> inputs = {{.path = "a.jsonl"}};
    const fim_plan plan(options, *tokenizer_, inputs);
    const auto encoder = tokenizer_->make_encoder();
    fim_encoder fim(plan, *encoder);
    // Other records beside it must not change its draws.
    const std::array<std::uint64_t, 3> seeds = {plan.seed_of(0, begin + 1), plan.seed_of(0, begin),
                                                plan.seed_of(0, begin + 2)};
    if (begin % 2 == 0) fim.prepare(seeds);
    for (int key = 0; key < 2; ++key) fim.begin(seeds[1]);
    std::string all;
    for (const std::string& text : texts) {
      tokenizer::id_buffer ids;
      EXPECT_FALSE(fim.encode(text, ids));
      for (const std::int32_t id : ids.ids()) all += static_cast<char>(id);
      all += '\n';
    }
    split_tokens_ = fim.split_tokens_found();
    return all;
  }

  std::unique_ptr<tokenizer::tokenizer> tokenizer_ = test::byte_tokenizer();
  std::int64_t split_tokens_ = 0;
};

// Computed in Python from formats/spec/meta.md.
TEST_F(FimEncoder, HasTheSeedsOfTheSpecification) {
  const std::vector<input_file> inputs = {
      {.path = "a.jsonl"}, {.path = "web/b.jsonl.zst"}, {.path = "-"}};
  const auto seed = [&](std::uint64_t of_run, std::size_t input, std::uint64_t begin) {
    fim_options options = of_bytes(1);
    options.seed = of_run;
    return fim_plan(options, *tokenizer_, inputs).seed_of(input, begin);
  };
  EXPECT_EQ(seed(0, 0, 0), 0xc9ba2b1a626a9888U);
  EXPECT_EQ(seed(0, 0, 23), 0xfb8771cbf313d0d1U);
  EXPECT_EQ(seed(1, 0, 0), 0xfb3e6f7af8039a9bU);
  EXPECT_EQ(seed(~std::uint64_t{0}, 1, std::uint64_t{1} << 40), 0x7fa833169cfca959U);
  EXPECT_EQ(seed(7, 2, 3), 0x2612865fba22594cU) << "- has the name stdin";
}

// The order of the draws and of the parts. For these seeds and bytes, numpy 2.4.6 draws
//
//   random = numpy.random.RandomState([seed & 0xffffffff, seed >> 32])
//   random.binomial(1, 0.5), random.randint(0, 101, 2), random.binomial(1, 0.5)
//
// 1, [4, 39], 1 for (0, 23); 1, [90, 73], 0 for (1, 0); and begins with 0 for (0, 0).
TEST_F(FimEncoder, CutsWhereNumpyDraws) {
  std::string text;
  while (text.size() < 100) text += static_cast<char>('!' + text.size() % 90);
  fim_options options = of_bytes(0.5);
  EXPECT_EQ(permuted(options, {text}, 0), text + "\n");
  EXPECT_EQ(permuted(options, {text}, 23),
            "PS" + text.substr(39) + "M" + text.substr(0, 39) + "\n");
  options.seed = 1;
  EXPECT_EQ(permuted(options, {text}, 0),
            "P" + text.substr(0, 73) + "S" + text.substr(90) + "M" + text.substr(73, 17) + "\n");
}

TEST_F(FimEncoder, PermutesAllOrNothingAtTheLimitsOfARate) {
  for (std::uint64_t begin = 0; begin < 200; ++begin) {
    ASSERT_EQ(permuted(of_bytes(0), {"some text"}, begin), "some text\n");
    const std::string spm = permuted(of_bytes(1, 1), {"some text"}, begin);
    ASSERT_TRUE(spm.starts_with("PS")) << spm;
    const std::string psm = permuted(of_bytes(1, 0), {"some text"}, begin);
    ASSERT_EQ(psm.size(), spm.size());
    ASSERT_LT(psm.find('S'), psm.find('M')) << psm;
  }
}

// A text of 1,000 characters rarely has an empty prefix, so "PS" means that the suffix comes first.
TEST_F(FimEncoder, PermutesTheWantedPartOfTheTexts) {
  int permuted_texts = 0;
  int spm = 0;
  constexpr int records = 10'000;
  for (std::uint64_t begin = 0; begin < records; ++begin) {
    const std::string text = permuted(of_bytes(0.6, 0.3), {std::string(1000, 'x')}, 64 * begin);
    permuted_texts += text.starts_with('P') ? 1 : 0;
    spm += text.starts_with("PS") ? 1 : 0;
  }
  EXPECT_NEAR(permuted_texts, 0.6 * records, 5 * std::sqrt(0.24 * records));
  EXPECT_NEAR(spm, 0.3 * permuted_texts, 5 * std::sqrt(0.21 * permuted_texts) + 0.004 * records);
}

// An empty text stays empty and takes no draws, so the draws of the next text are the same.
TEST_F(FimEncoder, LeavesEmptyTextsAlone) {
  const std::string one = permuted(of_bytes(1), {"abcdefgh", "ijklmnop"});
  EXPECT_EQ(permuted(of_bytes(1), {"", "abcdefgh", "", "ijklmnop"}),
            "\n" + one.substr(0, 12) + "\n" + one.substr(12));
}

TEST_F(FimEncoder, LeavesTextsWithTheUnwantedPrefixAlone) {
  fim_options options = of_bytes(1);
  options.no_prefix = "#!";
  EXPECT_EQ(permuted(options, {"#!text"}), "#!text\n");
  EXPECT_NE(permuted(options, {" #!text"}), " #!text\n");
}

// An empty fragment vanishes with the token after it. The last one is permuted even if it is empty.
TEST_F(FimEncoder, PermutesTheFragmentsBetweenSplitTokens) {
  fim_options options = of_bytes(1);
  options.split_token = "|";
  options.fragment_rate = 0;
  EXPECT_EQ(permuted(options, {"|ab||cd|e"}), "ab|cd|e\n");
  EXPECT_EQ(split_tokens_, 2);
  EXPECT_EQ(permuted(options, {"|"}), "\n");
  options.fragment_rate = 1;
  EXPECT_EQ(permuted(options, {"|"}).size(), 4U);
  const std::string fragments = permuted(options, {"ab||cd|"});
  EXPECT_EQ(fragments.size(), 2 * 6 + 3 + 1U) << fragments;
  options.rate = 0;
  EXPECT_EQ(permuted(options, {"|ab||cd|e"}), "|ab||cd|e\n");
  EXPECT_EQ(split_tokens_, 0);
}

TEST_F(FimEncoder, EqualsTheNaiveModel) {
  std::mt19937_64 random(test::seed(81));
  const std::vector<std::string> parts = {"a",      "b",          "g",      "\u00e9",
                                          "\u6f22", "\U0001F469", "e\u0301"};
  for (int round = 0; round < 2000; ++round) {
    const fim_options options = test::random_fim(random);
    const std::uint64_t begin = random() % 1'000'000;
    test::naive_fim naive(options, "a.jsonl", begin);
    std::vector<std::string> texts;
    std::string wanted;
    for (std::size_t n = random() % 4; n > 0; --n) {
      std::string text;
      for (std::size_t size = random() % 4 == 0 ? random() % 2000 : random() % 9; size > 0;
           --size) {
        text += parts[random() % parts.size()];
      }
      wanted += naive.permuted(text) + "\n";
      texts.push_back(text);
    }
    ASSERT_EQ(permuted(options, texts, begin), wanted) << "round " << round;
  }
}

TEST_F(FimEncoder, RefusesWhatIsNoToken) {
  const auto refusal = [&](auto&& change, const char* what) {
    fim_options options = of_bytes(1);
    change(options);
    EXPECT_THAT([&] { fim_plan(options, *tokenizer_, {}); },
                ThrowsMessage<config_error>(HasSubstr(what)));
  };
  refusal([](auto& o) { o.prefix_token = "<fim_prefix>"; },
          "'<fim_prefix>' is not a token of this tokenizer; pass one of its tokens with "
          "--fim-prefix-token");
  refusal([](auto& o) { o.middle_token = "mid"; }, "--fim-middle-token");
  refusal([](auto& o) { o.suffix_token = "suf"; }, "--fim-suffix-token");
  refusal([](auto& o) { o.split_token = "split"; }, "--fim-split-sample");
  refusal([](auto& o) { o.suffix_token = "M"; }, "must be different tokens");
  refusal([](auto& o) { o.split_token = "P"; }, "must be different tokens");
  refusal([](auto& o) { o.prefix_token = "\uFFFD"; }, "is the text of two tokens, 256 and 257");
}

// The ids of a template are once around a text, permuted or not.
TEST_F(FimEncoder, PutsTheTemplateAroundWholeTexts) {
  const test::temp_folder folder;
  test::write_text(folder / "tokenizer.json",
                   R"({"post_processor":{"type":"BertProcessing","cls":["^",7],"sep":["$",8]},
                       "model":{"type":"BPE","vocab":{"a":0,"b":1,"|":2,"P":3,"M":4,"S":5,"^":7,"$":8,"?":6},
                                "merges":[]}})");
  tokenizer::tokenizer_options files;
  files.type = "HuggingFaceTokenizer";
  files.model = folder / "tokenizer.json";
  const auto made = tokenizer::make_tokenizer(files);
  fim_options options = of_bytes(0.5);
  const std::vector<input_file> inputs = {{.path = "a.jsonl"}};
  int permuted_texts = 0;
  for (std::uint64_t begin = 0; begin < 100; ++begin) {
    options.split_token = begin % 2 == 0 ? "|" : "";
    options.fragment_rate = 0.5;
    const fim_plan plan(options, *made, inputs);
    const auto encoder = made->make_encoder();
    fim_encoder fim(plan, *encoder);
    fim.begin(plan.seed_of(0, begin));
    tokenizer::id_buffer ids;
    ASSERT_FALSE(fim.encode("ab|ba", ids));
    const std::vector<std::int32_t> found(ids.ids().begin(), ids.ids().end());
    ASSERT_EQ(found.front(), 7);
    ASSERT_EQ(found.back(), 8);
    ASSERT_EQ(std::ranges::count(found, 7), 1);
    ASSERT_EQ(std::ranges::count(found, 8), 1);
    permuted_texts += found.size() > 7 ? 1 : 0;
  }
  EXPECT_GT(permuted_texts, 20);
  EXPECT_LT(permuted_texts, 80);
}

TEST(FimCharacters, AreCodePoints) {
  std::string text;
  std::vector<std::size_t> begins;
  for (int i = 0; i < 700; ++i) {
    begins.push_back(text.size());
    text += std::vector<std::string>{"x", "\u00e9", "\u6f22",
                                     "\U0001F469"}[static_cast<unsigned>(i * i) % 4];
  }
  ASSERT_EQ(character_count(text), begins.size());
  begins.push_back(text.size());
  for (std::size_t i = 0; i < begins.size(); ++i) {
    ASSERT_EQ(byte_of_character(text, 700, i), begins[i]) << i;
  }
  EXPECT_EQ(character_count(""), 0U);
  EXPECT_EQ(byte_of_character("", 0, 0), 0U);
  EXPECT_EQ(byte_of_character("abc", 3, 2), 2U);
  EXPECT_EQ(byte_of_character(std::string(256, 'x') + "\u00e9x", 258, 257), 258U);
}

}  // namespace
}  // namespace millrace::preprocess
