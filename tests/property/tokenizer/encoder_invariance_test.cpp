// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <millrace/tokenizer/tokenizer.hpp>

#include "bpe/pretoken_table.hpp"
#include "support/encode.hpp"
#include "support/encode_parts.hpp"
#include "support/paths.hpp"
#include "support/sanitized.hpp"
#include "support/seed.hpp"

// The encoders of one tokenizer share a cache. Each encoder also has a cache of its own, whose size
// is set when the encoder is created. Neither cache may affect the ids.
namespace millrace::test {
namespace {

using tokenizer::tokenizer_options;
using ids_list = std::vector<std::int32_t>;

constexpr std::string_view bert_vocabulary =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n##a\n##b\nthe\nthe##\ncamel\n##case\ndon\n'\n##"
    "s\ns\n"
    "t\n1\n##1\n##2\n22\n12345\n.\n,\n!\n\xE4\xB8\xAD\n\xE6\x96\x87\n";
constexpr std::string_view word_level_json = R"({"version": "1.0", "truncation": null,
  "padding": null, "added_tokens": [], "normalizer": null,
  "pre_tokenizer": {"type": "Whitespace"}, "post_processor": null, "decoder": null,
  "model": {"type": "WordLevel", "unk_token": "?",
            "vocab": {"?": 0, "a": 1, "the": 2, "don": 3, "'": 4, "t": 5, "1": 6, "22": 7, "!": 8}}})";

tokenizer_options of(std::string type) {
  tokenizer_options options;
  options.type = std::move(type);
  return options;
}

/// One tokenizer per engine, made from files that are always available.
class families {
 public:
  std::vector<std::pair<std::string, tokenizer_options>> all() const {
    write_text(folder_ / "vocab.txt", std::string(bert_vocabulary));
    write_text(folder_ / "tokenizer.json", std::string(word_level_json));
    std::vector<std::pair<std::string, tokenizer_options>> made;
    tokenizer_options gpt2 = of("GPT2BPETokenizer");
    gpt2.vocab_file = golden("tiny_bpe/vocab.json");
    gpt2.merge_file = golden("tiny_bpe/merges.txt");
    made.emplace_back("GPT-2", gpt2);
    tokenizer_options ranks = of("TikTokenizer");
    ranks.model = golden("tiny_ranks/tiny.tiktoken");
    ranks.tiktoken_pattern = "llama3";
    ranks.special_tokens = {"<|endoftext|>"};
    made.emplace_back("ranks", ranks);
    for (const std::string name : {"bpe", "unigram", "suffix"}) {
      tokenizer_options model = of("SentencePieceTokenizer");
      model.model = golden("tiny_sentencepiece/" + name + ".model");
      made.emplace_back("SentencePiece " + name, model);
    }
    tokenizer_options bert = of("BertWordPieceCase");
    bert.vocab_file = folder_ / "vocab.txt";
    made.emplace_back("BERT", bert);
    tokenizer_options json = of("HuggingFaceTokenizer");
    json.model = folder_ / "tokenizer.json";
    made.emplace_back("WordLevel", json);
    return made;
  }

 private:
  temp_folder folder_;
};

std::vector<std::string> some_texts(std::size_t count, std::uint64_t seed) {
  odd_texts random(seed);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < count; ++i) texts.push_back(random.next());
  return texts;
}

TEST(EncodersOfOneTokenizer, GiveTheSameIdsWhateverTheOthersMeet) {
  const families families;
  const std::uint64_t first = seed(4711);
  const std::vector<std::string> texts = some_texts(400, first);
  for (const auto& [name, options] : families.all()) {
    SCOPED_TRACE(name);
    std::vector<ids_list> expected;
    std::unique_ptr<tokenizer::tokenizer> fresh;  // its caches are almost empty
    for (const std::string& text : texts) {
      if (expected.size() % 100 == 0) fresh = tokenizer::make_tokenizer(options);
      expected.push_back(encode(*fresh->make_encoder(0), text));
    }
    for (const std::size_t memory : {std::size_t{0}, std::size_t{1} << 15, std::size_t{1} << 20}) {
      for (const unsigned count : {1U, 2U, 7U}) {
        const auto tokenizer = tokenizer::make_tokenizer(options);
        std::vector<std::size_t> wrong(count, 0);
        std::vector<std::jthread> threads;
        for (unsigned t = 0; t < count; ++t) {
          threads.emplace_back([&, t] {
            const auto encoder = tokenizer->make_encoder(memory);
            std::mt19937_64 random(first + t);
            for (std::size_t i = 0; i < 2 * texts.size(); ++i) {
              const std::size_t which = random() % texts.size();
              if (encode(*encoder, texts[which]) != expected[which]) ++wrong[t];
            }
          });
        }
        threads.clear();
        EXPECT_EQ(wrong, std::vector<std::size_t>(count, 0)) << memory << " bytes each";
      }
    }
  }
}

