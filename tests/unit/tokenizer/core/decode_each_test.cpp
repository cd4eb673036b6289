// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/tokenizer/tokenizer.hpp>

#include "support/encode.hpp"
#include "support/paths.hpp"
#include "support/seed.hpp"
#include "support/tokenizers.hpp"

namespace millrace::tokenizer {
namespace {

using ids_list = std::vector<std::int64_t>;
using texts = std::vector<std::string>;
using testing::ElementsAre;

std::unique_ptr<tokenizer> opened(const char* type, const std::filesystem::path& model) {
  tokenizer_options options;
  options.type = type;
  (std::string_view(type).starts_with("Bert") ? options.vocab_file : options.model) = model;
  if (model.extension() == ".tiktoken") {
    options.tiktoken_pattern = model.stem().string().substr(0, model.stem().string().find("_base"));
  }
  return make_tokenizer(options);
}

/// A tokenizer.json of whole words, which are ids 0, 1, 2, ..., and a decoder.
std::unique_ptr<tokenizer> words(const std::string& list, const std::string& decoder) {
  const test::temp_folder folder;
  test::write_text(folder / "tokenizer.json",
                   R"({"pre_tokenizer":{"type":"WhitespaceSplit"},"decoder":)" + decoder +
                       R"(,"model":{"type":"WordLevel","unk_token":"?","vocab":{)" + list + "}}}");
  return opened("HuggingFaceTokenizer", folder / "tokenizer.json");
}

bool is_continuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80;
}

/// The ends of the texts by their definition, without windows: text i ends where the texts of ids 0
/// to i and of all ids begin to differ, before the character that differs.
std::vector<std::size_t> naive_ends(const tokenizer& with, const ids_list& ids) {
  const std::string whole = with.decode(ids);
  std::vector<std::size_t> ends;
  std::size_t end = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::string part = with.decode(std::span(ids).first(i + 1));
    std::size_t same = 0;
    while (same < part.size() && same < whole.size() && part[same] == whole[same]) ++same;
    while (same < part.size() && same > 0 && same < whole.size() && is_continuation(whole[same])) {
      --same;
    }
    end = i + 1 == ids.size() ? whole.size() : std::max(end, same);
    ends.push_back(end);
  }
  return ends;
}

void expect_definition(const tokenizer& with, const ids_list& ids) {
  const texts each = decode_each(with, ids);
  ASSERT_EQ(each.size(), ids.size());
  ASSERT_EQ(std::accumulate(each.begin(), each.end(), std::string()), with.decode(ids));
  const std::vector<std::size_t> ends = naive_ends(with, ids);
  std::size_t end = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    end += each[i].size();
    // Bytes of a character that several ids make are divided, so only there may a text end later.
    ASSERT_GE(end, ends[i]) << "id " << i;
    const bool is_nothing = ends[i] == (i == 0 ? 0 : ends[i - 1]);
    if (!is_nothing) {
      ASSERT_EQ(end, ends[i]) << "id " << i;
    }
  }
}

/// Compares random ids, and the ids of a text in which characters need several ids.
void expect_definition(
    const tokenizer& with, std::mt19937_64& random,
    std::string_view text =
        "The end. It's 5 \xE2\x82\xAC \xF0\x9F\x90\xB4\xF0\x9F\x90\xB4\xE3\x81\x82 "
        "\xE6\x97\xA5\xE6\x9C\xAC  \n\tx = \"y\"  \xEF\xBF\xBD\xCC\x81 don't ...") {
  std::uniform_int_distribution<std::int64_t> id(-1, with.vocab_size());
  std::uniform_int_distribution<std::int64_t> low_id(0, std::min<std::int64_t>(300, id.max()));
  for (const int size : {0, 1, 2, 5, 63, 64, 65, 300}) {
    ids_list ids(static_cast<std::size_t>(size));
    // Many vocabularies begin with special tokens and bytes.
    for (auto& each : ids) each = random() % 2 == 0 ? id(random) : low_id(random);
    SCOPED_TRACE(testing::PrintToString(ids));
    expect_definition(with, ids);
    if (testing::Test::HasFatalFailure()) return;
  }
  const auto encoder = with.make_encoder();
  const auto encoded = test::encode(*encoder, text);
  expect_definition(with, ids_list(encoded.begin(), encoded.end()));
}

