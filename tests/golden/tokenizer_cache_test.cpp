// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include <millrace/tokenizer/tokenizer.hpp>

#include "support/corpus.hpp"
#include "support/paths.hpp"
#include "support/same_tokenizer.hpp"

// Compares real tokenizers with themselves, as --tokenizer-cache stores them.
// token_streams_test.cpp compares them with their references.
namespace millrace::test {
namespace {

namespace fs = std::filesystem;

struct kept_tokenizer {
  std::string_view model;  ///< --tokenizer-model, relative to the folder of real tokenizers
  std::string_view type;
  std::string_view pattern = {};
  bool is_kept = true;  ///< the cache has a file of it
};

void PrintTo(const kept_tokenizer& which, std::ostream* out) {
  *out << which.model;
}

class RealTokenizerCache : public testing::TestWithParam<kept_tokenizer> {
 protected:
  void SetUp() override {
    if (shared_.empty()) GTEST_SKIP() << no_shared_folder;
  }

  const fs::path shared_ = shared_folder();
  const temp_folder parent_{quick_folder()};
};

TEST_P(RealTokenizerCache, GivesTheSameTokenizer) {
  const kept_tokenizer& which = GetParam();
  tokenizer::tokenizer_options options;
  options.type = which.type;
  options.model = shared_ / "tokenizers" / which.model;
  options.tiktoken_pattern = which.pattern;
  if (which.model == "gpt2") {
    options.vocab_file = options.model / "vocab.json";
    options.merge_file = options.model / "merges.txt";
    options.model.clear();
  }
  const auto plain = tokenizer::make_tokenizer(options);
  options.cache = parent_ / "cache";
  (void)tokenizer::make_tokenizer(options);
  ASSERT_NE(fs::is_empty(options.cache), which.is_kept);
  const auto cached = tokenizer::make_tokenizer(options);
  expect_same(*cached, *plain,
              {"", "<|endoftext|> <|begin_of_text|>x</s>", " a  b\n\n", std::string_view("\0", 1)});
  EXPECT_EQ(cached->notes().size(), plain->notes().size() + (which.is_kept ? 0U : 1U));
  for (const char* corpus : {"multi_udhr", "stress_utf8", "code"}) {
    const fs::path path = shared_ / "corpora" / (std::string(corpus) + ".jsonl.gz");
    EXPECT_EQ(encode_corpus(*cached, path), encode_corpus(*plain, path)) << corpus;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, RealTokenizerCache,
    testing::Values(kept_tokenizer{"gpt2", "GPT2BPETokenizer"},
                    kept_tokenizer{"gpt2/tokenizer.json", "HuggingFaceTokenizer"},
                    kept_tokenizer{"gpt_neox/tokenizer.json", "HuggingFaceTokenizer"},
                    kept_tokenizer{"cl100k_base/cl100k_base.tiktoken", "TikTokenizer", "cl100k"},
                    kept_tokenizer{"o200k_base/o200k_base.tiktoken", "TikTokenizer", "o200k"},
                    kept_tokenizer{"o200k_base/tokenizer.json", "HuggingFaceTokenizer"},
                    kept_tokenizer{"llama3/llama3.tiktoken", "TikTokenizer", "llama3"},
                    kept_tokenizer{"llama3/tokenizer.json", "HuggingFaceTokenizer"},
                    kept_tokenizer{"qwen2/tokenizer.json", "HuggingFaceTokenizer"},
                    kept_tokenizer{"deepseek_v3/tokenizer.json", "HuggingFaceTokenizer"},
                    kept_tokenizer{"tekken/tekken.vocab.json", "TikTokenizer"},
                    kept_tokenizer{"llama2/tokenizer.json", "HuggingFaceTokenizer", "", false},
                    kept_tokenizer{"llama2/tokenizer.model", "Llama2Tokenizer", "", false},
                    kept_tokenizer{"bert_base_cased/tokenizer.json", "HuggingFaceTokenizer", "",
                                   false}));

}  // namespace
}  // namespace millrace::test
