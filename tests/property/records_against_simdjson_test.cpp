// SPDX-License-Identifier: Apache-2.0
//
// Compares record_parser with an independent parser: simdjson's document tree, and exact_json for
// every line that simdjson rejects or that has a fault. MILLRACE_RECORDS sets the number of
// records.
#include "record/record_parser.hpp"

#include <gtest/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "record/exact_json.hpp"
#include "record/json_scanner.hpp"
#include "support/seed.hpp"

namespace millrace::preprocess {
namespace {

using generator = std::mt19937_64;

/// Parses a line to a tree, and looks up each key in it.
class tree_parser {
 public:
  explicit tree_parser(std::span<const text_key> keys)
      : keys_(keys.begin(), keys.end()), exact_(keys), texts_(keys.size()) {
    if (parser_.allocate(std::size_t{1} << 16, max_nesting - 1) != simdjson::SUCCESS) std::abort();
  }

  std::optional<record_fault> parse(const std::string& line) {
    exactly_ = !take_texts(line);
    return exactly_ ? exact_.parse(line) : std::nullopt;
  }
  std::vector<std::string_view> texts(std::size_t key) const {
    if (!exactly_) return texts_[key];
    return {exact_.texts(key).begin(), exact_.texts(key).end()};
  }
  std::int64_t lone_surrogates() const { return exactly_ ? exact_.lone_surrogates() : 0; }
  bool used_tree() const { return !exactly_; }

 private:
  bool take_texts(const std::string& line) {
    // Later versions of simdjson skip a byte order mark.
    const std::size_t begin = line.find_first_not_of(" \t");
    if (begin == line.npos || line[begin] != '{') return false;
    simdjson::dom::element record;
    if (parser_.parse(line).get(record) != simdjson::SUCCESS) return false;
    for (std::size_t key = 0; key < keys_.size(); ++key) {
      if (!take(record, keys_[key].path, texts_[key])) return false;
    }
    return true;
  }

  static bool take(simdjson::dom::element at, const std::vector<std::string>& path,
                   std::vector<std::string_view>& texts) {
    for (const std::string& key : path) {
      simdjson::dom::object object;
      if (at.get(object) != simdjson::SUCCESS) return false;
      bool found = false;
      for (const auto member : object) {  // the last of equal keys counts
        if (member.key != key) continue;
        found = true;
        at = member.value;
      }
      if (!found) return false;
    }
    texts.assign(1, {});
    if (at.get(texts.front()) == simdjson::SUCCESS) return true;
    texts.clear();
    simdjson::dom::array list;
    if (at.get(list) != simdjson::SUCCESS) return false;
    return std::ranges::all_of(
        list, [&](const auto& element) { return element.get(texts.emplace_back()) == 0; });
  }

  std::vector<text_key> keys_;
  simdjson::dom::parser parser_;
  exact_json exact_;
  std::vector<std::vector<std::string_view>> texts_;
  bool exactly_ = false;
};

/// Makes records, most of them good, and changes some of their bytes.
class record_source {
 public:
  explicit record_source(std::uint64_t seed) : random_(seed) {}

  const std::string& next() {
    line_.clear();
    space();
    object(0);
    if (below(2) == 0) line_.insert(line_.find('{') + 1, wanted_members());
    space();
    for (std::uint64_t changes = below(4); changes > 1; --changes) change();
    return line_;
  }

 private:
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
  std::string_view one_of(std::span<const std::string_view> all) { return all[below(all.size())]; }

  void space() {
    static constexpr std::string_view spaces[] = {"", "", "", "", "", " ", "\t", "  "};
    line_ += one_of(spaces);
  }

  void string() {
    static constexpr std::string_view parts[] = {"a",
                                                 "word ",
                                                 "0123456789abcdef",
                                                 R"(\n)",
                                                 R"(\")",
                                                 R"(\\)",
                                                 R"(\/)",
                                                 R"(\t)",
                                                 R"(\b\f\r)",
                                                 R"(\u0000)",
                                                 R"(\u00e9)",
                                                 R"(\uFFFF)",
                                                 "\u00e9",
                                                 "\u4e2d",
                                                 "\U0001F600",
                                                 R"(\ud83d\ude00)",
                                                 R"(\n\n\t)",
                                                 "{",
                                                 "}",
                                                 ",",
                                                 ":",
                                                 "[",
                                                 "\x7f"};
    static constexpr std::string_view rare[] = {R"(\ud800)", R"(\udc00)", R"(\u12)",
                                                "\xff",      R"(\x)",     R"(\ud83d\u0041)",
                                                "\x01",      "\xe4\xb8"};
    const std::uint64_t longest = below(8) == 0 ? 60U : 6U;
    line_ += '"';
    for (std::uint64_t i = below(longest + 1); i > 0; --i) {
      line_ += below(200) == 0 ? one_of(rare) : one_of(parts);
    }
    line_ += '"';
  }

