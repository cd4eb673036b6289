// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <millrace/tokenizer/tokenizer.hpp>

#include "support/case_files.hpp"
#include "support/corpus.hpp"
#include "support/encode.hpp"
#include "support/paths.hpp"

namespace millrace::test {
namespace {

using ids_list = std::vector<std::int32_t>;

std::unique_ptr<tokenizer::tokenizer> model_at(const std::filesystem::path& file) {
  tokenizer::tokenizer_options options;
  options.type = "SentencePieceTokenizer";
  options.model = file;
  return tokenizer::make_tokenizer(options);
}

// Replaces lone surrogates in a line of a corpus with U+FFFD, because they are not valid text.
std::string with_lone_surrogates_replaced(std::string line) {
  const auto hex = [&](std::size_t at) {
    return line.compare(at, 2, "\\u") == 0 ? std::stoul(line.substr(at + 2, 4), nullptr, 16) : 0UL;
  };
  for (std::size_t at = line.find('\\'); at != std::string::npos; at = line.find('\\', at)) {
    const auto point = hex(at);
    if (point >= 0xD800 && point < 0xDC00) {
      const auto next = at + 12 <= line.size() ? hex(at + 6) : 0;
      if (next >= 0xDC00 && next < 0xE000) {
        at += 12;
        continue;
      }
    }
    if (point >= 0xD800 && point < 0xE000) line.replace(at + 2, 4, "fffd");
    at += point != 0 ? 6 : 2;
  }
  return line;
}

TEST(SentencePiece, AnswersOfTheTinyModelsAreThoseOfTheReference) {
  simdjson::dom::parser parser;
  std::size_t cases = 0;
  std::string name;
  std::unique_ptr<tokenizer::tokenizer> tokenizer;
  std::unique_ptr<tokenizer::encoder> encoder;
  for (const std::string& line : lines_of(read_text(golden("tiny_sentencepiece/cases.jsonl")))) {
    SCOPED_TRACE(line.substr(0, 200));
    const simdjson::dom::element record = parser.parse(line);
    if (name != std::string_view(record["model"])) {
      name = std::string_view(record["model"]);
      tokenizer = model_at(golden("tiny_sentencepiece/" + name + ".model"));
      encoder = tokenizer->make_encoder();
    }
    ids_list expected;
    for (const std::int64_t id : simdjson::dom::array(record["ids"])) {
      expected.push_back(static_cast<std::int32_t>(id));
    }
    EXPECT_EQ(encode(*encoder, std::string_view(record["text"])), expected);
    const std::vector<std::int64_t> wide(expected.begin(), expected.end());
    EXPECT_EQ(tokenizer->decode(wide), std::string_view(record["decoded"]));
    ++cases;
  }
  EXPECT_GT(cases, 150U);
}

TEST(SentencePiece, EndOfDocumentIsTheModelsEndOfSentence) {
  EXPECT_EQ(model_at(golden("tiny_sentencepiece/bpe.model"))->eod(), 2);
  EXPECT_EQ(model_at(golden("tiny_sentencepiece/suffix.model"))->eod(), std::nullopt);
}

// All tests below need models that this project may not distribute.
struct shared_model {
  const char* name;  // key in tokenizers.json
  const char* file;
  std::int64_t vocab_size;
};
constexpr shared_model shared_models[] = {
    {"llama2_sp", "tokenizers/llama2/tokenizer.model", 32000},
    {"mistral01_sp", "tokenizers/mistral01/tokenizer.model", 32000},
    {"nai_t5", "tokenizers/nai_t5/tokenizer.model", 32100},
    {"sp_test", "tokenizers/sp_test/test_model.model", 1000},
    {"sp_test_ja", "tokenizers/sp_test/test_ja_model.model", 8000},
};

// The text has 300,000 control characters. Spaces precede each of these characters, so each is in a
// fragment of its own. Normalization drops them all. A quadratic-time algorithm would need an hour
// for this text.
TEST(SentencePieceShared, NothingComesOfManyFragmentsAtTheBegin) {
  const auto shared = shared_folder();
  if (shared.empty()) GTEST_SKIP() << no_shared_folder;
  std::string text;
  for (int i = 0; i < 300000; ++i) text += "  \x01";
  const auto tokenizer = model_at(shared / "tokenizers/nai_t5/tokenizer.model");
  const auto encoder = tokenizer->make_encoder();
  EXPECT_EQ(encode(*encoder, text + "a"), encode(*encoder, "a"));
}

TEST(SentencePieceShared, VocabulariesAreThoseOfTheModels) {
  const auto shared = shared_folder();
  if (shared.empty()) GTEST_SKIP() << no_shared_folder;
  for (const shared_model& model : shared_models) {
    EXPECT_EQ(model_at(shared / model.file)->vocab_size(), model.vocab_size) << model.name;
  }
  EXPECT_EQ(model_at(shared / shared_models[0].file)->eod(), 2);
}

// Parameters: the name of a model, which is part of the names of its case files, and the path of
// the model.
class SentencePieceOfCases : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(SentencePieceOfCases, IdsAreThoseOfTheReference) {
  const auto shared = shared_folder();
  if (shared.empty()) GTEST_SKIP() << no_shared_folder;
  const auto& [name, file] = GetParam();
  const auto tokenizer = model_at(shared / file);
  const auto engine = tokenizer->make_encoder();
  const auto folder = shared / "golden/tokenizer_cases/kitoken";
  const std::string suffix = std::string("_tokens_") + name + ".txt";

