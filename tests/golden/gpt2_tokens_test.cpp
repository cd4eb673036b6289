// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filtering_stream.hpp>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/tokenizer/make_tokenizer.hpp>

#include "support/encode.hpp"
#include "support/md5.hpp"
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

// Text through the gate both ways.
void expect_ids(const tokenizer::tokenizer& tokenizer, tokenizer::encoder& encoder,
                std::string_view text, const ids_list& expected) {
  EXPECT_EQ(encode(encoder, text), expected);
  const std::vector<std::int64_t> wide(expected.begin(), expected.end());
  EXPECT_EQ(tokenizer.decode(wide), text);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Numbers with anything else between them.
ids_list numbers_in(std::string text) {
  for (char& c : text) {
    if (c < '0' || c > '9') c = ' ';
  }
  ids_list ids;
  std::istringstream in(text);
  for (std::int32_t id = 0; in >> id;) ids.push_back(id);
  return ids;
}

std::string with_newlines(std::string_view text) {  // "\n" stands for a newline in these cases
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escaped = text.substr(i, 2) == "\\n";
    result += escaped ? '\n' : text[i];
    i += escaped;
  }
  return result;
}

// The vocabulary of the project's own: the cases that run everywhere.
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

// Everything below needs GPT-2's own vocabulary, which is not ours to keep here.
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
    // Its makers' harness turned "\s" at the end of this line into a space before encoding it.
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

// 80 MB of books, code, 500 languages and every code point there is.
class Gpt2TokensOfCorpus : public Gpt2TokensShared,
                           public testing::WithParamInterface<const char*> {};

TEST_P(Gpt2TokensOfCorpus, AreThoseOfTheReference) {
  simdjson::dom::parser golden_parser;
  const simdjson::dom::element all =
      golden_parser.load((shared_ / "golden/tokenizers.json").string());
  const simdjson::dom::element expected = all["tokenizers"]["gpt2"]["corpora"][GetParam()];

  std::ifstream file(shared_ / "corpora" / (std::string(GetParam()) + ".jsonl.gz"),
                     std::ios::binary);
  boost::iostreams::filtering_istream in;
  in.push(boost::iostreams::gzip_decompressor());
  in.push(file);
  simdjson::dom::parser parser;
  md5 all_ids;
  std::vector<std::int32_t> lengths;
  std::int64_t tokens = 0;
  for (std::string line; std::getline(in, line);) {
    const auto ids = encode(*encoder_, std::string_view(parser.parse(line)["text"]));
    all_ids.update(std::as_bytes(std::span(ids)));
    lengths.push_back(static_cast<std::int32_t>(ids.size()));
    tokens += static_cast<std::int64_t>(ids.size());
  }
  EXPECT_EQ(static_cast<std::int64_t>(lengths.size()), std::int64_t(expected["docs"]));
  EXPECT_EQ(tokens, std::int64_t(expected["tokens"]));
  EXPECT_EQ(md5().update(std::as_bytes(std::span(lengths))).hex(),
            std::string_view(expected["lengths_i32le_md5"]));
  EXPECT_EQ(all_ids.hex(), std::string_view(expected["ids_u32le_md5"]));
}

INSTANTIATE_TEST_SUITE_P(All, Gpt2TokensOfCorpus,
                         testing::Values("en_books", "code", "multi_udhr", "multi_bible",
                                         "ja_escaped", "stress_utf8"),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace millrace::test
