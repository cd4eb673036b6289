// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include <millrace/tokenizer/tokenizer.hpp>

#include "support/paths.hpp"
#include "support/sanitized.hpp"

// Tests the peak memory of loading a tokenizer.
namespace millrace::test {
namespace {

std::size_t bytes_of(std::string_view field) {
  std::ifstream status("/proc/self/status");
  for (std::string name; status >> name;) {
    std::size_t kibibytes = 0;
    if (name == field && status >> kibibytes) return kibibytes << 10;
  }
  return 0;
}

struct vocabulary_file {
  std::string_view path;  ///< relative to the folder of real tokenizers
  std::string_view type;
  std::string_view pattern = {};
};

void PrintTo(const vocabulary_file& file, std::ostream* out) {
  *out << file.path;
}

class LoadMemory : public testing::TestWithParam<vocabulary_file> {};

TEST_P(LoadMemory, IsASmallMultipleOfTheFile) {
  const std::filesystem::path shared = shared_folder();
  if (shared.empty()) GTEST_SKIP() << no_shared_folder;
  if (under_address_sanitizer || under_thread_sanitizer) {
    GTEST_SKIP() << "a sanitizer's memory cannot be told from the tokenizer's";
  }
  const auto [path, type, pattern] = GetParam();
  tokenizer::tokenizer_options options;
  options.type = type;
  options.model = shared / "tokenizers" / path;
  options.tiktoken_pattern = pattern;
  std::ofstream("/proc/self/clear_refs") << "5";  // resets the peak
  const std::size_t before = bytes_of("VmRSS:");
  ASSERT_LT(bytes_of("VmHWM:"), before + (std::size_t{1} << 20));
  const std::size_t code = bytes_of("RssFile:");
  const auto tokenizer = tokenizer::make_tokenizer(options);
  // How many pages of this program the kernel maps at its first instructions varies.
  const std::size_t code_now = std::max(bytes_of("RssFile:"), code);
  const std::size_t peak = bytes_of("VmHWM:") - (code_now - code);
  const std::size_t taken = std::max(peak, before) - before;
  constexpr std::size_t times = 10;
  constexpr std::size_t tables = std::size_t{4} << 20;  // for tables of characters and fixed costs
  EXPECT_LE(taken, times * std::filesystem::file_size(options.model) + tables);
  RecordProperty("bytes", std::to_string(taken));
}

INSTANTIATE_TEST_SUITE_P(
    All, LoadMemory,
    testing::Values(vocabulary_file{"o200k_base/tokenizer.json", "HuggingFaceTokenizer"},
                    vocabulary_file{"llama3/tokenizer.json", "HuggingFaceTokenizer"},
                    vocabulary_file{"bert_base_cased/tokenizer.json", "HuggingFaceTokenizer"},
                    vocabulary_file{"cl100k_base/cl100k_base.tiktoken", "TikTokenizer", "cl100k"},
                    vocabulary_file{"tekken/tekken.vocab.json", "TikTokenizer"},
                    vocabulary_file{"llama2/tokenizer.model", "SentencePieceTokenizer"},
                    vocabulary_file{"nai_t5/tokenizer.model", "SentencePieceTokenizer"}));

}  // namespace
}  // namespace millrace::test
