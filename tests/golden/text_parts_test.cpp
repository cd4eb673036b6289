// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cctype>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/tokenizer/tokenizer.hpp>

#include "support/encode.hpp"
#include "support/encode_parts.hpp"
#include "support/paths.hpp"
#include "support/seed.hpp"
#include "support/tokenizers.hpp"

// Tests, for all families of tokenizers, that a text gives the same ids whether it is encoded in
// parts or as a whole.
namespace millrace::test {
namespace {

using tokenizer::tokenizer_options;

void expect_parts_give_the_whole(const tokenizer_options& options, std::size_t texts,
                                 bool cuts = true) {
  const auto tokenizer = tokenizer::make_tokenizer(options);
  const auto encoder = tokenizer->make_encoder();
  part_encoder parts(*tokenizer);
  odd_texts random(seed(20261));
  for (std::size_t i = 0; i < texts; ++i) {
    const std::string text = random.next();
    const std::size_t least = 1 + i % 7 * (i % 3);
    ASSERT_EQ(parts.encode(text, least), encode(*encoder, text))
        << testing::PrintToString(text) << " from " << least;
  }
  if (cuts) {
    EXPECT_GT(parts.cuts(), texts);
  } else {
    EXPECT_EQ(parts.cuts(), 0U);
  }
}

tokenizer_options of(std::string type, const std::filesystem::path& model) {
  tokenizer_options options;
  options.type = std::move(type);
  options.model = model;
  return options;
}

TEST(TextParts, OfTinyByteLevelModels) {
  tokenizer_options gpt2;
  gpt2.type = "GPT2BPETokenizer";
  gpt2.vocab_file = golden("tiny_bpe/vocab.json");
  gpt2.merge_file = golden("tiny_bpe/merges.txt");
  gpt2.in_text = tokenizer::special_tokens_in_text::allow;
  expect_parts_give_the_whole(gpt2, 4000);
  for (const std::string pattern : {"r50k", "cl100k", "o200k", "llama3", "qwen2", "kimi"}) {
    SCOPED_TRACE(pattern);
    auto ranks = of("TikTokenizer", golden("tiny_ranks/tiny.tiktoken"));
    ranks.tiktoken_pattern = pattern;
    ranks.special_tokens = {"<|endoftext|>", "[MASK]", "the end", "a"};
    ranks.in_text = tokenizer::special_tokens_in_text::allow;
    expect_parts_give_the_whole(ranks, 3000);
  }
}

TEST(TextParts, OfTinySentencePieceModels) {
  auto bpe = of("SentencePieceTokenizer", golden("tiny_sentencepiece/bpe.model"));
  expect_parts_give_the_whole(bpe, 4000);
  bpe.in_text = tokenizer::special_tokens_in_text::allow;
  expect_parts_give_the_whole(bpe, 2000);
  // Texts for these models are never cut, because normalizing a part alone could give another
  // result. In `unigram`, normalization may affect the user-defined symbols. In `suffix`, it
  // changes the end of the text.
  for (const char* name : {"unigram", "suffix"}) {
    SCOPED_TRACE(name);
    expect_parts_give_the_whole(
        of("SentencePieceTokenizer", golden("tiny_sentencepiece/" + std::string(name) + ".model")),
        500, false);
  }
}

TEST(TextParts, OfBytes) {
  expect_parts_give_the_whole(tokenizer_options(), 1000);
}

TEST(TextParts, OfIds) {
  const auto tokenizer = null_tokenizer(1000);
  part_encoder parts(*tokenizer);
  EXPECT_EQ(parts.encode("1 22 333 4 5", 1), (std::vector<std::int32_t>{1, 22, 333, 4, 5}));
  EXPECT_EQ(parts.cuts(), 4U);
  ::millrace::tokenizer::id_buffer ids;
  const auto fault = tokenizer->make_encoder()->encode_part({" 7 x", false, true}, ids);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->offset_bytes, 3U);
}

// Variants of a tokenizer.json with added tokens, normalizers and a prefix space.
TEST(TextParts, OfVariantsOfATokenizerJson) {
  const auto shared = shared_folder();
  if (shared.empty()) GTEST_SKIP() << no_shared_folder;
  const std::string file = read_text(shared / "tokenizers/gpt2/tokenizer.json");
  const auto with = [](std::string text, std::string_view from, std::string_view to) {
    const std::size_t at = text.find(from);
    EXPECT_NE(at, text.npos);
    return text.replace(at, from.size(), to);
  };
  const auto token = [](int id, std::string_view content, std::string_view flags) {
    return R"({"id": )" + std::to_string(id) + R"(, "content": ")" + std::string(content) +
           R"(", "special": true, )" + std::string(flags) + "},";
  };
  constexpr std::string_view none =
      R"("single_word": false, "lstrip": false, "rstrip": false, "normalized": false)";
  const std::string tokens =
      token(50257, "the",
            R"("single_word": true, "lstrip": false, "rstrip": false, "normalized": true)") +
      token(50258, "[SEP]",
            R"("single_word": false, "lstrip": true, "rstrip": true, "normalized": false)") +
      token(50259, "<s>", none) + token(50260, ". [", none) + token(50261, "camelCase", none) +
      token(50262, "A",
            R"("single_word": false, "lstrip": false, "rstrip": true, "normalized": false)") +
      token(50263, ",",
            R"("single_word": false, "lstrip": true, "rstrip": false, "normalized": true)");
  const temp_folder folder;
  for (const std::string_view normalizer :
       {R"(null)", R"({"type": "NFC"})", R"({"type": "NFD"})", R"({"type": "NFKC"})",
        R"({"type": "NFKD"})", R"({"type": "Lowercase"})",
        R"({"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Lowercase"}]})"}) {
    for (const std::string_view prefix : {"false", "true"}) {
      SCOPED_TRACE(std::string(normalizer) + ", add_prefix_space " + std::string(prefix));
      std::string variant =
          with(file, "\"normalizer\": null", "\"normalizer\": " + std::string(normalizer));
      variant = with(variant, "\"add_prefix_space\": false",
                     "\"add_prefix_space\": " + std::string(prefix));
      variant = with(variant, "\"added_tokens\": [", "\"added_tokens\": [" + tokens);
      write_text(folder / "tokenizer.json", variant);
      expect_parts_give_the_whole(of("HuggingFaceTokenizer", folder / "tokenizer.json"), 1500);
    }
  }
}

