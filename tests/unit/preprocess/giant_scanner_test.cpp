// SPDX-License-Identifier: Apache-2.0
#include "record/giant_scanner.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "record/exact_json.hpp"
#include "record/giant_texts.hpp"
#include "support/paths.hpp"

// Tests of the windows in which a giant line is scanned. tests/property/json_against_python.py
// compares the scanner's results for unusual lines with exact_json and with Python.
namespace millrace::preprocess {
namespace {

class scanned {
 public:
  explicit scanned(std::string_view line) {
    test::write_text(folder_ / "line", line);
    fd_ = io::open_read_only(folder_ / "line");
    size_ = line.size();
  }

  line_range range() const { return {fd_, folder_ / "line", 0, size_}; }
  std::optional<record_fault> fault(std::size_t window) {
    return scan_giant_line(range(), keys, window, values);
  }
  std::vector<std::string> texts(std::size_t window) {
    EXPECT_FALSE(fault(window));
    giant_texts reader(range(), values.at(0), window);
    std::vector<std::string> found;
    while (reader.next()) {
      text_bytes bytes;
      while (reader.read(bytes)) {
      }
      found.emplace_back(bytes.data(), bytes.size);
    }
    return found;
  }

  const std::vector<text_key> keys = plain_keys({"text"});
  std::vector<giant_value> values;

 private:
  test::temp_folder folder_;
  io::unique_fd fd_;
  std::size_t size_ = 0;
};

// Expects that the scanner gives the same result as exact_json. Tries many window sizes, from the
// smallest on. Windows of different sizes end at different places of the line.
void expect_as_exact(const std::string& line) {
  exact_json exact({"text"});
  const auto expected = exact.parse(line);
  scanned giant(line);
  for (std::size_t window = line_window::least_bytes; window < 60; ++window) {
    SCOPED_TRACE(testing::PrintToString(line.substr(0, 200)) + " by " + std::to_string(window));
    const auto fault = giant.fault(window);
    ASSERT_EQ(fault.has_value(), expected.has_value());
    if (fault) {
      EXPECT_EQ(fault->kind, expected->kind);
      EXPECT_EQ(fault->offset_bytes, expected->offset_bytes);
      EXPECT_EQ(fault->what, expected->what);
      continue;
    }
    const auto texts = exact.texts(0);
    EXPECT_EQ(giant.texts(window), std::vector<std::string>(texts.begin(), texts.end()));
  }
}

TEST(GiantScanner, SeesEscapesAndCharactersOverTheEndsOfWindows) {
  std::string text;
  for (int i = 0; i < 20; ++i) {
    text += std::string(static_cast<std::size_t>(i), 'a') + R"(\ud83d\ude00\ud800\u00e9\n\"\\)" +
            "\xF0\x9F\x98\x80\xE4\xB8\xAD\xC3\xA9";
  }
  expect_as_exact("{\"text\": \"" + text + "\"}");
  expect_as_exact("{\"text\": [\"" + text + "\" , \"\", \"" + text + "\"], \"more\": -Infinity}");
}

TEST(GiantScanner, FindsInvalidUtf8WhereverItIs) {
  for (const std::string bytes : {"\x80", "\xC3", "\xE4\xB8", "\xF0\x9F\x98", "\xF0\x80\x80\x80",
                                  "\xED\xA0\x80", "\xFF", "\xC0\x80", "\xF4\x90\x80\x80"}) {
    for (std::size_t before = 0; before < 20; ++before) {
      expect_as_exact("{\"text\": \"" + std::string(before, 'x') + bytes + "\"}");
      // The line has another fault, which is found first.
      expect_as_exact("{\"text\": tru" + std::string(before, ' ') + bytes);
    }
  }
}

TEST(GiantScanner, NamesWhatIsWrongAndWhere) {
  for (const std::string line :
       {"", "[1]", "{", "{\"text\"", "{\"text\": \"abc", "{\"text\": \"abc\\",
        "{\"text\": \"abc\\u12", "{\"text\": 1}", "{\"text\": [\"a\", \"b\", {\"c\": 1}, \"d\"]}",
        "{\"other\": \"text\"}", "{\"text\": 012}", "{\"text\": \"a\"} x", "{\"text\": \"a\", }",
        "{\"text\": Infinit}", "{\"text\": \"a\", \"text\": null}",
        "{\"text\": null, \"text\": \"a\"}", "{\"\\ud800text\": 1}", "{\"text\\ud800\": \"a\"}"}) {
    expect_as_exact(line);
  }
  for (const std::size_t size : {4U, 60U, 61U}) {  // messages show up to 60 bytes of a name
    expect_as_exact("{\"" + std::string(size, 'k') + "\": \"a\"}");
  }
}

TEST(GiantScanner, KeysAndNumbersMayBeLongerThanAnyWindow) {
  const std::string key(5000, 'k');
  expect_as_exact("{\"" + key + "\": 1, \"text" + key + "\": 2, \"text\": \"a\"}");
  expect_as_exact("{\"n\": 1." + std::string(5000, '0') + ", \"text\": \"a\"}");
  expect_as_exact("{\"n\": 1" + std::string(5000, '0') + ", \"text\": \"a\"}");
  expect_as_exact("{\"n\": " + std::string(995, '[') + std::string(995, ']') +
                  ", \"text\": \"a\"}");
  expect_as_exact("{\"text\": \"a\"" + std::string(5000, ' ') + "}");
}

}  // namespace
}  // namespace millrace::preprocess
