// SPDX-License-Identifier: Apache-2.0
#include "hugging_face/hugging_face_tokenizer.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "support/case_files.hpp"
#include "support/corpus.hpp"
#include "support/encode.hpp"
#include "support/paths.hpp"

namespace millrace::test {
namespace {

using ids_list = std::vector<std::int32_t>;

// Loads a vocabulary from the shared folder. This project may not distribute these vocabularies.
std::unique_ptr<tokenizer::tokenizer> tokenizer_of(const std::filesystem::path& file) {
  return tokenizer::detail::make_hugging_face_tokenizer(file, {.include_special_tokens = false});
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// Encodes 80 MB of books, code and texts in 500 languages, and all Unicode code points, with each
// real tokenizer.
class HuggingFaceTokensOfCorpus
    : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(HuggingFaceTokensOfCorpus, AreThoseOfTheReference) {
  const auto shared = shared_folder();
  if (shared.empty()) GTEST_SKIP() << no_shared_folder;
  const auto& [name, corpus] = GetParam();
  const auto tokenizer = tokenizer_of(shared / golden_file(shared, name));
  EXPECT_EQ(encode_corpus(*tokenizer, shared / "corpora" / (std::string(corpus) + ".jsonl.gz")),
            expected_stream(shared, name, corpus));
}

INSTANTIATE_TEST_SUITE_P(
    All, HuggingFaceTokensOfCorpus,
    testing::Combine(testing::Values("gpt2", "gpt_neox", "llama2_hf", "bert_base_cased",
                                     "llama3_hf", "o200k_hf", "qwen2_hf", "deepseek_v3_hf"),
                     testing::Values("en_books", "code", "multi_udhr", "multi_bible", "ja_escaped",
                                     "stress_utf8")),
    [](const auto& each) {
      return replaced(std::string(std::get<0>(each.param)) + std::get<1>(each.param), "_", "");
    });

// Small test cases from other projects: single lines, and one file with unusual characters.
struct small_cases {
  const char* name;    // folder of the tokenizer
  const char* suffix;  // suffix of the files with the expected ids
};

class HuggingFaceTokensOfSmallCases : public testing::TestWithParam<small_cases> {};

TEST_P(HuggingFaceTokensOfSmallCases, AreThoseOfTheReference) {
  const auto shared = shared_folder();
  if (shared.empty()) GTEST_SKIP() << no_shared_folder;
  const auto tokenizer = tokenizer_of(shared / "tokenizers" / GetParam().name / "tokenizer.json");
  const auto encoder = tokenizer->make_encoder();
  const auto folder = shared / "golden/tokenizer_cases/kitoken";
  const auto texts = lines_of(read_text(folder / "small_input.txt"));
  const std::string suffix = std::string(GetParam().suffix) + ".txt";
  const auto expected = lines_of(read_text(folder / ("tokenizers_small_tokens_" + suffix)));
  ASSERT_EQ(texts.size(), expected.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    SCOPED_TRACE(texts[i]);
    // The test program of the reference turned "\s" at the end of a line into a space before
    // encoding.
    std::string text = replaced(texts[i], "\\n", "\n");
    if (text.ends_with("\\s")) text = text.substr(0, text.size() - 2) + " ";
    EXPECT_EQ(encode(*encoder, text), numbers_in(expected[i]));
  }
  const std::string text = read_text(folder / "utf8_input.txt");
  EXPECT_EQ(encode(*encoder, text),
            numbers_in(read_text(folder / ("tokenizers_utf8_tokens_" + suffix))));
}

INSTANTIATE_TEST_SUITE_P(Kitoken, HuggingFaceTokensOfSmallCases,
                         testing::Values(small_cases{"gpt2", "gpt2"},
                                         small_cases{"gpt_neox", "gpt_neox"},
                                         small_cases{"llama2", "llama2"},
                                         small_cases{"bert_base_cased", "bert_base_cased"},
                                         small_cases{"llama3", "llama32"},
                                         small_cases{"deepseek_v3", "r1"}),
                         [](const auto& each) { return replaced(each.param.name, "_", ""); });

class HuggingFaceTokensOfMarkedCases : public testing::TestWithParam<small_cases> {};

TEST_P(HuggingFaceTokensOfMarkedCases, AreThoseOfTheReference) {
  const auto shared = shared_folder();
  if (shared.empty()) GTEST_SKIP() << no_shared_folder;
  const auto tokenizer = tokenizer_of(shared / "tokenizers" / GetParam().name / "tokenizer.json");
  const auto encoder = tokenizer->make_encoder();
  const auto folder = shared / "golden/tokenizer_cases/llamacpp";
  const std::string name = GetParam().suffix;
  const auto expected = lines_of(read_text(folder / (name + ".out")));
  constexpr std::string_view mark = "\n__ggml_vocab_test__\n";
  std::string rest = read_text(folder / (name + ".inp"));
  std::size_t i = 0;
  for (; !rest.empty() && i < expected.size(); ++i) {
    const std::size_t end = std::min(rest.find(mark), rest.size());
    const std::string text = rest.substr(0, end);
    rest.erase(0, end + mark.size());
    SCOPED_TRACE(text);
    EXPECT_EQ(encode(*encoder, text), numbers_in(expected[i]));
  }
  EXPECT_EQ(i, expected.size());
}

INSTANTIATE_TEST_SUITE_P(LlamaCpp, HuggingFaceTokensOfMarkedCases,
                         testing::Values(small_cases{"gpt2", "gpt-2"},
                                         small_cases{"llama3", "llama-bpe"},
                                         small_cases{"qwen2", "qwen2"},
                                         small_cases{"o200k_base", "gpt-4o"},
                                         small_cases{"llama2", "llama-spm"}),
                         [](const auto& each) { return replaced(each.param.name, "_", ""); });

}  // namespace
}  // namespace millrace::test