// A real tokenizer. `file` is relative to the folder `tokenizers`.
struct real_tokenizer {
  const char* type;
  const char* file;
  const char* pattern;
  bool cuts;
};

void PrintTo(const real_tokenizer& which, std::ostream* out) {
  *out << which.file;
}

class TextPartsOfRealTokenizers : public testing::TestWithParam<real_tokenizer> {};

TEST_P(TextPartsOfRealTokenizers, GiveTheWhole) {
  const auto shared = shared_folder();
  if (shared.empty()) GTEST_SKIP() << no_shared_folder;
  const auto& [type, file, pattern, cuts] = GetParam();
  auto options = of(type, shared / "tokenizers" / file);
  options.tiktoken_pattern = pattern;
  expect_parts_give_the_whole(options, 4000, cuts);
}

INSTANTIATE_TEST_SUITE_P(
    All, TextPartsOfRealTokenizers,
    testing::Values(
        real_tokenizer{"HuggingFaceTokenizer", "gpt2/tokenizer.json", "", true},
        real_tokenizer{"HuggingFaceTokenizer", "gpt_neox/tokenizer.json", "", true},
        real_tokenizer{"HuggingFaceTokenizer", "llama3/tokenizer.json", "", true},
        real_tokenizer{"HuggingFaceTokenizer", "qwen2/tokenizer.json", "", true},
        real_tokenizer{"HuggingFaceTokenizer", "o200k_base/tokenizer.json", "", true},
        real_tokenizer{"HuggingFaceTokenizer", "deepseek_v3/tokenizer.json", "", true},
        real_tokenizer{"HuggingFaceTokenizer", "bert_base_cased/tokenizer.json", "", true},
        // This tokenizer treats the whole text as one word.
        real_tokenizer{"HuggingFaceTokenizer", "llama2/tokenizer.json", "", false},
        real_tokenizer{"TikTokenizer", "cl100k_base/cl100k_base.tiktoken", "cl100k", true},
        real_tokenizer{"TikTokenizer", "o200k_base/o200k_base.tiktoken", "o200k", true},
        real_tokenizer{"TikTokenizer", "llama3/llama3.tiktoken", "llama3", true},
        real_tokenizer{"TikTokenizer", "tekken/tekken.vocab.json", "", true},
        real_tokenizer{"SentencePieceTokenizer", "llama2/tokenizer.model", "", true},
        real_tokenizer{"SentencePieceTokenizer", "mistral01/tokenizer.model", "", true},
        real_tokenizer{"SentencePieceTokenizer", "nai_t5/tokenizer.model", "", true},
        real_tokenizer{"SentencePieceTokenizer", "sp_test/test_model.model", "", true},
        real_tokenizer{"SentencePieceTokenizer", "sp_test/test_ja_model.model", "", true}),
    [](const auto& each) {
      std::string name = std::string(each.param.type) + "_" + each.param.file;
      for (char& c : name) {
        if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
      }
      return name;
    });

}  // namespace
}  // namespace millrace::test
