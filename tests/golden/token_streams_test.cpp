// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <millrace/tokenizer/tokenizer.hpp>

#include "support/corpus.hpp"
#include "support/encode.hpp"
#include "support/paths.hpp"

// Compares ids with those of reference tokenizers. The tests create tokenizers as preprocess_data
// does for the same flags. Most tests need the shared folder, because this project may not
// distribute real vocabularies.
namespace millrace::test {
namespace {

using tokenizer::special_tokens_in_text;
using tokenizer::tokenizer_options;
using ids_list = std::vector<std::int32_t>;

/// A real vocabulary, and the flags that select it.
struct vocabulary {
  std::string_view name;   ///< key in golden/tokenizers.json
  std::string_view type;   ///< --tokenizer-type
  std::string_view model;  ///< --tokenizer-model, relative to tokenizers/
  std::string_view pattern = {};
  std::int64_t size = 0;
  std::int32_t eod = -1;

  tokenizer_options options(const std::filesystem::path& shared) const {
    tokenizer_options options;
    options.type = type;
    options.model = shared / "tokenizers" / model;
    options.tiktoken_pattern = pattern;
    options.hf_include_special_tokens = options.type != "HuggingFaceTokenizer";
    return options;
  }
};

void PrintTo(const vocabulary& which, std::ostream* out) {
  *out << which.name;
}

constexpr vocabulary cl100k = {"cl100k", "TikTokenizer", "cl100k_base/cl100k_base.tiktoken",
                               "cl100k", 100277,         100257};
constexpr vocabulary o200k = {"o200k", "TikTokenizer", "o200k_base/o200k_base.tiktoken",
                              "o200k", 200019,         199999};
constexpr vocabulary llama3 = {"llama3", "TikTokenizer", "llama3/llama3.tiktoken",
                               "llama3", 128256,         128001};
constexpr vocabulary tekken = {"tekken", "TikTokenizer", "tekken/tekken.vocab.json", "", 131072, 2};

// Tests the vocabularies of this project. These cases run everywhere.
void expect_cases(const tokenizer_options& options, std::string_view file) {
  const auto tokenizer = make_tokenizer(options);
  const auto encoder = tokenizer->make_encoder();
  simdjson::dom::parser parser;
  std::istringstream lines(read_text(golden("tiny_ranks") / file));
  std::size_t cases = 0;
  for (std::string line; std::getline(lines, line); ++cases) {
    SCOPED_TRACE(line.substr(0, 200));
    const simdjson::dom::element record = parser.parse(line);
    std::vector<std::int64_t> expected;
    for (const std::int64_t id : simdjson::dom::array(record["ids"])) expected.push_back(id);
    const auto ids = encode(*encoder, std::string_view(record["text"]));
    EXPECT_TRUE(std::ranges::equal(ids, expected)) << testing::PrintToString(ids);
    EXPECT_EQ(tokenizer->decode(expected), std::string_view(record["text"]));
  }
  EXPECT_GT(cases, 100U);
}

TEST(TinyRanks, GiveTheIdsOfTiktoken) {
  tokenizer_options options;
  options.type = "TikTokenizer";
  options.model = golden("tiny_ranks/tiny.tiktoken");
  options.tiktoken_pattern = "r50k";
  options.special_tokens = {"<|endoftext|>"};
  expect_cases(options, "cases_r50k.jsonl");
  options.in_text = special_tokens_in_text::allow;
  expect_cases(options, "cases_r50k_special.jsonl");
}

TEST(TinyRanks, GiveTheIdsOfMegatron) {
  tokenizer_options options;
  options.type = "TikTokenizer";
  options.model = golden("tiny_ranks/tiny.vocab.json");
  options.vocab_size = 623;
  options.tiktoken_num_special_tokens = 20;
  expect_cases(options, "cases_v2.jsonl");
  options.tiktoken_pattern = "v1";
  expect_cases(options, "cases_v1.jsonl");
}

class TokenStreams : public testing::Test {
 protected:
  void SetUp() override {
    if (shared_.empty()) GTEST_SKIP() << no_shared_folder;
  }