// Words that are too long for the tables of words, with few and with many ids.
TEST(EncodersOfOneTokenizer, GiveTheSameIdsForLongWordsAgain) {
  std::mt19937_64 random(seed(32));
  std::vector<std::string> texts;
  for (const std::size_t size : {31U, 32U, 33U, 40U, 64U, 100U, 300U, 1024U, 1025U}) {
    for (const std::string_view letters : {"a", " ", "-", "ab", "the", "abcdefghijklm", "\u4E2D"}) {
      std::string word;
      while (word.size() < size) {
        word += letters == "\u4E2D" ? letters : letters.substr(random() % letters.size(), 1);
      }
      texts.push_back(word);
      texts.push_back("b " + word + " a " + word + "\n" + word);
    }
  }
  const families families;
  for (const auto& [name, options] : families.all()) {
    SCOPED_TRACE(name);
    const auto tokenizer = tokenizer::make_tokenizer(options);
    const auto encoder = tokenizer->make_encoder(std::size_t{1} << 20);
    for (int round = 0; round < 3; ++round) {
      for (const std::string& text : texts) {
        ASSERT_EQ(encode(*encoder, text), encode(*tokenizer->make_encoder(0), text)) << text;
      }
    }
  }
}

// Which spans are right, tests/property/offsets_against_reference.py tests.
TEST(SpansOfTokens, BelongToTheIdsThatEncodeGives) {
  const families families;
  const std::vector<std::string> texts = some_texts(600, seed(4712));
  for (const auto& [name, options] : families.all()) {
    SCOPED_TRACE(name);
    const auto tokenizer = tokenizer::make_tokenizer(options);
    const auto encoder = tokenizer->make_encoder();
    const bool keeps_all_bytes = name == "GPT-2" || name == "ranks";
    for (const std::string& text : texts) {
      tokenizer::id_buffer ids;
      std::vector<tokenizer::byte_span> spans;
      const auto fault = encoder->encode_with_offsets(text, ids, spans);
      ASSERT_FALSE(fault) << fault->what;
      const ids_list found(ids.ids().begin(), ids.ids().end());
      ASSERT_EQ(found, encode(*encoder, text)) << text;
      ASSERT_EQ(spans.size(), found.size());
      const auto is_edge = [&](std::size_t at) {
        return at == text.size() || (static_cast<unsigned char>(text[at]) & 0xC0) != 0x80;
      };
      std::size_t covered = 0;
      for (const auto& [begin, end] : spans) {
        ASSERT_LE(begin, end);
        ASSERT_LE(end, text.size());
        ASSERT_TRUE(is_edge(begin) && is_edge(end)) << text;
        if (!keeps_all_bytes) continue;
        ASSERT_LE(begin, covered) << text;
        covered = std::max(covered, end);
      }
      if (!keeps_all_bytes) continue;
      ASSERT_EQ(covered, text.size()) << text;
    }
  }
}

std::size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t all = 0;
  std::size_t resident = 0;
  statm >> all >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

// Encodes words that never repeat. Their sizes include all sizes that the cache tables can hold.
void meet_new_words(tokenizer::encoder& encoder, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    std::string word = std::to_string(i * 2654435761U);
    if (i % 3 == 0) word += "the" + word;
    if (i % 7 == 0) word += word + word;
    for (char& c : word) c = c == '1' ? 'a' : c == '2' ? 't' : c;
    text += word + ' ';
    if (text.size() < 4000) continue;
    (void)encode(encoder, text);
    text.clear();
  }
}

TEST(EncodersOfOneTokenizer, NeverTakeMoreThanTheyAreGiven) {
  if (under_address_sanitizer || under_thread_sanitizer) {
    GTEST_SKIP() << "a sanitizer's memory cannot be told from the encoder's";
  }
  constexpr std::size_t slack = std::size_t{3} << 20;
  const families families;
  for (const auto& [name, options] : families.all()) {
    SCOPED_TRACE(name);
    const auto tokenizer = tokenizer::make_tokenizer(options);
    meet_new_words(*tokenizer->make_encoder(), 1000);  // fills the shared cache and scratch memory
    std::array<std::size_t, 2> taken{};
    for (const std::size_t budget : {std::size_t{6} << 20, std::size_t{64} << 20}) {
      const std::size_t before = resident_bytes();
      const auto encoder = tokenizer->make_encoder(budget);
      meet_new_words(*encoder, 100000);
      const std::size_t after = resident_bytes();
      EXPECT_LE(after, before + budget + slack);
      taken[budget > std::size_t{6} << 20 ? 1 : 0] = after - std::min(before, after);
    }
    EXPECT_GT(taken[1], taken[0]) << "more is given and nothing is made of it";
  }
}

