// SPDX-License-Identifier: Apache-2.0
#include "split/splitters.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "support/instruction_sets.hpp"
#include "support/seed.hpp"
#include "unit/tokenizer/split/pieces.hpp"

namespace millrace::tokenizer::detail {
namespace {

constexpr std::array windowed_patterns = {
    pattern::r50k,           pattern::cl100k,       pattern::llama3,      pattern::qwen2,
    pattern::qwen35,         pattern::o200k,        pattern::tekken,      pattern::megatron_v1,
    pattern::kimi,           pattern::deepseek_v3,  pattern::starcoder,   pattern::digits_r50k,
    pattern::bert,           pattern::bert_chinese, pattern::white_space, pattern::seed_coder,
    pattern::deepseek_coder, pattern::bloom};

// At least one character of each kind that a pattern distinguishes.
const test::strings characters = {
    "a",      "s",      "t",          "r",          "e",          "v",
    "l",      "S",      "L",          "B",          "'",          "'",
    "'",      "1",      "2",          " ",          " ",          " ",
    "\t",     "\n",     "\n",         "\r",         "!",          "/",
    "/",      "-",      "\x1C",       "\x0B",       "\x7F",       std::string(1, '\0'),
    "\u017F", "\u01C5", "\u02B0",     "\u05D0",     "\u00DF",     "\u0130",
    "\u212A", "\u0430", "\u0410",     "\u4E00",     "\u4E2D",     "\u9FA6",
    "\u3042", "\u30A2", "\u30FC",     "\u30FB",     "\u3005",     "\u3007",
    "\u3040", "\u2F00", "\uAC00",     "\u0301",     "\u0903",     "\u20DD",
    "\u00B2", "\u2167", "\u0663",     "\u00A0",     "\u3000",     "\u2028",
    "\u0085", "\u200B", "\u20AC",     "\u3002",     "\uFF0C",     "\uE000",
    "\u0378", "\u4DC0", "\U0001F600", "\U00020000", "\U00016FF0", "\U00010D40",
    "(",      "|",      ".",          "\u2026",     "\u0964",     "\u060C",
    "\u0966", "\u2E80"};

// The instruction sets of this machine, except the portable one.
std::vector<instruction_set> wider_sets() {
  std::vector<instruction_set> sets;
  for (const auto set : test::instruction_sets) {
    if (set != instruction_set::portable && can_run(set)) sets.push_back(set);
  }
  return sets;
}

// Every splitter must find the same ends as the portable splitter, for any number of ends per call.
class WindowedSplitters : public testing::TestWithParam<pattern> {
 protected:
  void expect_same(std::string_view text, std::size_t batch = 256) const {
    // Copies the text to an allocation of exactly its size, so that ASan detects reads past the
    // end.
    const auto copy = std::make_unique<char[]>(text.size());
    if (!text.empty()) std::memcpy(copy.get(), text.data(), text.size());
    const std::string_view section(copy.get(), text.size());
    const auto expected = test::ends_of(*portable_, section);
    for (const auto& splitter : wider_) {
      ASSERT_EQ(test::ends_of(*splitter, section, batch), expected)
          << testing::PrintToString(text) << " in batches of " << batch;
    }
  }

  void SetUp() override {
    if (wider_sets().empty()) GTEST_SKIP() << "this machine has the portable instructions alone";
    portable_ = make_splitter(GetParam(), instruction_set::portable);
    for (const auto set : wider_sets()) wider_.push_back(make_splitter(GetParam(), set));
  }

