// SPDX-License-Identifier: Apache-2.0
#include "sentencepiece/text_normalizer.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include <millrace/error.hpp>

namespace millrace::tokenizer::detail {
namespace {

std::string normalized(const normalizer_spec& spec, std::string_view text, bool suffix = false,
                       std::vector<std::pair<std::string_view, std::int32_t>> symbols = {}) {
  const text_normalizer normalizer(spec, suffix, symbol_matcher(byte_trie(std::move(symbols))),
                                   space_form::blank);
  std::string buffer;
  return std::string(normalizer.normalize(text, buffer));
}

constexpr auto spec = [](bool dummy, bool removes, bool escapes = true) {
  normalizer_spec s;
  s.add_dummy_prefix = dummy;
  s.remove_extra_whitespaces = removes;
  s.escape_whitespaces = escapes;
  return s;
};

TEST(TextNormalizer, CollapsesSpaces) {
  EXPECT_EQ(normalized(spec(true, true), "  a   b  "), " a b");
  EXPECT_EQ(normalized(spec(true, true), "   "), "");
  EXPECT_EQ(normalized(spec(true, false), "  a  "), "   a  ");
  EXPECT_EQ(normalized(spec(true, true), "a  b ", true), "a b ");
  EXPECT_EQ(normalized(spec(false, true), "a \xE2\x96\x81"), "a");  // treated as a space
  EXPECT_EQ(normalized(spec(false, true, false), "a \xE2\x96\x81"), "a \xE2\x96\x81");
}

TEST(TextNormalizer, LeavesUserDefinedSymbolsAlone) {
  EXPECT_EQ(normalized(spec(false, true), "a  b", false, {{"  ", 1}}), "a  b");
  EXPECT_EQ(normalized(spec(false, true), "a   b", false, {{"  ", 1}}), "a  b");
}

TEST(TextNormalizer, ReplacesWhatIsNoUtf8) {
  EXPECT_EQ(normalized(spec(false, false), "a\xFF\xE4\xB8"),
            "a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
}

// Returns a charsmap with 256 units and one replacement. The root of its trie has no children.
std::string empty_charsmap() {
  std::string blob("\x00\x04\x00\x00", 4);
  blob += std::string(1024, '\0');
  blob[4 + 1] = 0x04;  // the root's distance to its children: 1
  return blob + std::string("x\0", 2);
}

TEST(Charsmap, IsCheckedBeforeItIsWalked) {
  const std::string good = empty_charsmap();
  EXPECT_FALSE(charsmap(good, 0).find("abc"));
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_THROW(charsmap(good.substr(0, size), 0), format_error) << size;
  }
  std::string garbled = good;
  garbled[garbled.size() - 2] = static_cast<char>(0xFF);
  EXPECT_THROW(charsmap(garbled, 0), format_error);
  std::string far = good;
  far[4 + 4 * 7 + 3] = 0x10;  // unit 7 points far outside
  EXPECT_THROW(charsmap(far, 0), format_error);
  std::string value = good;
  value[4 + 4 * 7 + 3] = static_cast<char>(0x80);
  value[4 + 4 * 7] = 2;  // unit 7: a value past the last replacement
  EXPECT_THROW(charsmap(value, 0), format_error);
}

}  // namespace
}  // namespace millrace::tokenizer::detail