TEST(DecodeEach, GivesEachByteLevelIdItsBytes) {
  const auto bytes = test::byte_tokenizer();
  EXPECT_THAT(decode_each(*bytes, ids_list{97, 0xE3, 0x81, 0x82}),
              ElementsAre("a", "\xE3", "\x81", "\x82"));
  EXPECT_THAT(decode_each(*bytes, {}), ElementsAre());
  const auto bpe = test::tiny_bpe_tokenizer();
  ids_list all(static_cast<std::size_t>(bpe->vocab_size()));
  std::iota(all.begin(), all.end(), 0);
  const texts each = decode_each(*bpe, all);
  for (const std::int64_t id : all) {
    EXPECT_EQ(each[static_cast<std::size_t>(id)], bpe->decode(std::span(&id, 1))) << id;
  }
}

TEST(DecodeEach, KnowsDecodersThatChangeEarlierText) {
  const auto cleaned = words(R"("?":0,"do":1,"n":2,".":3,"##ing":4)",
                             R"({"type":"WordPiece","prefix":"##","cleanup":true})");
  EXPECT_THAT(decode_each(*cleaned, ids_list{1, 4, 3, 1, 2}),
              ElementsAre("do", "ing", ".", " do", " n"));
  const auto repeated =
      words(R"("?":0,"a":1,"-":2,"b":3)",
            R"({"type":"CTC","pad_token":"-","word_delimiter_token":"|","cleanup":true})");
  EXPECT_THAT(decode_each(*repeated, ids_list{1, 1, 2, 1, 3}), ElementsAre("a", "", "", "a", "b"));
}

TEST(DecodeEach, DividesCharactersAmongTheirByteIds) {
  const auto fallback = words(R"("?":0,"<0xE3>":1,"<0x81>":2,"<0x82>":3,"\u3042":4,"":5)",
                              R"({"type":"Sequence","decoders":[{"type":"ByteFallback"},)"
                              R"({"type":"Fuse"}]})");
  EXPECT_THAT(
      decode_each(*fallback, ids_list{4, 1, 2, 3, 1, 2, 3, 4}),
      ElementsAre("\xE3\x81\x82", "\xE3", "\x81", "\x82", "\xE3", "\x81", "\x82", "\xE3\x81\x82"));
  // A word that follows ids without text gets all its bytes.
  EXPECT_THAT(decode_each(*fallback, ids_list{5, 5, 4}), ElementsAre("", "", "\xE3\x81\x82"));
  // Half a character is U+FFFD for each byte, as in the whole text.
  EXPECT_THAT(decode_each(*fallback, ids_list{1, 2}), ElementsAre("\xEF\xBF\xBD", "\xEF\xBF\xBD"));
}

TEST(DecodeEach, DropsTheFirstSpaceOnly) {
  const auto pieces = words(R"("?":0,"_a":1,"_b":2)",
                            R"({"type":"Metaspace","replacement":"_","prepend_scheme":"first"})");
  ids_list ids(200, 2);
  ids[0] = 1;
  const texts each = decode_each(*pieces, ids);
  EXPECT_EQ(each[0], "a");
  for (std::size_t i = 1; i < each.size(); ++i) ASSERT_EQ(each[i], " b") << i;
}

TEST(DecodeEach, IsItsDefinitionForSmallVocabularies) {
  std::mt19937_64 random(test::seed(7));
  expect_definition(*test::byte_tokenizer(), random);
  expect_definition(*test::tiny_bpe_tokenizer(), random);
  expect_definition(*test::null_tokenizer(50), random, "7 49 0");
  for (const char* model : {"bpe.model", "unigram.model", "suffix.model"}) {
    SCOPED_TRACE(model);
    expect_definition(*opened("SentencePieceTokenizer", test::golden("tiny_sentencepiece") / model),
                      random);
  }
}

TEST(DecodeEach, IsItsDefinitionForRealVocabularies) {
  const auto shared = test::shared_folder();
  if (shared.empty()) GTEST_SKIP() << test::no_shared_folder;
  std::mt19937_64 random(test::seed(7));
  const auto expect = [&](const char* type, const char* model) {
    SCOPED_TRACE(model);
    expect_definition(*opened(type, shared / "tokenizers" / model), random);
  };
  expect("HuggingFaceTokenizer", "bert_base_cased/tokenizer.json");
  expect("HuggingFaceTokenizer", "llama2/tokenizer.json");
  expect("HuggingFaceTokenizer", "gpt2/tokenizer.json");
  expect("HuggingFaceTokenizer", "gpt_neox/tokenizer.json");
  expect("SentencePieceTokenizer", "llama2/tokenizer.model");
  expect("SentencePieceTokenizer", "nai_t5/tokenizer.model");
  expect("SentencePieceTokenizer", "mistral01/tokenizer.model");
  expect("TikTokenizer", "llama3/llama3.tiktoken");
}

}  // namespace
}  // namespace millrace::tokenizer