  // Returns whether the value should be an object.
  bool key() {
    static constexpr std::string_view keys[] = {
        R"("text")", R"("text")", R"("text")", R"("meta")",  R"("meta")",      R"("more")",
        R"("id")",   R"("tex")",  R"("")",     R"("texts")", R"("te\u0078t")", R"("\u0000")"};
    const std::uint64_t i = below(std::size(keys));
    line_ += keys[i];
    return keys[i] == R"("meta")" && below(8) != 0;
  }

  // Members that make a good record of nearly any other.
  std::string wanted_members() {
    std::string line = R"("meta":{"text":)";
    line_.swap(line);
    string();
    line_ += R"(},"text":)";
    string();
    if (line.find('"') != line.npos) line_ += ',';
    line_.swap(line);
    return line;
  }

  void scalar() {
    static constexpr std::string_view scalars[] = {"0",
                                                   "-1",
                                                   "12.5",
                                                   "1e5",
                                                   "-0.0E-7",
                                                   "true",
                                                   "null",
                                                   "false",
                                                   "1E400",
                                                   "NaN",
                                                   "Infinity",
                                                   "01",
                                                   "123456789012345678901234567890"};
    line_ += scalars[below(below(10) == 0 ? std::size(scalars) : 8)];
  }

  void value(int depth) {
    const std::uint64_t kind = below(depth < 4 ? 8 : 5);
    if (kind < 4) return string();
    if (kind == 4) return scalar();
    if (kind == 5) return object(depth + 1);
    line_ += '[';
    space();
    for (std::uint64_t i = below(4); i > 0; --i) {
      if (below(4) == 0) {
        value(depth + 1);
      } else {
        string();
      }
      space();
      if (i > 1) line_ += ',';
      space();
    }
    line_ += ']';
  }

  void object(int depth) {
    line_ += '{';
    space();
    for (std::uint64_t i = below(5); i > 0; --i) {
      const bool of_object = key();
      space();
      line_ += ':';
      space();
      if (of_object && depth < 4) {
        object(depth + 1);
      } else {
        value(depth);
      }
      space();
      if (i > 1) line_ += ',';
      space();
    }
    line_ += '}';
  }

  void change() {
    static constexpr std::string_view bytes =
        "\"\\{}[]:,ntu/bfr0123456789.eE+- \tNIx\x01\x1f\x7f\x80\xc3\xed\xf4\xff";
    static constexpr std::string_view tokens[] = {
        R"("text":)", R"("meta":)", "{", "}",      "[",      "]",
        R"(\ud83d)",  R"(\ude00)",  ",", R"("a")", R"(\\")", R"("text":"x",)"};
    const std::size_t at = below(line_.size() + 1);
    switch (below(6)) {
      case 0:
        line_.insert(at, one_of(tokens));
        break;
      case 1:
        line_.erase(at, below(8));
        break;
      case 2:
        line_.insert(at, line_.substr(below(line_.size() + 1), below(40)));
        break;
      case 3:
        line_.resize(at);
        break;
      default:
        if (at < line_.size()) line_[at] = bytes[below(bytes.size())];
    }
  }

  generator random_;
  std::string line_;
};

std::uint64_t record_count() {
  const char* given = std::getenv("MILLRACE_RECORDS");
  return given != nullptr ? std::strtoull(given, nullptr, 0) : 100'000;
}

void compare_on_random_records(std::vector<text_key> keys, std::uint64_t seed) {
  record_parser parser{std::span<const text_key>(keys)};
  tree_parser expected(keys);
  record_source records(test::seed(seed));
  std::uint64_t accepted = 0, by_tree = 0;
  const std::uint64_t count = record_count();
  std::string padded;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string& line = records.next();
    padded.assign(line).append(record_parser::padding_bytes, "\"} \\1"[i % 5]);
    const auto fault = parser.parse(std::string_view(padded).substr(0, line.size()));
    const auto expected_fault = expected.parse(line);
    if (expected.used_tree()) ++by_tree;
    ASSERT_EQ(fault.has_value(), expected_fault.has_value()) << line;
    if (fault) {
      ASSERT_EQ(fault->kind, expected_fault->kind) << line;
      ASSERT_EQ(fault->offset_bytes, expected_fault->offset_bytes) << line;
      ASSERT_EQ(fault->what, expected_fault->what) << line;
      continue;
    }
    ++accepted;
    ASSERT_EQ(parser.lone_surrogates(), expected.lone_surrogates()) << line;
    for (std::size_t key = 0; key < keys.size(); ++key) {
      ASSERT_TRUE(std::ranges::equal(parser.texts(key), expected.texts(key))) << line;
    }
  }
  // Otherwise the records would not test what they are for.
  EXPECT_GT(accepted, count / 10);
  EXPECT_LT(accepted, count * 9 / 10);
  EXPECT_GT(by_tree, accepted / 2);
}

TEST(RecordsAgainstSimdjson, GiveTheTextsOfAKey) {
  compare_on_random_records(plain_keys({"text"}), 1);
}

TEST(RecordsAgainstSimdjson, GiveTheTextsOfPaths) {
  compare_on_random_records({plain_key("text"), key_of_path("meta.text")}, 2);
}

}  // namespace
}  // namespace millrace::preprocess
