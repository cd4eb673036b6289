// SPDX-License-Identifier: Apache-2.0
#include "models/engines.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/word_models.hpp"
#include "normalize/normalizers.hpp"
#include "pre_tokenize/stages.hpp"
#include "split/splitters.hpp"
#include "support/instruction_sets.hpp"
#include "support/seed.hpp"

namespace millrace::tokenizer::detail {
namespace {

using ids_list = std::vector<std::int32_t>;

std::unique_ptr<const word_model> model(bool unknown = true) {
  const std::vector<std::string> tokens = {
      "[UNK]", "a",     "A",      "ab",     "abc",      "##a",      "##b",
      "##ab",  "##bcd", "!",      "'",      "s",        "##s",      "\u00E9",
      "e",     "##e",   "\u4E2D", "\u3042", "##\u3042", "##\u0301", "\u2019"};
  std::vector<listed_token> listed;
  for (const std::string& token : tokens) {
    listed.push_back({token, static_cast<std::int32_t>(listed.size())});
  }
  word_piece_options options;
  options.max_characters_per_word = 20;
  if (unknown) options.unknown = 0;
  return make_word_piece(std::make_unique<const vocabulary>(listed), options);
}

std::unique_ptr<const pre_tokenizer> words() {
  std::vector<stage_pointer> stages;
  stages.push_back(make_bert_stage());
  return make_staged_pre_tokenizer(std::move(stages));
}

std::unique_ptr<const section_engine> engine(const bert_steps* steps, engine_tuning tuning = {},
                                             bool unknown = true) {
  unit_parts parts;
  const bool chinese = steps != nullptr && steps->handle_chinese_chars;
  parts.units = make_splitter(chinese ? pattern::bert_chinese : pattern::bert, tuning.set);
  if (steps != nullptr) parts.normal = make_bert_normalizer(*steps);
  parts.words = words();
  parts.model = model(unknown);
  return make_unit_engine(std::move(parts), tuning);
}

ids_list encode(section_encoder& encoder, std::string_view text) {
  // Copies the text to an allocation of exactly its size, so that ASan detects reads past the end.
  const std::vector<char> exact(text.begin(), text.end());
  id_buffer ids;
  EXPECT_FALSE(encoder.encode({{exact.data(), exact.size()}}, ids).has_value());
  return {ids.ids().begin(), ids.ids().end()};
}

std::string random_text(std::mt19937_64& random) {
  static const std::vector<std::string> characters = {
      "a", "a",    "b",      "ab",     "abc",    "bcd",    "A",      "E",       " ",
      " ", " ",    "  ",     "\n",     "\t",     "!",      "'s",     "e\u0301", "\u00C9",
      "s", "\x01", "\u4E2D", "\u3042", "\u2019", "\u0130", "\u200B", "\u00A0",  "aaaaaaaaaaaaaaa"};
  std::string text;
  for (auto left = random() % 120; left > 0; --left) {
    text += characters[random() % characters.size()];
  }
  return text;
}

// The result equals that of running the steps one after another, each over the whole text.
TEST(UnitEngine, GivesWhatItsPartsDoOneAfterAnother) {
  const auto passes = make_piecewise_engine(words(), model());
  const auto slow = passes->make_encoder(std::size_t{1} << 20);
  std::mt19937_64 random(test::seed(80));
  for (unsigned bits = 0; bits < 17; ++bits) {
    const bert_steps steps{.clean_text = (bits & 1) != 0,
                           .handle_chinese_chars = (bits & 2) != 0,
                           .strip_accents = (bits & 4) != 0,
                           .lowercase = (bits & 8) != 0};
    const bert_steps* const some = bits == 16 ? nullptr : &steps;
    const auto normal = some != nullptr ? make_bert_normalizer(steps) : nullptr;
    for (const auto set : test::instruction_sets) {
      if (!can_run(set)) continue;
      for (const std::size_t memory : {std::size_t{1}, std::size_t{1} << 20}) {
        const auto fused = engine(some, {memory, set});
        const auto encoder = fused->make_encoder(memory);
        for (int i = 0; i < 100; ++i) {
          const std::string text = random_text(random);
          std::string buffer;
          const ids_list expected =
              encode(*slow, normal ? normal->normalize(text, buffer) : std::string_view(text));
          ASSERT_EQ(encode(*encoder, text), expected) << "cold " << testing::PrintToString(text);
          ASSERT_EQ(encode(*encoder, text), expected) << "warm " << testing::PrintToString(text);
        }
      }
    }
  }
}

// The limit counts the characters of the normalized word, not the bytes of the raw unit.
TEST(UnitEngine, CountsTheCharactersOfTheNormalizedWord) {
  const bert_steps steps;
  const auto fused = engine(&steps);
  const auto encoder = fused->make_encoder(std::size_t{1} << 20);
  std::string accented;
  for (int i = 0; i < 20; ++i) accented += "e\u0301";
  EXPECT_EQ(encode(*encoder, accented).size(), 20U);
  EXPECT_EQ(encode(*encoder, accented + "e"), ids_list{0});
  EXPECT_EQ(encode(*encoder, std::string(20, 'a')).size(), 20U);
  EXPECT_EQ(encode(*encoder, std::string(21, 'a')), ids_list{0});
}

TEST(UnitEngine, TakesWordsOfAnySize) {
  const bert_steps steps;
  const auto fused = engine(&steps);
  const auto encoder = fused->make_encoder(std::size_t{1} << 20);
  EXPECT_EQ(encode(*encoder, std::string(3000000, 'x') + " a"), (ids_list{0, 1}));
  std::string kana;
  for (int i = 0; i < 100000; ++i) kana += "\u3042";
  EXPECT_EQ(encode(*encoder, kana + "!"), (ids_list{0, 9}));
}

TEST(UnitEngine, SaysWhichWordHasNoPieces) {
  const auto fused = engine(nullptr, {}, false);
  id_buffer ids;
  const auto fault = fused->make_encoder(std::size_t{1} << 20)->encode({"a  xyz a"}, ids);
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->offset_bytes, 3U);
  EXPECT_NE(fault->what.find("'xyz'"), std::string::npos) << fault->what;
}

}  // namespace
}  // namespace millrace::tokenizer::detail