 private:
  std::unique_ptr<const word_splitter> portable_;
  std::vector<std::unique_ptr<const word_splitter>> wider_;
};

std::string random_text(std::mt19937_64& random, const test::strings& from, std::size_t most) {
  std::string text;
  for (auto left = random() % most + 1; left > 0; --left) text += from[random() % from.size()];
  return text;
}

TEST_P(WindowedSplitters, FindWhatTheWalkerFinds) {
  std::mt19937_64 random(test::seed(60));
  for (int i = 0; i < 10000; ++i) {
    // Use all characters or just a few. If there are few, the same character often occurs three
    // times in a row. Some rules depend on such repeats.
    test::strings some;
    for (auto left = random() % 7 + 1; left > 0; --left) {
      some.push_back(characters[random() % characters.size()]);
    }
    const std::string text = random_text(random, i % 2 == 0 ? characters : some, 150);
    constexpr std::array<std::size_t, 7> batches = {1, 2, 24, 63, 64, 71, 256};
    expect_same(text, batches[random() % batches.size()]);
  }
}

// Tests the same words at each offset in the 64 bytes of a window. Also tests texts that end at
// each offset.
TEST_P(WindowedSplitters, CareNotWhereAWindowBegins) {
  std::mt19937_64 random(test::seed(61));
  for (int i = 0; i < 12; ++i) {
    const std::string text = random_text(random, characters, 20);
    for (const char* pad : {"x", " ", "1", "!", "\n"}) {
      std::string shifted;
      for (int shift = 0; shift < 128; ++shift) {
        expect_same(shifted + text);
        expect_same(shifted + text + "yz");
        shifted += pad;
      }
    }
  }
}

// If a pretoken ends at the edge of a window, it must be cut there. If it continues in the next
// window, it must not be cut.
TEST_P(WindowedSplitters, EndContractionsAndPrefixesAtTheEdgesOfWindows) {
  for (const char* pad : {"x", "1", "\u4E2D"}) {
    for (const char* edge : {"'s", "'ll", "'LL", "'re", "'\u017F", "'l", ".a", ".ab", " Ab", "B"}) {
      for (const char* after :
           {"a", "A", "\u4E2D", "\u4E2DA ", "\u00E9", "\u0301", "'s", "1", ""}) {
        std::string before;
        for (int shift = 0; shift < 66; ++shift) {
          expect_same(before + edge + after + "Bc d");
          before += pad;
        }
      }
    }
  }
}

TEST_P(WindowedSplitters, FollowRunsOverTheEdgesOfWindows) {
  for (const std::string& one : characters) {
    for (const unsigned length : {21U, 31U, 62U, 63U, 64U, 65U, 127U, 128U, 129U, 200U}) {
      std::string run;
      for (unsigned i = 0; i < length; ++i) run += one;
      for (const char* before : {"", "a", "Ab", " ", "\n", "!", "'", "\u4E2D", "aB\u0301"}) {
        for (const char* after : {"", "a", "A", "'s", "\u0301", " ", "\n", "/", "1"}) {
          expect_same(before + run + after);
        }
      }
    }
  }
}

// Tests words that span many windows, so that a window ends in every state of a word.
TEST_P(WindowedSplitters, GoOnInsideLongWords) {
  std::mt19937_64 random(test::seed(62));
  const std::vector<test::strings> letters = {{"a", "b"},
                                              {"a", "\u0430"},
                                              {"\u4E2D", "\u3042"},
                                              {"a", "\u4E2D", "\u0301"},
                                              {"\u4E2D", "\u4E2D", "\u4E2D", "\u4E2D", "A"},
                                              {"\u3042", "\u30FB", "\u4E2D"}};
  const test::strings ends = {"", "A", "'s", "'ll", "\u0301", " ", "B\u4E2D", "!", "\u4E2D"};
  for (int i = 0; i < 3000; ++i) {
    std::string text = random() % 2 == 0 ? "." : " ";
    for (auto words = random() % 4; words > 0; --words) {
      text += random_text(random, letters[random() % letters.size()], 200);
      text += ends[random() % ends.size()];
    }
    expect_same(text, random() % 2 == 0 ? 1 : 256);
  }
}

// Tests white space that spans many windows, with and without newlines.
TEST_P(WindowedSplitters, GoOnInsideWhiteSpace) {
  std::mt19937_64 random(test::seed(65));
  const std::vector<test::strings> spaces = {
      {" "}, {" ", "\t"}, {" ", "\u00A0", "\u3000"}, {"\t", "\u2028"}, {"\n"}, {"\r", "\n"}};
  const test::strings between = {"",    "'", "\x7F", "a",      "A",      "'s",     "1",     "!",
                                 "!\n", "/", "\n",   " \n\n ", "\u0301", "\u4E2D", "\u3002"};
  for (int i = 0; i < 3000; ++i) {
    std::string text = between[random() % between.size()];
    for (auto runs = random() % 6 + 1; runs > 0; --runs) {
      // Without newlines in most cases, so that such white space becomes long.
      const auto which = random() % (random() % 4 == 0 ? spaces.size() : 3);
      text += random_text(random, spaces[which], 150);
      text += between[random() % 3 == 0 ? random() % between.size() : 0];
    }
    expect_same(text, random() % 2 == 0 ? 1 : 256);
  }
}

void append_code_point(std::string& text, std::uint32_t point) {
  const auto add = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
  if (point < 0x80) return add(point);
  if (point < 0x800) {
    add(0xC0 | point >> 6);
  } else if (point < 0x10000) {
    add(0xE0 | point >> 12);
    add(0x80 | (point >> 6 & 0x3F));
  } else {
    add(0xF0 | point >> 18);
    add(0x80 | (point >> 12 & 0x3F));
    add(0x80 | (point >> 6 & 0x3F));
  }
  add(0x80 | (point & 0x3F));
}

TEST_P(WindowedSplitters, KnowEveryCodePoint) {
  std::mt19937_64 random(test::seed(64));
  const test::strings neighbours = {"a", "A", "1", " ", "\n", "!", "'", "'s", "\u4E2D", ""};
  std::string text;
  for (std::uint32_t point = 0; point < 0x110000; ++point) {
    if (point >= 0xD800 && point < 0xE000) continue;  // surrogates are not text
    append_code_point(text, point);
    text += neighbours[random() % neighbours.size()];
    if (point % 1024 == 1023) {
      expect_same(text);
      text.clear();
    }
  }
}

// Callers must pass valid UTF-8. For other texts, the pretokens must still cover all bytes, and
// nothing may be read past the end.
TEST(Splitters, CoverTextsThatAreNotUtf8) {
  std::mt19937_64 random(test::seed(63));
  for (const pattern pattern : windowed_patterns) {
    auto sets = wider_sets();
    sets.push_back(instruction_set::portable);
    for (const instruction_set set : sets) {
      const auto splitter = make_splitter(pattern, set);
      for (int i = 0; i < 3000; ++i) {
        const std::size_t size = random() % 100;
        const auto bytes = std::make_unique<char[]>(size);
        for (std::size_t at = 0; at < size; ++at) {
          bytes[at] = static_cast<char>(random() % 4 == 0 ? ' ' : random());
        }
        ASSERT_NO_THROW(test::ends_of(*splitter, {bytes.get(), size}));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Patterns, WindowedSplitters, testing::ValuesIn(windowed_patterns));

}  // namespace
}  // namespace millrace::tokenizer::detail
