// SPDX-License-Identifier: Apache-2.0
#include "input/array_lines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>

#include <millrace/error.hpp>

#include "support/compressed.hpp"
#include "support/paths.hpp"
#include "support/read_source.hpp"
#include "support/seed.hpp"
#include "support/text_source.hpp"

namespace millrace::preprocess {
namespace {

using namespace std::string_literals;

struct conversion {
  std::string text;
  std::optional<std::uint64_t> fault_at;
  bool operator==(const conversion&) const = default;
};

std::ostream& operator<<(std::ostream& out, const conversion& each) {
  out << testing::PrintToString(each.text);
  if (each.fault_at) out << ", fault at byte " << *each.fault_at;
  return out;
}

conversion convert(const std::string& text, std::size_t inner_step, std::size_t step) {
  array_lines lines(std::make_unique<test::text_source>(text, inner_step), "in.json");
  conversion result;
  std::string part(step, '?');
  try {
    while (const std::size_t n = lines.read(std::as_writable_bytes(std::span(part)))) {
      result.text.append(part, 0, n);
    }
    EXPECT_EQ(lines.read(std::as_writable_bytes(std::span(part))), 0U) << "the end stays";
  } catch (const format_error& e) {
    EXPECT_EQ(e.path(), "in.json");
    result.fault_at = e.offset();
  }
  return result;
}

bool is_space(char c) {
  return std::string_view(" \t\n\r").find(c) != std::string_view::npos;
}

// Reference implementation of the conversion that array_lines.hpp describes. It converts the whole
// text at once, element by element.
conversion naive(std::string text) {
  std::size_t at = text.starts_with("\xEF\xBB\xBF") ? 3 : 0;
  const std::size_t begin = at;
  while (at < text.size() && is_space(text[at])) ++at;
  if (at == text.size() || text[at] != '[') return {text, std::nullopt};
  for (std::size_t i = begin; i <= at; ++i) {
    if (text[i] != '\t') text[i] = ' ';
  }
  const auto fault = [&](std::size_t where) { return conversion{text.substr(0, where), where}; };
  for (bool first = true;; first = false) {
    ++at;
    bool empty = true;
    for (int depth = 0; at < text.size(); ++at) {
      if (depth == 0 && (text[at] == ',' || text[at] == ']')) break;
      if (text[at] == '\n' || text[at] == '\r') text[at] = ' ';
      empty = empty && is_space(text[at]);
      if (text[at] == '[' || text[at] == '{') ++depth;
      if ((text[at] == ']' || text[at] == '}') && depth > 0) --depth;
      if (text[at] != '"') continue;
      for (++at; at < text.size() && text[at] != '"'; ++at) {
        if (text[at] == '\\' && at + 1 < text.size() && text[at + 1] != '\n' &&
            text[at + 1] != '\r') {
          ++at;
        } else if (text[at] == '\n' || text[at] == '\r') {
          text[at] = '\x01';
        }
      }
      if (at == text.size()) break;
    }
    if (at >= text.size()) return fault(text.size());
    if (empty && (text[at] == ',' || !first)) return fault(at);
    if (text[at] == ']') break;
    text[at] = '\n';
  }
  text[at] = ' ';
  for (++at; at < text.size(); ++at) {
    if (!is_space(text[at])) return fault(at);
    if (text[at] != '\t') text[at] = ' ';
  }
  return {text, std::nullopt};
}

TEST(ArrayLines, MakesALineOfEachElement) {
  EXPECT_EQ(convert(R"([{"a": [1, {}]},{"b":"],[\"\\"}, 3])", 99, 99).text,
            " {\"a\": [1, {}]}\n{\"b\":\"],[\\\"\\\\\"}\n 3 ");
  EXPECT_EQ(convert("[\n  {\r\n  },\n  {}\n]\n", 99, 99).text, "    {    }\n   {}   ");
  EXPECT_EQ(convert("[]", 99, 99), (conversion{"  ", std::nullopt}));
  EXPECT_EQ(convert(" \n\t[ \n ] \n", 99, 99), (conversion{"  \t       ", std::nullopt}));
  EXPECT_EQ(convert("\xEF\xBB\xBF[1]", 99, 99), (conversion{"\xEF\xBB\xBF 1 ", std::nullopt}));
}

TEST(ArrayLines, KeepsALineEndWithinAStringOnItsLine) {
  EXPECT_EQ(convert("[\"a\nb\r\",\"\\\n\",2]", 99, 99).text,
            " \"a\x01"
            "b\x01\"\n\"\\\x01\"\n2 ");
}

TEST(ArrayLines, GivesAnyOtherTextAsItIs) {
  for (const std::string& text :
       {""s, "{}\n[1]\n"s, "\n\n{\n"s, " \t\r\n"s, "\"[\""s, "\xEF\xBB\xBF{}"s, "\xEF\xBB["s,
        "\xEF\xBB"s, "x[1]"s, "\xEF\xBB\xBF"s, "\0[1]"s}) {
    for (const std::size_t step : {1U, 2U, 99U}) {
      EXPECT_EQ(convert(text, step, 3), (conversion{text, std::nullopt}));
    }
  }
}

// is_array() must not read more than it needs for its decision. So if the source fails later, the
// text before the failure is still returned.
TEST(ArrayLines, WaitsForNoMoreThanItTakesToKnow) {
  auto source = std::make_unique<test::text_source>("{\"a\":1}\n", 2);
  const auto* const watched = source.get();
  array_lines lines(std::move(source), "in.json");
  EXPECT_FALSE(lines.is_array());
  EXPECT_EQ(watched->position_bytes(), 2U);
}