/// Memory between two pages that cannot be accessed.
class guarded_memory {
 public:
  guarded_memory() {
    void* const mapped = ::mmap(nullptr, usable_bytes + 2 * page_bytes, PROT_NONE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    mapped_ = static_cast<char*>(mapped);
    if (::mprotect(mapped_ + page_bytes, usable_bytes, PROT_READ | PROT_WRITE) != 0) {
      throw std::bad_alloc();
    }
  }
  guarded_memory(const guarded_memory&) = delete;
  guarded_memory& operator=(const guarded_memory&) = delete;
  ~guarded_memory() { ::munmap(mapped_, usable_bytes + 2 * page_bytes); }

  /// @pre text.size() <= usable_bytes
  std::string_view at_begin(std::string_view text) { return put(text, 0); }
  std::string_view at_end(std::string_view text) { return put(text, usable_bytes - text.size()); }

  static constexpr std::size_t page_bytes = std::size_t{64} << 10;
  static constexpr std::size_t usable_bytes = page_bytes;

 private:
  std::string_view put(std::string_view text, std::size_t offset) {
    char* const to = mapped_ + page_bytes + offset;
    std::ranges::copy(text, to);
    return {to, text.size()};
  }

  char* mapped_ = nullptr;
};

// AddressSanitizer does not see every load of a vector unit. An unmapped page does.
TEST(EncodersOfOneTokenizer, ReadNothingAroundATextThatEndsAtAnUnmappedPage) {
  const families families;
  guarded_memory memory;
  std::vector<std::string> texts = some_texts(300, seed(4713));
  for (std::size_t size = 0; size < 150; ++size) {
    texts.push_back(std::string(size, 'a'));
    texts.push_back("the " + std::string(size, ' '));
    texts.push_back(texts[size].substr(0, texts[size].find_last_of(" a") + 1));
  }
  for (const auto& [name, options] : families.all()) {
    SCOPED_TRACE(name);
    const auto tokenizer = tokenizer::make_tokenizer(options);
    const auto encoder = tokenizer->make_encoder(std::size_t{1} << 20);
    for (const std::string& text : texts) {
      const ids_list expected = encode(*encoder, text);
      ASSERT_EQ(encode(*encoder, memory.at_end(text)), expected) << text;
      ASSERT_EQ(encode(*encoder, memory.at_begin(text)), expected) << text;
    }
  }
}

// The words that an attacker would choose: all belong into one line of the tables, which has room
// for two of them. So nearly every look-up fails, and the word is merged again.
TEST(EncodersOfOneTokenizer, GiveTheIdsOfWordsThatAllCollide) {
  using key = tokenizer::detail::word_key<2>;
  constexpr std::uint64_t most_lines = std::uint64_t{1} << 19;  // in an encoder of the usual size
  std::vector<std::string> words;
  std::uint64_t line = 0;
  for (std::uint64_t i = 0; words.size() < 50; ++i) {
    std::array<char, key::max_bytes + 1> word{' '};
    for (std::uint64_t at = 1, rest = i; at < 8; ++at, rest /= 26) {
      word[at] = static_cast<char>('a' + rest % 26);
    }
    const std::uint64_t its_line = key::of(word.data(), 8, word.size()).hash() / 64 % most_lines;
    if (i == 0) line = its_line;
    if (its_line == line) words.emplace_back(word.data(), 8);
  }
  const tokenizer_options options = families().all().front().second;
  const auto tokenizer = tokenizer::make_tokenizer(options);
  const auto plain = tokenizer::make_tokenizer(options);
  std::mt19937_64 random(seed(4714));
  std::string text;
  ids_list expected;
  for (std::size_t i = 0; i < 20'000; ++i) {
    const std::string& word = words[random() % words.size()];
    text += word;
    const ids_list ids = encode(*plain->make_encoder(0), word);
    expected.insert(expected.end(), ids.begin(), ids.end());
  }
  EXPECT_EQ(encode(*tokenizer, text), expected);
}

}  // namespace
}  // namespace millrace::test
