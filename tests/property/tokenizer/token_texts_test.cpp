// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/tokenizer/tokenizer.hpp>

#include "bpe/token_table.hpp"
#include "hugging_face/decoders.hpp"
#include "support/naive_decode.hpp"
#include "support/paths.hpp"
#include "support/seed.hpp"
#include "support/tokenizers.hpp"

namespace millrace::tokenizer {
namespace {

using ids_of_text = std::vector<std::int64_t>;

/// Compares decode() with the text that naive_decode makes of the table.
template <class Decoder>
void expect_same_text(const Decoder& decoder, const formats::token_texts& texts,
                      const ids_of_text& ids) {
  ASSERT_EQ(test::naive_decode(texts, ids).text, decoder.decode(ids))
      << testing::PrintToString(ids);
}

ids_of_text random_ids(std::mt19937_64& random, std::int64_t end, std::size_t most) {
  ids_of_text ids(std::uniform_int_distribution<std::size_t>(0, most)(random));
  // A few more than there are, and a few below 0. Often low ones, which are bytes and special
  // tokens in many vocabularies.
  for (std::int64_t& id : ids) {
    const std::int64_t last = random() % 3 == 0 ? std::min<std::int64_t>(300, end) : end + end / 50;
    id = std::uniform_int_distribution<std::int64_t>(random() % 50 == 0 ? -2 : 0, last)(random);
  }
  return ids;
}

void compare(const tokenizer& with, std::uint64_t seed, int cases) {
  const auto texts = with.token_texts();
  ASSERT_TRUE(texts);
  std::mt19937_64 random(seed);
  for (int i = 0; i < cases && !testing::Test::HasFatalFailure(); ++i) {
    expect_same_text(with, *texts, random_ids(random, with.vocab_size(), 20));
  }
  for (std::int64_t id = -1; id <= with.vocab_size() && !testing::Test::HasFatalFailure(); ++id) {
    expect_same_text(with, *texts, {id});
    if (id % 7 == 0) expect_same_text(with, *texts, {0, id, id});
  }
}

TEST(TokenTexts, OfSmallTokenizersMakeTheTextThatDecodeMakes) {
  const std::uint64_t seed = test::seed(5);
  compare(*test::byte_tokenizer(), seed, 1000);
  compare(*test::null_tokenizer(300), seed, 1000);
  compare(*test::tiny_bpe_tokenizer(), seed, 1000);
  EXPECT_FALSE(test::null_tokenizer((std::int64_t{1} << 22) + 1)->token_texts());
}

struct real_tokenizer {
  const char* type;
  const char* model;
  const char* pattern = "";
};

TEST(TokenTexts, OfRealTokenizersMakeTheTextThatDecodeMakes) {
  const auto shared = test::shared_folder();
  if (shared.empty()) GTEST_SKIP() << test::no_shared_folder;
  const std::uint64_t seed = test::seed(6);
  for (const real_tokenizer& each : {
           real_tokenizer{"HuggingFaceTokenizer", "bert_base_cased/tokenizer.json"},
           {"HuggingFaceTokenizer", "deepseek_v3/tokenizer.json"},
           {"HuggingFaceTokenizer", "gpt2/tokenizer.json"},
           {"HuggingFaceTokenizer", "gpt_neox/tokenizer.json"},
           {"HuggingFaceTokenizer", "llama2/tokenizer.json"},
           {"HuggingFaceTokenizer", "llama3/tokenizer.json"},
           {"HuggingFaceTokenizer", "qwen2/tokenizer.json"},
           {"SentencePieceTokenizer", "llama2/tokenizer.model"},
           {"SentencePieceTokenizer", "mistral01/tokenizer.model"},
           {"SentencePieceTokenizer", "nai_t5/tokenizer.model"},
           {"SentencePieceTokenizer", "sp_test/test_ja_model.model"},
           {"SentencePieceTokenizer", "sp_test/test_model.model"},
           {"TikTokenizer", "cl100k_base/cl100k_base.tiktoken", "cl100k"},
           {"TikTokenizer", "tekken/tekken.vocab.json"},
       }) {
    SCOPED_TRACE(each.model);
    tokenizer_options options;
    options.type = each.type;
    options.model = shared / "tokenizers" / each.model;
    options.tiktoken_pattern = each.pattern;
    compare(*make_tokenizer(options), seed, 2000);
    if (testing::Test::HasFatalFailure()) return;
  }
}

/// A decoder of random steps.
std::string random_decoder(std::mt19937_64& random) {
  const auto one_of = [&](const std::vector<std::string>& all) {
    return all[random() % all.size()];
  };
  const std::vector<std::string> steps = {
      R"({"type":"ByteFallback"})",
      R"({"type":"ByteFallback"})",
      R"({"type":"Fuse"})",
      R"({"type":"Fuse"})",
      R"({"type":"ByteLevel"})",
      R"({"type":"Replace","pattern":{"String":"_"},"content":" "})",
      R"({"type":"Replace","pattern":{"String":"ab"},"content":""})",
      R"({"type":"Strip","content":" ","start":1,"stop":0})",
      R"({"type":"Strip","content":"a","start":2,"stop":0})",
      R"({"type":"Strip","content":"b","start":0,"stop":1})",
      R"({"type":"WordPiece","prefix":"##","cleanup":true})",
      R"({"type":"WordPiece","prefix":"##","cleanup":false})",
      R"({"type":"Metaspace","replacement":"_","prepend_scheme":"always"})",
      R"({"type":"Metaspace","replacement":"_","prepend_scheme":"never"})",
      R"({"type":"BPEDecoder","suffix":"_"})",
      R"({"type":"CTC","pad_token":"_","word_delimiter_token":"|","cleanup":false})",
  };
  if (random() % 4 == 0) return one_of(steps);
  std::string list = one_of(steps);
  for (std::size_t more = random() % 4; more > 0; --more) list += "," + one_of(steps);
  return R"({"type":"Sequence","decoders":[)" + list + "]}";
}

// Whatever a table describes must be what the decoder does. Not all decoders have a table.
TEST(TokenTexts, OfRandomDecodersMakeTheTextThatDecodeMakes) {
  std::mt19937_64 random(test::seed(7));
  const std::vector<std::string> pieces = {
      "a",      "b",      "_",        "_a",     "__", "##b", "",      "<0x20>",
      "<0xC3>", "<0xA9>", " ",        " a",     "ab", "n't", ".",     "do",
      "a|",     "<0x61>", "\xC4\xA0", "do not", "_.", "aab", "<0xFF>"};
  int described = 0;
  int not_described = 0;
  for (int i = 0; i < 3000; ++i) {
    const std::string json = random_decoder(random);
    SCOPED_TRACE(json);
    const detail::json_document document(json);
    const detail::json_node node(document);
    detail::token_table tokens;
    std::int32_t id = 0;
    for (const std::string& piece : pieces) {
      if (random() % 10 > 0) tokens.add(id, piece);  // or a gap
      ++id;
    }
    std::vector<std::string> notes;
    const auto decoder =
        detail::make_chain_detokenizer(std::move(tokens), detail::read_decoder(&node, notes));
    ASSERT_TRUE(notes.empty()) << notes[0];
    const auto texts = decoder->texts();
    ++(texts ? described : not_described);
    if (!texts) continue;
    for (int k = 0; k < 40; ++k) {
      expect_same_text(*decoder, *texts, random_ids(random, std::ssize(pieces), 8));
      if (testing::Test::HasFatalFailure()) return;
    }
  }
  EXPECT_GT(described, 500);
  EXPECT_GT(not_described, 500);
}

}  // namespace
}  // namespace millrace::tokenizer
