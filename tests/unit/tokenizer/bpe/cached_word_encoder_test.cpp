// SPDX-License-Identifier: Apache-2.0
#include "bpe/cached_word_encoder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "split/splitters.hpp"
#include "support/instruction_sets.hpp"
#include "support/seed.hpp"

namespace millrace::tokenizer::detail {
namespace {

using ids_list = std::vector<std::int32_t>;

// A model that gives every word different ids. The number of ids varies even among words of the
// same size, from none to more than any table holds.
ids_list ids_of(std::string_view word) {
  std::uint32_t hash = 2166136261;
  for (const char c : word) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619;
  ids_list ids(hash % 7 == 0 ? hash / 7 % 13 : hash % 3);
  for (std::int32_t& id : ids) {
    hash = hash * 16777619 + 1;
    id = static_cast<std::int32_t>(hash >> 8);
  }
  return ids;
}

class counting_model {
 public:
  std::optional<encode_fault> operator()(std::string_view word, id_buffer& ids) {
    ++asked;
    if (word == "fault") return encode_fault{2, "a fault"};
    ids.append(ids_of(word));
    return std::nullopt;
  }
  std::size_t asked = 0;
};

ids_list expected_ids(std::string_view text, const word_splitter& splitter, leading_space space) {
  ids_list ids;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = 0;
    splitter.next_ends(text, at, {&end, 1});
    std::string_view word = text.substr(at, end - at);
    if (space == leading_space::is_none && word.size() > 1 && word.front() == ' ') {
      word.remove_prefix(1);
    }
    const ids_list some = ids_of(word);
    ids.insert(ids.end(), some.begin(), some.end());
    at = end;
  }
  return ids;
}

ids_list encode(cached_word_encoder& words, std::string_view text, const word_splitter& splitter,
                counting_model& model) {
  // Copies the text to an allocation of exactly its size, so that ASan detects reads past the end.
  const std::vector<char> exact(text.begin(), text.end());
  id_buffer ids;
  EXPECT_FALSE(words.encode({exact.data(), exact.size()}, splitter, ids, model).has_value());
  return {ids.ids().begin(), ids.ids().end()};
}

std::string random_text(std::mt19937_64& random) {
  // Sizes at and near the limits of the keys, with and without a leading space.
  constexpr std::size_t sizes[] = {1, 1, 2, 3, 5, 8, 13, 14, 15, 16, 17, 29, 30, 31, 32, 33, 70};
  std::string text;
  for (auto words = random() % 60; words > 0; --words) {
    const std::size_t size = sizes[random() % std::size(sizes)];
    for (std::size_t i = 0; i < size; ++i) text += static_cast<char>('a' + random() % 3);
    text.append(random() % 4 == 0 ? random() % 4 : 1, random() % 8 == 0 ? '\n' : ' ');
  }
  return text;
}

TEST(CachedWordEncoder, GivesWhatTheModelDoesOnEachInstructionSetAndWithTablesOfAnySize) {
  const auto splitter = make_splitter(pattern::bert);
  for (const auto set : test::instruction_sets) {
    if (!can_run(set)) continue;
    for (const auto space : {leading_space::counts, leading_space::is_none}) {
      for (const std::size_t memory :
           {std::size_t{1}, std::size_t{1} << 12, std::size_t{1} << 22}) {
        std::mt19937_64 random(test::seed(70));
        shared_pretoken_cache shared(memory);
        cached_word_encoder words(memory, shared, set, space);
        counting_model model;
        for (int i = 0; i < 400; ++i) {
          const std::string text = random_text(random);
          const ids_list expected = expected_ids(text, *splitter, space);
          ASSERT_EQ(encode(words, text, *splitter, model), expected) << "cold: " << text;
          ASSERT_EQ(encode(words, text, *splitter, model), expected) << "warm: " << text;
        }
      }
    }
  }
}

// A key is made of 16 bytes, which must not reach beyond the text.
TEST(CachedWordEncoder, ReadsNothingAfterTheText) {
  const auto splitter = make_splitter(pattern::bert);
  for (const auto set : test::instruction_sets) {
    if (!can_run(set)) continue;
    shared_pretoken_cache shared(std::size_t{1} << 12);
    for (const auto space : {leading_space::counts, leading_space::is_none}) {
      cached_word_encoder words(std::size_t{1} << 12, shared, set, space);
      counting_model model;
      for (std::size_t last = 0; last < 40; ++last) {
        for (const char* const before : {"", "word", "word word"}) {
          const std::string text = std::string(before) + ' ' + std::string(last, 'a');
          EXPECT_EQ(encode(words, text, *splitter, model), expected_ids(text, *splitter, space));
        }
      }
    }
  }
}

TEST(CachedWordEncoder, AsksForEachWordOnce) {
  const auto splitter = make_splitter(pattern::bert);
  for (const auto set : test::instruction_sets) {
    if (!can_run(set)) continue;
    shared_pretoken_cache shared(std::size_t{1} << 20);
    cached_word_encoder words(std::size_t{1} << 20, shared, set, leading_space::is_none);
    counting_model model;
    const std::string long_key(20, 'l');
    const std::string no_key(40, 'n');
    std::string text = "word a word\nword a (word) a-word";
    for (int i = 0; i < 2; ++i) text.append(" ").append(long_key).append(" ").append(no_key);
    encode(words, text, *splitter, model);
    EXPECT_EQ(model.asked, 8U) << "word a \\n ( ) - and two long ones";
    encode(words, text, *splitter, model);
    EXPECT_EQ(model.asked, 8U);
  }
}

// Once one encoder has met a word, no other encoder computes its ids, unless it has too many for a
// table.
TEST(CachedWordEncoder, AsksForNoWordThatAnotherHasMet) {
  const auto splitter = make_splitter(pattern::bert);
  std::string text;
  std::size_t unshared = 0;
  for (int i = 0; i < 200; ++i) {
    const std::string word = "w" + std::to_string(1000 + i);
    text += word;
    text += ' ';
    if (ids_of(word).size() > word_batch::short_table::ids::capacity) ++unshared;
  }
  ASSERT_LT(unshared, 60U);
  shared_pretoken_cache shared(std::size_t{1} << 20);
  counting_model model;
  for (const std::size_t most : {std::size_t{201}, unshared}) {
    cached_word_encoder words(0, shared, best_instruction_set(), leading_space::is_none);
    model.asked = 0;
    EXPECT_EQ(encode(words, text, *splitter, model),
              expected_ids(text, *splitter, leading_space::is_none));
    EXPECT_LE(model.asked, most);
  }
}

TEST(CachedWordEncoder, KeepsWordsApartThatDifferInTheirSpaceAlone) {
  const auto splitter = make_splitter(pattern::bert);
  shared_pretoken_cache shared(std::size_t{1} << 20);
  cached_word_encoder words(std::size_t{1} << 20, shared, best_instruction_set(),
                            leading_space::counts);
  counting_model model;
  EXPECT_EQ(encode(words, "ab ab", *splitter, model),
            expected_ids("ab ab", *splitter, leading_space::counts));
  EXPECT_EQ(model.asked, 2U);
}

TEST(CachedWordEncoder, SaysWhereAFaultIs) {
  const auto splitter = make_splitter(pattern::bert);
  shared_pretoken_cache shared(std::size_t{1} << 20);
  cached_word_encoder words(std::size_t{1} << 20, shared, best_instruction_set(),
                            leading_space::is_none);
  counting_model model;
  id_buffer ids;
  for (int i = 0; i < 2; ++i) {
    const auto fault = words.encode("no  fault", *splitter, ids, model);
    ASSERT_TRUE(fault.has_value());
    EXPECT_EQ(fault->offset_bytes, 6U) << "two bytes into the word";
    EXPECT_EQ(fault->what, "a fault");
  }
}

}  // namespace
}  // namespace millrace::tokenizer::detail
