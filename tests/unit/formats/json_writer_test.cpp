// SPDX-License-Identifier: Apache-2.0
#include <millrace/formats/detail/json_writer.hpp>

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>

#include <fmt/format.h>

namespace millrace::formats {
namespace {

template <class T>
std::string written(const T& value) {
  return json_writer().value(value).text();
}

TEST(JsonWriter, SeparatesValues) {
  json_writer json;
  json.open('{').key("a").open('[').value(1).value(true).null().close(']');
  json.key("b").open('{').close('}').key("c").raw("[2]").key("d").value("e").close('}');
  EXPECT_EQ(json.text(), R"({"a": [1, true, null], "b": {}, "c": [2], "d": "e"})");
}

TEST(JsonWriter, EscapesControlCharactersAndBytesThatAreNotUtf8) {
  EXPECT_EQ(json_string("a\"\\\n\t\x7F\xC3\xA9\xFF"),
            "\"a\\\"\\\\\\n\\u0009\\u007f\xC3\xA9\\udcff\"");
}

TEST(JsonWriter, WritesNoNumberThatJsonHasNot) {
  EXPECT_EQ(written(std::numeric_limits<double>::quiet_NaN()), "null");
  EXPECT_EQ(written(-std::numeric_limits<double>::infinity()), "null");
  EXPECT_EQ(written(std::numeric_limits<std::uint64_t>::max()), "18446744073709551615");
}

// Doubles are printed as fmt prints them. The programs printed doubles with fmt before, and scripts
// may compare their output.
TEST(JsonWriter, PrintsDoublesAsFmtDoes) {
  for (const double value : {0.0, -0.0, 1.0, -1.5, 0.1, 1e-4, 9.9e-5, 1e-5, 123456789.0, 1e15,
                             9.99e15, 1e16, 1.5e16, 1e22, 5e-324, 1.7976931348623157e308}) {
    EXPECT_EQ(written(value), fmt::format("{}", value));
  }
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    const auto value = std::bit_cast<double>(random());
    if (std::isfinite(value)) {
      ASSERT_EQ(written(value), fmt::format("{}", value));
    }
    const double near_one = std::ldexp(static_cast<double>(random() >> 11), -40 - i % 30);
    ASSERT_EQ(written(near_one), fmt::format("{}", near_one));
  }
}

}  // namespace
}  // namespace millrace::formats
