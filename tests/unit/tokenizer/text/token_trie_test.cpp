// SPDX-License-Identifier: Apache-2.0
#include "text/token_trie.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

#include "support/seed.hpp"
#include "text/token_index.hpp"

namespace millrace::tokenizer::detail {
namespace {

TEST(TokenTrie, AgreesWithAMap) {
  std::mt19937_64 random(test::seed(1));
  std::map<std::string, std::int32_t> known;
  token_trie trie;
  token_index index(20000);
  const auto word_of = [&] {
    // Long words share a prefix, so the prefix alone does not distinguish them.
    std::string word(random() % 4 == 0 ? 18 : 0, 'x');
    word.resize(word.size() + 1 + random() % 6);
    for (std::size_t i = word.size() > 17 ? 18 : 0; i < word.size(); ++i) {
      word[i] = static_cast<char>(random() % 5 * 60);
    }
    return word;
  };
  for (std::int32_t id = 0; id < 20000; ++id) {
    const std::string word = word_of();
    trie.add(word, id);
    const auto there = known.find(word);
    EXPECT_EQ(index.add(known.insert_or_assign(word, id).first->first, id), there == known.end());
  }
  for (int i = 0; i < 20000; ++i) {
    const std::string word = word_of();
    const auto node = trie.walk(token_trie::root, word);
    const auto expected = known.find(word);
    const auto found = node == token_trie::nowhere ? token_trie::none : trie.token(node);
    ASSERT_EQ(found, expected == known.end() ? token_trie::none : expected->second);
    ASSERT_EQ(index.find(word) == token_index::none, expected == known.end());
  }
}

}  // namespace
}  // namespace millrace::tokenizer::detail
