// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "model_builder.hpp"
#include "sentencepiece/sentencepiece_tokenizer.hpp"
#include "support/encode.hpp"
#include "support/encode_parts.hpp"
#include "support/paths.hpp"
#include "support/seed.hpp"

namespace millrace::tokenizer::detail {
namespace {

using namespace millrace::test;

class random_models {
 public:
  explicit random_models(std::uint64_t seed) : random_(seed) {}

  // Returns a model of type 1 (unigram) or 2 (BPE). Integer scores make many paths equal. Large
  // scores make large sums, which are rounded.
  std::string model(unsigned type, bool byte_fallback) {
    std::string file = unknown_piece();
    const float scale = random_() % 2 == 0 ? 1.0F : 5000.0F;
    std::vector<std::string> known;
    for (std::size_t n = 5 + random_() % 40; n > 0; --n) {
      std::string text;
      for (std::size_t size = 1 + random_() % 4; size > 0; --size) text += pick(letters_);
      if (std::ranges::find(known, text) != known.end()) continue;
      known.push_back(text);
      file += piece(text, -scale * (1 + static_cast<float>(random_() % 40) / 7));
    }
    for (unsigned byte = 0; byte_fallback && byte < 256; ++byte) {
      constexpr char digits[] = "0123456789ABCDEF";
      const std::string text = {'<', '0', 'x', digits[byte / 16], digits[byte % 16], '>'};
      file += piece(text, 0, piece_type::byte);
    }
    return file + trainer(type, byte_fallback ? number_field(35, 1) : "") +
           bytes_field(3, number_field(3, random_() % 2) + number_field(4, random_() % 2));
  }

  std::string text() {
    std::string text;
    for (std::size_t n = random_() % 60; n > 0; --n) text += pick(characters_);
    return text;
  }

 private:
  const std::string& pick(const std::vector<std::string>& from) {
    return from[random_() % from.size()];
  }

  const std::vector<std::string> letters_ = {"a", "b", "c", "1", ".", "\xE2\x96\x81", "中", "。"};
  // Some of these characters are unknown to every model.
  const std::vector<std::string> characters_ = {"a",  "b", "c",  "1", ".", "中",           "。",
                                                " ",  " ", "  ", "x", "y", "\xE2\x96\x81", "文",
                                                "\n", "é"};
  std::mt19937_64 random_;
};

class SentencePieceParts : public testing::TestWithParam<std::pair<unsigned, bool>> {};

TEST_P(SentencePieceParts, GiveTheWhole) {
  const auto [type, byte_fallback] = GetParam();
  random_models random(seed(31 + type));
  const temp_folder folder;
  std::size_t cuts = 0;
  for (int i = 0; i < 60; ++i) {
    write_text(folder / "some.model", random.model(type, byte_fallback));
    sentencepiece_options options;
    options.tuning.shared_bytes = std::size_t{1} << 16;
    const auto tokenizer = make_sentencepiece_tokenizer(folder / "some.model", options);
    const auto encoder = tokenizer->make_encoder();
    part_encoder parts(*tokenizer);
    for (std::size_t k = 0; k < 150; ++k) {
      const std::string text = random.text();
      ASSERT_EQ(parts.encode(text, 1 + k % 9), encode(*encoder, text))
          << testing::PrintToString(text);
    }
    cuts += parts.cuts();
  }
  EXPECT_GT(cuts, 1000U);
}

INSTANTIATE_TEST_SUITE_P(All, SentencePieceParts,
                         testing::Values(std::pair(1U, false), std::pair(1U, true),
                                         std::pair(2U, false), std::pair(2U, true)));

}  // namespace
}  // namespace millrace::tokenizer::detail
