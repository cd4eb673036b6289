// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/tokenizer/tokenizer.hpp>

#include "support/case_files.hpp"
#include "support/corpus.hpp"
#include "support/encode.hpp"
#include "support/paths.hpp"

namespace millrace::test {
namespace {

using ids_list = std::vector<std::int32_t>;

std::unique_ptr<tokenizer::tokenizer> gpt2_in(const std::filesystem::path& folder) {
  tokenizer::tokenizer_options options;
  options.type = "GPT2BPETokenizer";
  options.vocab_file = folder / "vocab.json";
  options.merge_file = folder / "merges.txt";
  return tokenizer::make_tokenizer(options);
}

// Expects that `text` encodes to the ids `expected`, and that these ids decode to `text`.
void expect_ids(const tokenizer::tokenizer& tokenizer, tokenizer::encoder& encoder,
                std::string_view text, const ids_list& expected) {
  EXPECT_EQ(encode(encoder, text), expected);
  const std::vector<std::int64_t> wide(expected.begin(), expected.end());
  EXPECT_EQ(tokenizer.decode(wide), text);
}

std::string with_newlines(std::string_view text) {  // in these cases, "\n" means a newline
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escaped = text.substr(i, 2) == "\\n";
    result += escaped ? '\n' : text[i];
    i += escaped;
  }
  return result;
}

// Uses this project's own vocabulary, so these cases run everywhere.
TEST(Gpt2Tokens, OfTheTinyVocabularyAreThoseOfTheReference) {
  const auto tokenizer = gpt2_in(golden("tiny_bpe"));
  const auto encoder = tokenizer->make_encoder();
  simdjson::dom::parser parser;
  std::size_t cases = 0;
  for (const std::string& line : lines_of(read_text(golden("tiny_bpe/cases.jsonl")))) {
    SCOPED_TRACE(line.substr(0, 200));
    const simdjson::dom::element record = parser.parse(line);
    ids_list expected;
    for (const std::int64_t id : simdjson::dom::array(record["ids"])) {
      expected.push_back(static_cast<std::int32_t>(id));
    }
    expect_ids(*tokenizer, *encoder, std::string_view(record["text"]), expected);
    ++cases;
  }
  EXPECT_GT(cases, 100U);
}

// All tests below need the vocabulary of GPT-2, which this project may not distribute.
class Gpt2TokensShared : public testing::Test {
 protected:
  void SetUp() override {
    if (shared_.empty()) GTEST_SKIP() << no_shared_folder;
    tokenizer_ = gpt2_in(shared_ / "tokenizers/gpt2");
    encoder_ = tokenizer_->make_encoder();
  }

  std::filesystem::path shared_ = shared_folder();
  std::unique_ptr<tokenizer::tokenizer> tokenizer_;
  std::unique_ptr<tokenizer::encoder> encoder_;
};

TEST_F(Gpt2TokensShared, VocabularyIsThatOfGpt2) {
  EXPECT_EQ(tokenizer_->vocab_size(), 50257);
  EXPECT_EQ(tokenizer_->eod(), 50256);
}

TEST_F(Gpt2TokensShared, OfSmallCasesAreThoseOfTheReference) {
  const auto folder = shared_ / "golden/tokenizer_cases/kitoken";
  const auto texts = lines_of(read_text(folder / "small_input.txt"));
  const auto expected = lines_of(read_text(folder / "tokenizers_small_tokens_gpt2.txt"));
  ASSERT_EQ(texts.size(), expected.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    SCOPED_TRACE(texts[i]);
    // The test program of the reference turned "\s" at the end of a line into a space before
    // encoding.
    std::string text = with_newlines(texts[i]);
    if (text.ends_with("\\s")) {
      text.resize(text.size() - 2);
      text += ' ';
    }
    expect_ids(*tokenizer_, *encoder_, text, numbers_in(expected[i]));
  }
}

TEST_F(Gpt2TokensShared, OfALongMixedTextAreThoseOfTheReference) {
  const auto folder = shared_ / "golden/tokenizer_cases/kitoken";
  expect_ids(*tokenizer_, *encoder_, read_text(folder / "utf8_input.txt"),
             numbers_in(read_text(folder / "tokenizers_utf8_tokens_gpt2.txt")));
}

TEST_F(Gpt2TokensShared, OfLlamaCppCasesAreThoseOfTheReference) {
  const auto folder = shared_ / "golden/tokenizer_cases/llamacpp";
  constexpr std::string_view separator = "\n__ggml_vocab_test__\n";
  const std::string all = read_text(folder / "gpt-2.inp");
  std::vector<std::string> texts;
  for (std::size_t begin = 0; begin <= all.size();) {
    const std::size_t end = std::min(all.find(separator, begin), all.size());
    texts.push_back(all.substr(begin, end - begin));
    begin = end + separator.size();
  }
  auto expected = lines_of(read_text(folder / "gpt-2.out"));
  if (texts.size() == expected.size() + 1 && texts.back().empty()) texts.pop_back();
  ASSERT_EQ(texts.size(), expected.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    SCOPED_TRACE(texts[i]);
    expect_ids(*tokenizer_, *encoder_, texts[i], numbers_in(expected[i]));
  }
}

// The corpora have 80 MB of books, code and texts in 500 languages, and all Unicode code points.
class Gpt2TokensOfCorpus : public Gpt2TokensShared,
                           public testing::WithParamInterface<const char*> {};

TEST_P(Gpt2TokensOfCorpus, AreThoseOfTheReference) {
  EXPECT_EQ(
      encode_corpus(*tokenizer_, shared_ / "corpora" / (std::string(GetParam()) + ".jsonl.gz")),
      expected_stream(shared_, "gpt2", GetParam()));
}

INSTANTIATE_TEST_SUITE_P(All, Gpt2TokensOfCorpus,
                         testing::Values("en_books", "code", "multi_udhr", "multi_bible",
                                         "ja_escaped", "stress_utf8"),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace millrace::test
