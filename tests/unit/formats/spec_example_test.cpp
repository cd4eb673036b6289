// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "support/paths.hpp"

namespace millrace {
namespace {

/// Parses lines of the form "OFFSET  XX XX ... |text|" and returns their bytes. The offset of a
/// line must equal the number of bytes before it.
std::vector<std::byte> undump(std::istream& lines) {
  std::vector<std::byte> bytes;
  for (std::string line; std::getline(lines, line) && line.rfind("<!-- end", 0) != 0;) {
    if (line.rfind("```", 0) == 0 || line.empty()) continue;
    std::istringstream words(line.substr(0, line.find('|')));
    std::string word;
    words >> word;
    EXPECT_EQ(std::stoul(word, nullptr, 16), bytes.size()) << line;
    while (words >> word) {
      EXPECT_EQ(word.size(), 2) << line;
      bytes.push_back(static_cast<std::byte>(std::stoi(word, nullptr, 16)));
    }
  }
  return bytes;
}

/// Joins the lines of a text. A page of the specification wraps the text at its spaces.
std::string unbroken(std::istream& lines) {
  std::string text;
  for (std::string line; std::getline(lines, line) && line.rfind("<!-- end", 0) != 0;) {
    if (line.rfind("```", 0) != 0) text += (text.empty() ? "" : " ") + line;
  }
  return text + '\n';
}

/// Returns the right-hand column of a hexdump, in which a dot replaces every byte that is not
/// printable ASCII.
std::string text_column(const std::vector<std::byte>& bytes) {
  std::string text;
  for (const std::byte b : bytes) {
    const auto c = static_cast<char>(b);
    text += c >= ' ' && c <= '~' ? c : '.';
  }
  return text;
}

// The example on each page equals the golden file that it names. Readers who implement a format
// from its page must be able to rely on every byte.
TEST(SpecExample, IsTheGoldenFileItNames) {
  std::size_t examples = 0;
  std::size_t pages = 0;
  const auto folder = test::source_folder() / "formats/spec";
  for (const auto& page : std::filesystem::directory_iterator(folder)) {
    if (page.path().extension() != ".md") continue;
    ++pages;
    const std::string text = test::read_text(page.path());
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      const std::string json = "<!-- json: ";
      if (line.rfind(json, 0) == 0) {
        const std::string file = line.substr(json.size(), line.find(" -->") - json.size());
        EXPECT_EQ(unbroken(lines), test::read_text(test::source_folder() / file));
        ++examples;
        continue;
      }
      const std::string opening = "<!-- hexdump: ";
      if (line.rfind(opening, 0) != 0) continue;
      const std::string file = line.substr(opening.size(), line.find(" -->") - opening.size());
      SCOPED_TRACE(page.path().filename().string() + ": " + file);
      const auto dumped = undump(lines);
      EXPECT_EQ(dumped, test::read_bytes(test::source_folder() / file));
      // The joined text columns of the lines in the example equal the text column of the whole
      // file.
      std::string column;
      std::istringstream again(text.substr(text.find(line)));
      for (std::string l; std::getline(again, l) && l.rfind("<!-- end", 0) != 0;) {
        const std::size_t begin = l.find('|');
        if (begin != std::string::npos) column += l.substr(begin + 1, l.rfind('|') - begin - 1);
      }
      EXPECT_EQ(column, text_column(dumped));
      ++examples;
    }
  }
  EXPECT_GE(examples, pages) << "every page has an example";
  EXPECT_GE(pages, 2U);
}

}  // namespace
}  // namespace millrace
