// SPDX-License-Identifier: Apache-2.0
#include "bpe/pretoken_table.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace millrace::tokenizer::detail {
namespace {

using ids_list = std::vector<std::int32_t>;

template <std::size_t Words>
word_key<Words> key_of(const std::string& word) {
  return word_key<Words>::of(word.data(), word.size(), word.size());
}

template <class Table>
ids_list ids_in(const Table& table, const typename Table::key& key) {
  const auto* found = Table::find(table.line_of(key.hash()), key);
  if (found == nullptr) return {-1};
  ids_list ids(found->capacity);
  found->copy_to(ids.data());
  ids.resize(found->count());
  return ids;
}

template <std::size_t Words>
void expect_keys_tell_words_apart() {
  const std::string text = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz0123456789";
  for (std::size_t size = 0; size <= word_key<Words>::max_bytes; ++size) {
    const std::string word = text.substr(3, size);
    // First, the word is inside a text. Then it is at the end of an allocation.
    EXPECT_EQ(word_key<Words>::of(text.data() + 3, size, text.size() - 3), key_of<Words>(word));
    if (size == 0) continue;
    EXPECT_NE(key_of<Words>(word), key_of<Words>(word.substr(1)));
    EXPECT_NE(key_of<Words>(word), key_of<Words>(word.substr(0, size - 1)));
    EXPECT_NE(key_of<Words>(word), key_of<Words>(word.substr(0, size - 1) + '\0'));
  }
  EXPECT_NE(key_of<Words>(std::string(2, '\0')), key_of<Words>(std::string(3, '\0')));
}

TEST(WordKey, TellsWordsApartByBytesAndSize) {
  expect_keys_tell_words_apart<2>();
  expect_keys_tell_words_apart<4>();
}

TEST(WordKey, TellsRunsFromWords) {
  using key = word_key<2>;
  std::set<std::array<std::uint64_t, 2>> seen;
  for (const char byte : {'\0', 'a', '\xFF'}) {
    for (std::size_t size = 1; size <= key::max_bytes; ++size) {
      seen.insert(key_of<2>(std::string(size, byte)).part);
    }
    for (std::size_t size = key::max_bytes + 1; size <= key::max_run_bytes; ++size) {
      const key run = key::of_run(byte, size);
      EXPECT_NE(run, key{});
      EXPECT_EQ(run.size(), size);
      EXPECT_EQ(run.marked(true).unmarked(), run);
      EXPECT_TRUE(seen.insert(run.part).second) << size;
    }
  }
}

template <std::size_t Words>
void expect_hashes_depend_on_all_bits() {
  const word_key<Words> key = key_of<Words>("some word");
  for (std::size_t bit = 0; bit < 64 * Words; ++bit) {
    word_key<Words> other = key;
    other.part[bit / 64] ^= std::uint64_t{1} << bit % 64;
    // A table ignores the lowest six bits of a hash. The next bits are the number of the line.
    EXPECT_NE(other.hash() >> 6 & 0xFFFFFF, key.hash() >> 6 & 0xFFFFFF) << bit;
    EXPECT_NE(other.multiplied_hash() >> 6 & 0xFFFF, key.multiplied_hash() >> 6 & 0xFFFF) << bit;
    EXPECT_NE(other.multiplied_hash() >> 48, key.multiplied_hash() >> 48) << bit;
  }
}

TEST(WordKey, HashesDependOnAllBits) {
  expect_hashes_depend_on_all_bits<2>();
  expect_hashes_depend_on_all_bits<4>();
}

// A look-up returns the ids that were stored for the word, or null. It always finds the entry that
// was stored last.
template <std::size_t Words>
void expect_table_forgets_but_never_lies(unsigned line_bits) {
  pretoken_table<Words> table(line_bits);
  std::map<std::string, ids_list> put;
  std::mt19937 random(7);
  std::size_t known = 0;
  for (int i = 0; i < 5000; ++i) {
    std::string word(1 + random() % word_key<Words>::max_bytes, ' ');
    for (char& c : word) c = static_cast<char>('a' + random() % 3);
    ids_list ids(random() % (table.line_of(0).found[0].capacity + 1));
    for (std::int32_t& id : ids) id = static_cast<std::int32_t>(random() % (1U << 24));
    const auto key = key_of<Words>(word);
    const ids_list before = ids_in(table, key);
    if (before != ids_list{-1}) {
      ++known;
      EXPECT_EQ(before, put.at(word)) << word;
    }
    if (before == ids_list{-1}) {
      typename pretoken_table<Words>::ids found;
      found.set(ids);
      table.put(key, key.hash(), found);
      put[word] = ids;
      EXPECT_EQ(ids_in(table, key), ids) << word;
    }
  }
  EXPECT_GT(known, 0U);
}

TEST(PretokenTable, ForgetsButNeverLies) {
  for (const unsigned bits : {1U, 4U, 12U}) {
    expect_table_forgets_but_never_lies<2>(bits);
    expect_table_forgets_but_never_lies<4>(bits);
  }
}

// Words that belong into one line.
std::vector<word_key<2>> keys_of_one_line(const pretoken_table<2>& table, std::size_t count) {
  std::vector<word_key<2>> keys;
  for (int i = 0; keys.size() < count; ++i) {
    const auto key = key_of<2>(std::to_string(i));
    if (&table.line_of(key.hash()) == &table.line_of(0)) keys.push_back(key);
  }
  return keys;
}

TEST(PretokenTable, KeepsTheFirstWordOfALineForAWhile) {
  pretoken_table<2> table(1);
  const auto keys = keys_of_one_line(table, 12);
  std::size_t puts = 0;  // while the first word is there
  for (std::size_t i = 0; i < keys.size(); ++i) {
    pretoken_table<2>::ids found;
    found.set(ids_list{static_cast<std::int32_t>(i)});
    table.put(keys[i], keys[i].hash(), found);
    EXPECT_EQ(ids_in(table, keys[i]), ids_list{static_cast<std::int32_t>(i)});
    if (ids_in(table, keys[0]) != ids_list{-1}) puts = i + 1;
  }
  EXPECT_GT(puts, 3U);
  EXPECT_LT(puts, keys.size());
}

// Loops that copy ids compare whole keys, so they must not find a word with special ids.
template <std::size_t Words>
void expect_special_words_have_marked_keys() {
  pretoken_table<Words> table(1);
  const auto key = key_of<Words>("word");
  typename pretoken_table<Words>::ids found;
  const auto stored = [&] { return table.line_of(key.hash()).words[0]; };
  found.set(ids_list{1, 2});
  table.put(key, key.hash(), found);
  EXPECT_EQ(stored(), key);
  found.set_elsewhere();
  table.put(key, key.hash(), found);
  EXPECT_NE(stored(), key);
  EXPECT_EQ(stored().unmarked(), key);
  const auto* known = table.find(table.line_of(key.hash()), key);
  ASSERT_NE(known, nullptr);
  EXPECT_TRUE(known->is_elsewhere());
  found.set(ids_list{3});
  table.put(key, key.hash(), found);  // replaces the entry and its mark
  EXPECT_EQ(stored(), key);
  EXPECT_EQ(ids_in(table, key), ids_list{3});
}

TEST(PretokenTable, MarksTheKeysOfSpecialWords) {
  expect_special_words_have_marked_keys<2>();
  expect_special_words_have_marked_keys<4>();
}

TEST(WordIds, AreSpecialOnlyWhenSaid) {
  word_ids<4> ids;
  ids.set(ids_list{(1 << 24) - 1, 2, 3, 4});
  EXPECT_FALSE(ids.is_special());
  EXPECT_EQ(ids.count(), 4U);
  ids.set_whole_only();
  EXPECT_TRUE(ids.is_special());
  EXPECT_TRUE(ids.is_whole_only());
  EXPECT_EQ(ids.count(), 4U);
  ids.set_elsewhere();
  EXPECT_TRUE(ids.is_special());
  EXPECT_TRUE(ids.is_elsewhere());
  EXPECT_FALSE(ids.is_whole_only());
}

}  // namespace
}  // namespace millrace::tokenizer::detail
