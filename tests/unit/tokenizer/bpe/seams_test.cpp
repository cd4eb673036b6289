// SPDX-License-Identifier: Apache-2.0
#include "bpe/seams.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "support/seed.hpp"

namespace millrace::tokenizer::detail {
namespace {

// Characters of one to four bytes. Some share their first or last bytes.
constexpr std::array<std::string_view, 16> alphabet = {" ",
                                                       "a",
                                                       "\xC3\xA9",
                                                       "\xC3\xAE",
                                                       "\xD0\xB6",
                                                       "\xE3\x81\xAE",
                                                       "\xE3\x81\xAF",
                                                       "\xE3\x82\xAE",
                                                       "\xE3\x83\xBC",
                                                       "\xE4\xB8\x80",
                                                       "\xE4\xB8\xAD",
                                                       "\xE5\xA4\xA7",
                                                       "\xE9\x81\xAE",
                                                       "\xEF\xBC\x81",
                                                       "\xF0\x9D\x84\x9E",
                                                       "\xF0\x9F\x98\x80"};

class random_texts {
 public:
  explicit random_texts(std::uint64_t seed) : random_(seed) {}

  std::size_t up_to(std::size_t most) { return random_() % (most + 1); }
  std::string text(std::size_t most_characters) {
    std::string made;
    for (std::size_t n = 1 + up_to(most_characters - 1); n > 0; --n) {
      made += alphabet[up_to(alphabet.size() - 1)];
    }
    return made;
  }
  // A part of a text that may begin and end inside characters.
  std::string token() {
    const std::string from = text(4);
    const std::size_t begin = up_to(from.size() - 1);
    return from.substr(begin, 1 + up_to(from.size() - begin - 1));
  }

 private:
  std::mt19937_64 random_;
};

bool is_lead(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
}

// True if a token has the end of `left` directly before the beginning of `right`.
bool crosses(const std::vector<std::string>& tokens, std::string_view left,
             std::string_view right) {
  return std::ranges::any_of(tokens, [&](std::string_view token) {
    for (std::size_t at = 1; at < token.size(); ++at) {
      const std::string_view before = token.substr(0, at);
      const std::string_view after = token.substr(at);
      if ((left.ends_with(before) || before.ends_with(left)) &&
          (right.starts_with(after) || after.starts_with(right))) {
        return true;
      }
    }
    return false;
  });
}

// The ends of the fragments of `word`, cut with room for `room` fragments at a time.
std::vector<std::size_t> cut(const seam_finder& seams, std::string_view word, std::size_t room) {
  std::vector<std::size_t> ends;
  std::size_t begin = 0;
  while (begin < word.size()) {
    std::vector<std::size_t> some(room);
    const std::size_t count = seams.cut(word.data(), begin, word.size(), room,
                                        [&](std::size_t i) -> std::size_t& { return some.at(i); });
    ends.insert(ends.end(), some.begin(), some.begin() + static_cast<std::ptrdiff_t>(count));
    begin = ends.back();
  }
  return ends;
}

TEST(Seams, AreOnlyWhereNoTokenCrosses) {
  random_texts random(test::seed(7));
  std::size_t found = 0;
  std::size_t all = 0;
  for (int round = 0; round < 60; ++round) {
    std::vector<std::string> tokens;
    token_table table;
    for (std::size_t n = 1 + random.up_to(30); n > 0; --n) {
      tokens.push_back(random.token());
      table.add(static_cast<std::int32_t>(table.end_id()), tokens.back());
    }
    const seam_finder seams(table);
    for (int i = 0; i < 30; ++i) {
      const std::string word = random.text(80);
      const std::vector<std::size_t> ends = cut(seams, word, 1 + random.up_to(20));
      ASSERT_EQ(ends, cut(seams, word, word.size()));
      ASSERT_TRUE(std::ranges::is_sorted(ends, std::less_equal{}));
      ASSERT_EQ(ends.back(), word.size());
      for (std::size_t at = 1, left = 0; at < word.size(); ++at) {
        if (!is_lead(word[at])) continue;
        std::size_t end = at + 1;
        while (end < word.size() && !is_lead(word[end])) ++end;
        const bool is_seam = !crosses(tokens, std::string_view(word).substr(left, at - left),
                                      std::string_view(word).substr(at, end - at));
        const bool is_cut = std::ranges::binary_search(ends, at);
        ASSERT_TRUE(is_seam || !is_cut) << word << ", byte " << at;
        all += is_seam ? 1 : 0;
        found += is_cut ? 1 : 0;
        left = at;
      }
    }
  }
  // Hashes and the parts of characters that are not compared hide the others.
  EXPECT_GT(found * 10, all * 8) << found << " of " << all;
}

TEST(Seams, PayForWordsThatBeginInChineseJapaneseOrKorean) {
  EXPECT_TRUE(seam_finder::pays_for("\xE3\x81\xAE"));
  EXPECT_TRUE(seam_finder::pays_for(" \xE4\xB8\x80"));
  EXPECT_FALSE(seam_finder::pays_for("word"));
  EXPECT_FALSE(seam_finder::pays_for("\xD0\xB6\xD0\xB6"));
  EXPECT_FALSE(seam_finder::pays_for("\xE3"));
}

}  // namespace
}  // namespace millrace::tokenizer::detail
