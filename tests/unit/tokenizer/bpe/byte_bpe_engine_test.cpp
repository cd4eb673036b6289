// SPDX-License-Identifier: Apache-2.0
#include "bpe/byte_bpe_engine.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/formats/detail/utf8.hpp>

#include "naive_bpe.hpp"
#include "split/splitters.hpp"
#include "support/instruction_sets.hpp"

namespace millrace::tokenizer::detail {
namespace {

using ids_list = std::vector<std::int32_t>;

ids_list encode(section_encoder& encoder, std::string_view text) {
  // Copies the text to an allocation of exactly its size, so that ASan detects reads past the end.
  const std::vector<char> exact(text.begin(), text.end());
  id_buffer ids;
  EXPECT_FALSE(encoder.encode({{exact.data(), exact.size()}}, ids).has_value());
  return {ids.ids().begin(), ids.ids().end()};
}

// Encodes the splitter's words one at a time. A word that is in `wholes` becomes that token. Every
// other word is merged by the definition of BPE.
ids_list expected_ids(const test::naive_bpe& naive, const word_splitter& splitter,
                      std::string_view text, const std::map<std::string, std::int32_t>& wholes) {
  ids_list ids;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = 0;
    splitter.next_ends(text, at, {&end, 1});
    const std::string word(text.substr(at, end - at));
    at = end;
    if (const auto whole = wholes.find(word); whole != wholes.end()) {
      ids.push_back(whole->second);
      continue;
    }
    const ids_list merged = naive.encode(word);
    ids.insert(ids.end(), merged.begin(), merged.end());
  }
  return ids;
}

const std::vector<std::string>& characters() {
  static const std::vector<std::string> all = {
      "a",      "b",      "c",      " ",      " ",      "1",      "\n",         "\u3042", "\u3044",
      "\u3046", "\u4E2D", "\u6587", "\uAC00", "\u0436", "\u00E9", "\U0001F600", "!",      "."};
  return all;
}

std::string random_text(std::mt19937& random) {
  const std::size_t first = random() % 4 == 0 ? 7 : 0;  // sometimes without any ASCII
  std::string text;
  for (std::size_t count = random() % 120; count > 0; --count) {
    const std::size_t range = characters().size() - first;
    const std::string& next = characters()[first + random() % range];
    for (std::size_t times = random() % 8 == 0 ? 1 + random() % 40 : 1; times > 0; --times) {
      text += next;
    }
  }
  return text;
}

std::string bytes_of_characters() {
  std::string bytes;
  for (const std::string& character : characters()) bytes += character;
  return bytes;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t size = formats::utf8_sequence_bytes(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

byte_bpe_vocabulary vocabulary_of(const test::naive_bpe& naive, bool whole_words_first) {
  return {naive.tokens, naive.byte_ids, naive.rules, whole_words_first};
}

// Ids must not depend on batches, caches, vector instructions or seams. (A seam is a place where a
// text can be cut without changing its ids.) The test uses cold and warm caches, small and large
// caches, and every instruction set.
TEST(ByteBpeEngine, GivesTheIdsOfWordByWordMerging) {
  std::mt19937 random(17);
  for (int round = 0; round < 3; ++round) {
    const test::naive_bpe naive(random, bytes_of_characters(), 400);
    const auto reference = make_splitter(pattern::r50k, instruction_set::portable);
    std::vector<std::string> texts;
    texts.reserve(150);
    for (int i = 0; i < 150; ++i) texts.push_back(random_text(random));
    for (const instruction_set set : test::instruction_sets) {
      if (!can_run(set)) continue;
      for (const std::size_t memory :
           {std::size_t{0}, std::size_t{1} << 14, std::size_t{1} << 22}) {
        const auto engine = make_byte_bpe_engine(vocabulary_of(naive, false), pattern::r50k,
                                                 {.shared_bytes = memory, .set = set});
        const auto encoder = engine->make_encoder(memory);
        for (int pass = 0; pass < 2; ++pass) {
          for (const std::string& text : texts) {
            ASSERT_EQ(encode(*encoder, text), expected_ids(naive, *reference, text, {})) << text;
          }
        }
      }
    }
  }
}

// Long runs of one byte have short keys, which must tell runs of all sizes from each other and from
// words.
TEST(ByteBpeEngine, TellsRunsOfOneByteApart) {
  std::mt19937 random(23);
  const std::string bytes = std::string(" -a1=\n\t") + '\0';
  const test::naive_bpe naive(random, bytes, 200);
  const auto reference = make_splitter(pattern::r50k, instruction_set::portable);
  std::vector<std::string> texts;
  for (std::size_t size = 1; size < 140; ++size) {
    std::string text;
    for (const char byte : bytes) {
      text += std::string(size, byte) + (size % 2 == 0 ? "x" : "\n");
      text += std::string(size, byte) + '!' + std::string(size, byte) + ' ';  // nearly a run
    }
    texts.push_back(text);
  }
  for (const instruction_set set : test::instruction_sets) {
    if (!can_run(set)) continue;
    const auto engine =
        make_byte_bpe_engine(vocabulary_of(naive, false), pattern::r50k, {.set = set});
    const auto encoder = engine->make_encoder(std::size_t{1} << 22);
    for (int pass = 0; pass < 2; ++pass) {
      for (const std::string& text : texts) {
        ASSERT_EQ(encode(*encoder, text), expected_ids(naive, *reference, text, {})) << text;
      }
    }
  }
}

// A token that merging never produces is found only if it is a whole pretoken. It is not found as a
// fragment of a longer word.
TEST(ByteBpeEngine, TakesWholeWordsFirstWhereAsked) {
  std::mt19937 random(19);
  test::naive_bpe naive(random, bytes_of_characters(), 300);
  std::map<std::string, std::int32_t> wholes;
  for (std::int64_t id = 0; id < naive.tokens.end_id(); ++id) {
    wholes.emplace(naive.tokens.bytes(id), static_cast<std::int32_t>(id));
  }
  for (int i = 0; i < 200; ++i) {
    std::string word = i % 2 == 0 ? "\u3042" : " a";
    while (wholes.contains(word)) word += characters()[7 + random() % 6];
    const auto id = static_cast<std::int32_t>(naive.tokens.end_id());
    naive.tokens.add(id, word);
    wholes.emplace(word, id);
  }
  const auto reference = make_splitter(pattern::r50k, instruction_set::portable);
  for (const instruction_set set : test::instruction_sets) {
    if (!can_run(set)) continue;
    const auto engine =
        make_byte_bpe_engine(vocabulary_of(naive, true), pattern::r50k, {.set = set});
    const auto encoder = engine->make_encoder(0);
    for (int i = 0; i < 1200; ++i) {
      std::string text = random_text(random);
      if (i % 3 == 0) text = naive.tokens.bytes(256 + static_cast<std::int64_t>(random() % 500));
      // The ids of text that is not UTF-8 are unspecified.
      if (!is_utf8(text)) continue;
      ASSERT_EQ(encode(*encoder, text), expected_ids(naive, *reference, text, wholes)) << text;
    }
  }
}

TEST(ByteBpeEngine, TakesWholeWordsFirstHoweverLong) {
  std::mt19937 random(31);
  test::naive_bpe naive(random, "ab", 10);
  for (const std::size_t size : {20U, 40U, 600U, 1024U, 1025U, 4000U}) {
    const auto id = static_cast<std::int32_t>(naive.tokens.end_id());
    const std::string word(size, 'q');
    naive.tokens.add(id, word);
    const auto engine = make_byte_bpe_engine(vocabulary_of(naive, true), pattern::r50k);
    const auto encoder = engine->make_encoder(0);
    for (int pass = 0; pass < 2; ++pass) EXPECT_EQ(encode(*encoder, word), ids_list{id});
    EXPECT_EQ(encode(*encoder, word + "qqq").size(), size + 3);
  }
}

TEST(ByteBpeEngine, DropsBytesWithoutToken) {
  std::mt19937 random(23);
  test::naive_bpe naive(random, "ab", 10);
  naive.byte_ids['x'] = -1;
  const auto engine = make_byte_bpe_engine(vocabulary_of(naive, false), pattern::r50k);
  const auto encoder = engine->make_encoder(0);
  EXPECT_EQ(encode(*encoder, "xxx"), ids_list());
  EXPECT_EQ(encode(*encoder, "xxx"), ids_list());
  EXPECT_EQ(encode(*encoder, "axb"), naive.encode("ab"));
  EXPECT_EQ(encode(*encoder, std::string(2000, 'x') + "ab"), naive.encode("ab"));
}

}  // namespace
}  // namespace millrace::tokenizer::detail