// Binary data is refused however few bytes each read returns, even if the data begins with a
// bracket.
TEST(ArrayLines, RefusesForeignTextHoweverItComes) {
  for (const std::string& text : {"[\0]\0\n\0\n\0"s, "{\0}\0\n\0\n\0"s, "[\0\0\0]\0\0\0"s}) {
    for (const std::size_t step : {1U, 2U, 99U}) {
      EXPECT_THROW((void)convert(text, step, 3), config_error) << testing::PrintToString(text);
    }
  }
}

// A JSON line may contain "ustar" at the offset where a tar header has its magic word. Such a line
// must not be mistaken for an archive.
TEST(ArrayLines, TakesATextWithTheWordOfTarForWhatItIs) {
  const std::string line = "{\"text\": \"" + std::string(247, 'a') + "ustar\"}\n";
  ASSERT_EQ(line.find("ustar"), 257U);
  const std::string header = "a.json" + std::string(251, '\0') + std::string("ustar  ");
  for (const std::size_t step : {1U, 300U}) {
    EXPECT_EQ(convert(line, step, 99), (conversion{line, std::nullopt}));
    EXPECT_THROW((void)convert(header, step, 99), config_error);
  }
}

TEST(ArrayLines, NamesWhatTheArrayHasWrong) {
  const std::pair<std::string, std::uint64_t> cases[] = {
      {"[1,,2]", 3}, {"[,1]", 1},      {"[1, ]", 4}, {"[1]x", 3}, {"[1]\n[2]", 4},
      {"[1] ,", 4},  {"[", 1},         {"[1", 2},    {"[1,", 3},  {"[\"a]", 4},
      {"[{]", 3},    {"[1, \n,2]", 5}, {"[\"\\", 3}, {"[[1],", 5}};
  for (const auto& [text, at] : cases) {
    const conversion found = convert(text, 99, 99);
    EXPECT_EQ(found.fault_at, at) << text;
    EXPECT_EQ(found.text.size(), at) << "what precedes it is given: " << text;
    EXPECT_EQ(found, naive(text)) << text;
  }
}

// The search for a bracket skips white space up to a limit, which does not depend on the sizes of
// reads.
TEST(ArrayLines, LooksForABracketInTheFirstMebibyte) {
  for (const std::size_t step : {std::size_t{777}, std::size_t{4096}, std::size_t{1} << 22}) {
    const std::string before(array_lines::most_space_bytes - 1, '\n');
    const std::string beyond(array_lines::most_space_bytes, '\n');
    EXPECT_EQ(convert(before + "[1]", step, 100'000).text, std::string(before.size(), ' ') + " 1 ");
    EXPECT_EQ(convert(beyond + "[1]", step, 100'000).text, beyond + "[1]");
  }
}

TEST(ArrayLines, AgreesWithANaiveReaderOnRandomTexts) {
  std::mt19937_64 random(test::seed(11));
  const std::string_view pieces[] = {
      "[",         "]",           "{",         "}",
      ",",         ",",           "\"",        "\"",
      "\\",        "\\\"",        "\n",        "\r",
      " ",         "\t",          "1",         "a",
      "{\"a\":1}", "\"text, [\"", "\"x\\\\\"", "\"0123456789abcdefghijklmnopq\"",
      "[1,2]",     "\\\\",        "\"\n\"",    "\xEF\xBB\xBF",
      "\x01"};
  std::size_t sound = 0;
  for (int round = 0; round < 60'000; ++round) {
    std::string text = random() % 8 == 0 ? "" : "[";
    for (std::size_t n = random() % 24; n > 0; --n) text += pieces[random() % std::size(pieces)];
    if (random() % 2 == 0) text += "]";
    const conversion wanted = naive(text);
    sound += wanted.fault_at ? 0U : 1U;
    const std::size_t inner = random() % 3 == 0 ? 1 : 1 + random() % 40;
    const std::size_t step = random() % 3 == 0 ? 1 : 1 + random() % 40;
    ASSERT_EQ(convert(text, inner, step), wanted)
        << testing::PrintToString(text) << " in steps of " << inner << " and " << step;
    ASSERT_EQ(convert(text, 1000, 1000), wanted) << testing::PrintToString(text);
  }
  EXPECT_GT(sound, 1000U);
}

TEST(IsArray, LooksIntoFilesOfEveryKind) {
  const test::temp_folder folder;
  const auto asks = [&](const std::string& bytes) {
    test::write_text(folder / "input", bytes);
    return is_array(plan_inputs(std::vector<std::string>{(folder / "input").string()}).at(0));
  };
  for (const std::string& text : {"[]"s, "\n [1"s, "\xEF\xBB\xBF[{}]"s}) {
    EXPECT_TRUE(asks(text) && asks(test::gzip(text)) && asks(test::zstd(text))) << text;
  }
  for (const std::string& text : {""s, "{}\n[1]"s, "\xEF\xBB\xBF{}"s, "x"s}) {
    EXPECT_FALSE(asks(text) || asks(test::gzip(text)) || asks(test::zstd(text))) << text;
  }
}

TEST(OpenInput, ReadsArraysOfEveryKindAsLines) {
  const test::temp_folder folder;
  for (const std::string& bytes :
       {"[1,\n2]\n"s, test::gzip("[1,\n2]\n"), test::zstd("[1,\n2]\n")}) {
    test::write_text(folder / "input", bytes);
    const auto files = plan_inputs(std::vector<std::string>{(folder / "input").string()});
    EXPECT_EQ(test::read_source(*open_input(files.at(0))), " 1\n 2  ");
  }
}

}  // namespace
}  // namespace millrace::preprocess