  const auto texts = lines_of(read_text(folder / "small_input.txt"));
  const auto expected = lines_of(read_text(folder / ("sentencepiece_small" + suffix)));
  ASSERT_EQ(texts.size(), expected.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    SCOPED_TRACE(texts[i]);
    std::string text;  // in these cases, "\n" means a newline
    for (std::size_t at = 0; at < texts[i].size(); ++at) {
      const bool escaped = texts[i].compare(at, 2, "\\n") == 0;
      text += escaped ? '\n' : texts[i][at];
      at += escaped;
    }
    // The test program of the reference turned "\s" at the end of a line into a space before
    // encoding.
    if (text.ends_with("\\s")) text.replace(text.size() - 2, 2, " ");
    EXPECT_EQ(encode(*engine, text), numbers_in(expected[i]));
  }
  EXPECT_EQ(encode(*engine, read_text(folder / "utf8_input.txt")),
            numbers_in(read_text(folder / ("sentencepiece_utf8" + suffix))));
}

INSTANTIATE_TEST_SUITE_P(All, SentencePieceOfCases,
                         testing::Values(std::tuple("llama2", shared_models[0].file),
                                         std::tuple("mistral01", shared_models[1].file),
                                         std::tuple("nai-t5", shared_models[2].file)),
                         [](const auto& each) {
                           std::string name = std::get<0>(each.param);
                           std::erase(name, '-');
                           return name;
                         });

TEST(SentencePieceShared, IdsOfLlamaCppCasesAreThoseOfTheReference) {
  const auto shared = shared_folder();
  if (shared.empty()) GTEST_SKIP() << no_shared_folder;
  const auto tokenizer = model_at(shared / shared_models[0].file);
  const auto encoder = tokenizer->make_encoder();
  const auto folder = shared / "golden/tokenizer_cases/llamacpp";
  constexpr std::string_view separator = "\n__ggml_vocab_test__\n";
  const std::string all = read_text(folder / "llama-spm.inp");
  std::vector<std::string> texts;
  for (std::size_t begin = 0; begin <= all.size();) {
    const std::size_t end = std::min(all.find(separator, begin), all.size());
    texts.push_back(all.substr(begin, end - begin));
    begin = end + separator.size();
  }
  const auto expected = lines_of(read_text(folder / "llama-spm.out"));
  if (texts.size() == expected.size() + 1 && texts.back().empty()) texts.pop_back();
  ASSERT_EQ(texts.size(), expected.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    SCOPED_TRACE(texts[i]);
    EXPECT_EQ(encode(*encoder, texts[i]), numbers_in(expected[i]));
  }
}

// The corpora have 80 MB of books, code and texts in 500 languages, and all Unicode code points.
class SentencePieceOfCorpus : public testing::TestWithParam<std::tuple<shared_model, const char*>> {
};

TEST_P(SentencePieceOfCorpus, IdsAreThoseOfTheReference) {
  const auto shared = shared_folder();
  if (shared.empty()) GTEST_SKIP() << no_shared_folder;
  const auto& [model, corpus] = GetParam();
  const auto tokenizer = model_at(shared / model.file);
  EXPECT_EQ(encode_corpus(*tokenizer, shared / "corpora" / (std::string(corpus) + ".jsonl.gz"),
                          with_lone_surrogates_replaced),
            expected_stream(shared, model.name, corpus));
}

INSTANTIATE_TEST_SUITE_P(All, SentencePieceOfCorpus,
                         testing::Combine(testing::ValuesIn(shared_models),
                                          testing::Values("en_books", "code", "multi_udhr",
                                                          "multi_bible", "ja_escaped",
                                                          "stress_utf8")),
                         [](const auto& each) {
                           return std::string(std::get<0>(each.param).name) + "_" +
                                  std::get<1>(each.param);
                         });

}  // namespace
}  // namespace millrace::test
