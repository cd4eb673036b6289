// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/megatron/python_json.hpp>

#include <limits>
#include <string>

#include <gtest/gtest.h>

#include <millrace/error.hpp>

namespace millrace::dataset {
namespace {

// Printing a parsed text gives what Python 3.11 prints for json.dumps(json.loads(text), indent=4).
TEST(PythonJson, PrintsAgainWhatItRead) {
  const std::string text =
      "{\"b\": [1, -0, 2.50, 1e5, 1E-7, 123456789012345678901234567890], "
      "\"a\":{\"x\":[],\"y\":{}, \"z\":null},\"b2\":\"\\u00e9\\ud83d\\ude00\\ud800/\\/\\t\","
      "\"\u00e9\U0001F600\x7f\":true,\"a\":[false,NaN,-Infinity,1e400,-1e-400, -0.0]}";
  EXPECT_EQ(read_python_json(text).dump(),
            "{\n    \"b\": [\n        1,\n        0,\n        2.5,\n        100000.0,\n        "
            "1e-07,\n        123456789012345678901234567890\n    ],\n    \"a\": [\n        "
            "false,\n        NaN,\n        -Infinity,\n        Infinity,\n        -0.0,\n        "
            "-0.0\n    ],\n    \"b2\": \"\\u00e9\\ud83d\\ude00\\ud800//\\t\",\n    "
            "\"\\u00e9\\ud83d\\ude00\\u007f\": true\n}");
  EXPECT_EQ(read_python_json(" {} ").dump(), "{}");
  EXPECT_EQ(read_python_json("[[], {}, \"\"]").dump(), "[\n    [],\n    {},\n    \"\"\n]");
}

// Numbers that a double cannot represent become infinity, zero or the nearest double, as with
// Python's float().
TEST(PythonJson, ReadsNumbersThatNoDoubleHolds) {
  const std::string zeros(400, '0');
  const auto read = [](const std::string& number) { return read_python_json(number).dump(); };
  EXPECT_EQ(read("0." + zeros + "1"), "0.0");
  EXPECT_EQ(read("-0." + zeros + "1"), "-0.0");
  EXPECT_EQ(read("-0." + zeros + "1E5"), "-0.0");
  EXPECT_EQ(read("1" + zeros + ".5"), "Infinity");
  EXPECT_EQ(read("-1" + zeros + "E-5"), "-Infinity");
  EXPECT_EQ(read("1" + zeros + "e-800"), "0.0");
  EXPECT_EQ(read("0." + zeros + "1e+800"), "Infinity");
  EXPECT_EQ(read("0." + zeros + "1e+401"), "1.0");
  EXPECT_EQ(read("1E+99999999999999999999"), "Infinity");
  EXPECT_EQ(read("-1E-99999999999999999999"), "-0.0");
  EXPECT_EQ(read("1e9223372036854775807"), "Infinity");
}

TEST(PythonJson, PrintsFloatsAsTheirRepr) {
  EXPECT_EQ(python_float(0.1), "0.1");
  EXPECT_EQ(python_float(1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(python_float(0x1.e666666666667p-1), "0.9500000000000001");
  EXPECT_EQ(python_float(100), "100.0");
  EXPECT_EQ(python_float(-2.5), "-2.5");
  EXPECT_EQ(python_float(0), "0.0");
  EXPECT_EQ(python_float(-0.0), "-0.0");
  EXPECT_EQ(python_float(1e15), "1000000000000000.0");
  EXPECT_EQ(python_float(1e16), "1e+16");
  EXPECT_EQ(python_float(123456789012345680.0), "1.2345678901234568e+17");
  EXPECT_EQ(python_float(1e-4), "0.0001");
  EXPECT_EQ(python_float(0.00012345), "0.00012345");
  EXPECT_EQ(python_float(1e-5), "1e-05");
  EXPECT_EQ(python_float(5e-324), "5e-324");
  EXPECT_EQ(python_float(1.7976931348623157e308), "1.7976931348623157e+308");
  EXPECT_EQ(python_float(std::numeric_limits<double>::infinity()), "Infinity");
}

TEST(PythonJson, EscapesTexts) {
  EXPECT_EQ(python_json::string("a/\"\\\n\x01\u00e9\U0001F600").dump(),
            R"("a/\"\\\n\u0001\u00e9\ud83d\ude00")");
  // For a path that is not UTF-8, os.fsdecode returns lone surrogates.
  EXPECT_EQ(python_json::string("\xff\xc3x").dump(), R"("\udcff\udcc3x")");
}

TEST(PythonJson, KeepsTheFirstPlaceAndTheLastValueOfAKey) {
  python_json object = python_json::object();
  object.set("a", python_json::integer(1));
  object.set("b", python_json());
  object.set("a", python_json::boolean(false));
  EXPECT_EQ(object.dump(), "{\n    \"a\": false,\n    \"b\": null\n}");
}

TEST(PythonJson, RefusesWhatIsNoJson) {
  for (const char* text :
       {"",    "{",        "[1,]",   "{\"a\":1,}", "{a:1}",       "{\"a\" 1}",
        "'a'", "01",       "1.",     ".5",         "-",           "1e",
        "+1",  "nul",      "\"\n\"", "\"\\x\"",    "\"\\u12g4\"", "\"\\u123",
        "\"",  "\"\xff\"", "1 2",    "[1 2]",      "tru",         "\xef\xbb\xbf{}"}) {
    EXPECT_THROW(read_python_json(text), format_error) << text;
  }
  EXPECT_THROW(read_python_json(std::string(100000, '[')), format_error);
  EXPECT_THROW(read_python_json(std::string("{}\0", 3)), format_error);
}

}  // namespace
}  // namespace millrace::dataset