  const std::filesystem::path shared_ = shared_folder();
};

class TokenStreamOfCorpus
    : public TokenStreams,
      public testing::WithParamInterface<std::tuple<vocabulary, const char*>> {};

TEST_P(TokenStreamOfCorpus, IsThatOfTheReference) {
  const auto [vocabulary, corpus] = GetParam();
  const auto tokenizer = make_tokenizer(vocabulary.options(shared_));
  EXPECT_EQ(tokenizer->vocab_size(), vocabulary.size);
  EXPECT_EQ(tokenizer->eod().value_or(-1), vocabulary.eod);
  EXPECT_EQ(encode_corpus(*tokenizer, shared_ / "corpora" / (std::string(corpus) + ".jsonl.gz")),
            expected_stream(shared_, vocabulary.name, corpus));
}

std::string name_of(const testing::TestParamInfo<std::tuple<vocabulary, const char*>>& each) {
  return std::string(std::get<0>(each.param).name) + "_" + std::get<1>(each.param);
}

INSTANTIATE_TEST_SUITE_P(OfRanks, TokenStreamOfCorpus,
                         testing::Combine(testing::Values(cl100k, o200k, llama3),
                                          testing::Values("en_books", "code", "multi_udhr",
                                                          "multi_bible", "ja_escaped",
                                                          "stress_utf8")),
                         name_of);

constexpr vocabulary hugging_face(std::string_view name, std::string_view model, std::int64_t size,
                                  std::int32_t eod = -1) {
  return {name, "HuggingFaceTokenizer", model, "", size, eod};
}

// One corpus per tokenizer is enough here, because other golden tests cover these tokenizers in
// detail.
INSTANTIATE_TEST_SUITE_P(
    OfTokenizerJson, TokenStreamOfCorpus,
    testing::Combine(
        testing::Values(hugging_face("gpt2", "gpt2/tokenizer.json", 50257),
                        hugging_face("gpt_neox", "gpt_neox/tokenizer.json", 50277),
                        hugging_face("llama2_hf", "llama2/tokenizer.json", 32000),
                        hugging_face("bert_base_cased", "bert_base_cased/tokenizer.json", 28996),
                        hugging_face("llama3_hf", "llama3/tokenizer.json", 128256),
                        hugging_face("o200k_hf", "o200k_base/tokenizer.json", 200000),
                        hugging_face("qwen2_hf", "qwen2/tokenizer.json", 151646),
                        hugging_face("deepseek_v3_hf", "deepseek_v3/tokenizer.json", 128000)),
        testing::Values("multi_udhr")),
    name_of);

constexpr vocabulary sentencepiece(std::string_view name, std::string_view type,
                                   std::string_view model, std::int64_t size, std::int32_t eod) {
  return {name, type, model, "", size, eod};
}

INSTANTIATE_TEST_SUITE_P(
    OfSentencePiece, TokenStreamOfCorpus,
    testing::Combine(testing::Values(sentencepiece("llama2_sp", "Llama2Tokenizer",
                                                   "llama2/tokenizer.model", 32000, 2),
                                     sentencepiece("mistral01_sp", "SentencePieceTokenizer",
                                                   "mistral01/tokenizer.model", 32000, 2),
                                     sentencepiece("nai_t5", "GPTSentencePieceTokenizer",
                                                   "nai_t5/tokenizer.model", 32100, 1),
                                     sentencepiece("sp_test", "SentencePieceTokenizer",
                                                   "sp_test/test_model.model", 1000, 2),
                                     sentencepiece("sp_test_ja", "SentencePieceTokenizer",
                                                   "sp_test/test_ja_model.model", 8000, 2)),
                     testing::Values("multi_udhr")),
    name_of);

/// Small cases: texts and the ids of the reference.
struct cases {
  std::vector<std::string> texts;
  std::vector<ids_list> ids;
};

ids_list numbers_in(std::string text) {  // all other characters separate numbers
  std::ranges::replace_if(
      text, [](char c) { return c < '0' || c > '9'; }, ' ');
  ids_list ids;
  std::istringstream in(text);
  for (std::int32_t id = 0; in >> id;) ids.push_back(id);
  return ids;
}

std::vector<std::string> split(const std::string& text, std::string_view separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + separator.size();
  }
  if (!parts.empty() && parts.back().empty()) parts.pop_back();
  return parts;
}

// In these cases, "\n" means a newline. The test program of the reference turned "\s" at the end of
// a line into a space.
cases kitoken_cases(const std::filesystem::path& shared, const std::string& small,
                    const std::string& whole) {
  const auto folder = shared / "golden/tokenizer_cases/kitoken";
  cases all;
  for (std::string& text : split(read_text(folder / "small_input.txt"), "\n")) {
    for (std::size_t at = 0; (at = text.find("\\n", at)) != std::string::npos;) {
      text.replace(at, 2, "\n");
    }
    if (text.ends_with("\\s")) text.replace(text.size() - 2, 2, " ");
    all.texts.push_back(std::move(text));
  }
  for (const std::string& line : split(read_text(folder / small), "\n")) {
    all.ids.push_back(numbers_in(line));
  }
  all.texts.push_back(read_text(folder / "utf8_input.txt"));
  all.ids.push_back(numbers_in(read_text(folder / whole)));
  return all;
}

cases llamacpp_cases(const std::filesystem::path& shared, const std::string& name) {
  const auto folder = shared / "golden/tokenizer_cases/llamacpp";
  cases all;
  all.texts = split(read_text(folder / (name + ".inp")), "\n__ggml_vocab_test__\n");
  for (const std::string& line : split(read_text(folder / (name + ".out")), "\n")) {
    all.ids.push_back(numbers_in(line));
  }
  return all;
}

void expect_ids(const tokenizer_options& options, const cases& all) {
  const auto tokenizer = make_tokenizer(options);
  const auto encoder = tokenizer->make_encoder();
  ASSERT_EQ(all.texts.size(), all.ids.size());
  ASSERT_GT(all.texts.size(), 10U);
  for (std::size_t i = 0; i < all.texts.size(); ++i) {
    SCOPED_TRACE(all.texts[i].substr(0, 100));
    EXPECT_EQ(encode(*encoder, all.texts[i]), all.ids[i]);
    const std::vector<std::int64_t> wide(all.ids[i].begin(), all.ids[i].end());
    EXPECT_EQ(tokenizer->decode(wide), all.texts[i]);
  }
}

TEST_F(TokenStreams, OfKitokenCasesAreThoseOfTheReference) {
  for (const vocabulary& each : {cl100k, o200k}) {
    tokenizer_options options = each.options(shared_);
    options.in_text = special_tokens_in_text::allow;
    const std::string name = std::string(each.name) + "_base.txt";
    expect_ids(options, kitoken_cases(shared_, "tiktoken_small_tokens_" + name,
                                      "tiktoken_utf8_tokens_" + name));
  }
}

// In Mistral's and Megatron's tokenizers, 1000 special tokens come first, so an id is the rank plus
// 1000. Mistral encodes special tokens in texts as normal text.
TEST_F(TokenStreams, OfTekkenCasesAreThoseOfMistral) {
  tokenizer_options options = tekken.options(shared_);
  options.in_text = special_tokens_in_text::encode_as_text;
  expect_ids(options, kitoken_cases(shared_, "tekken_small_tokens_mistral2410.txt",
                                    "tekken_utf8_tokens_mistral2410.txt"));
  expect_ids(tekken.options(shared_), llamacpp_cases(shared_, "pixtral"));
}

TEST_F(TokenStreams, OfLlamaCppCasesAreThoseOfTheReference) {
  expect_ids(llama3.options(shared_), llamacpp_cases(shared_, "llama-bpe"));
  expect_ids(o200k.options(shared_), llamacpp_cases(shared_, "gpt-4o"));
}

}  // namespace
}  // namespace millrace::test
