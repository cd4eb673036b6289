// SPDX-License-Identifier: Apache-2.0
#include "bpe/shared_pretoken_cache.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace millrace::tokenizer::detail {
namespace {

template <class Table>
struct listed_word {
  typename Table::key key;
  typename Table::ids ids;
};

// Returns different words. Each has its own ids.
template <class Table>
std::vector<listed_word<Table>> some_words(std::size_t count) {
  std::vector<listed_word<Table>> words;
  for (std::size_t i = 0; i < count; ++i) {
    // Short words differ only in their first part, long words in all parts.
    std::string word = std::to_string(i);
    if (i % 3 != 0) word = word + std::string(Table::key::max_bytes - word.size() - i % 2, 'x');
    listed_word<Table> one{Table::key::of(word.data(), word.size(), word.size()), {}};
    const auto id = static_cast<std::int32_t>(i);
    one.ids.set(std::array{id, id + 1});
    words.push_back(one);
  }
  return words;
}

template <class Ids>
bool equal(const Ids& a, const Ids& b) {
  std::array<std::int32_t, Ids::capacity> of_a{};
  std::array<std::int32_t, Ids::capacity> of_b{};
  a.copy_to(of_a.data());
  b.copy_to(of_b.data());
  return a.count() == b.count() && of_a == of_b;
}

template <class Table>
class SharedPretokenTable : public testing::Test {};
using tables = testing::Types<word_batch::short_table, word_batch::long_table>;
TYPED_TEST_SUITE(SharedPretokenTable, tables);

TYPED_TEST(SharedPretokenTable, FindsWordsOnceTheyAreAdded) {
  const auto words = some_words<TypeParam>(1000);
  shared_pretoken_table<TypeParam> table(12);
  for (const auto& word : words) EXPECT_EQ(table.find(word.key, word.key.hash()), nullptr);
  std::size_t turned_away = 0;
  for (const auto& word : words) {
    table.add(word.key, word.key.hash(), word.ids);
    const auto* found = table.find(word.key, word.key.hash());
    if (found == nullptr) {
      ++turned_away;
    } else {
      EXPECT_TRUE(equal(*found, word.ids));
    }
  }
  EXPECT_LT(turned_away, 100U) << "of 1000, in room for 4096 or 8192";
}

TYPED_TEST(SharedPretokenTable, KeepsWordsWhereTheyAre) {
  const auto words = some_words<TypeParam>(500);
  shared_pretoken_table<TypeParam> table(1);  // two lines
  std::vector<const typename TypeParam::ids*> places;
  for (const auto& word : words) {
    table.add(word.key, word.key.hash(), word.ids);
    table.add(word.key, word.key.hash(), word.ids);  // changes nothing
    places.push_back(table.find(word.key, word.key.hash()));
  }
  std::size_t in = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    EXPECT_EQ(table.find(words[i].key, words[i].key.hash()), places[i]);
    in += places[i] != nullptr ? 1U : 0U;
  }
  EXPECT_EQ(in, 2 * TypeParam::ways);
}

// At any time, a search finds only complete words that some thread has added.
TYPED_TEST(SharedPretokenTable, GivesWholeWordsWhileThreadsAddThem) {
  const auto words = some_words<TypeParam>(3000);
  for (const unsigned line_bits : {4U, 12U}) {
    shared_pretoken_table<TypeParam> table(line_bits);
    std::atomic<int> wrong = 0;
    std::atomic<int> found_before_added = 0;
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        std::mt19937 random(t);
        for (int i = 0; i < 30000; ++i) {
          const auto& word = words[random() % words.size()];
          if (const auto* found = table.find(word.key, word.key.hash())) {
            if (!equal(*found, word.ids)) ++wrong;
            ++found_before_added;
          } else {
            table.add(word.key, word.key.hash(), word.ids);
          }
        }
      });
    }
    threads.clear();
    EXPECT_EQ(wrong, 0);
    EXPECT_GT(found_before_added, 100);
  }
}

// Another encoder has an overflow cache of its own.
TEST(SharedPretokenTable, KeepsNoPlacesInTheOverflowCacheOfOneEncoder) {
  using table = word_batch::short_table;
  shared_pretoken_table<table> shared(4);
  const auto key = table::key::of("word", 4, 4);
  table::ids found;
  found.set_elsewhere({.begin = 5, .count = 6, .generation = 1});
  shared.add(key, key.hash(), found);
  const auto* known = shared.find(key, key.hash());
  ASSERT_NE(known, nullptr);
  EXPECT_TRUE(known->is_elsewhere());
  EXPECT_EQ(known->place().generation, 0U);
}

}  // namespace
}  // namespace millrace::tokenizer::detail
