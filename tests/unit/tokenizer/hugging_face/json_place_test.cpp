// SPDX-License-Identifier: Apache-2.0
#include "hugging_face/json_place.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace millrace::tokenizer::detail {
namespace {

constexpr std::string_view text = R"( {"a": [1, {"b\"}": "]"}, "c"], "d" : null})";

std::size_t place(std::initializer_list<std::size_t> path) {
  return json_place(text, std::span(path.begin(), path.size()));
}

TEST(JsonPlace, IsThatOfTheEntry) {
  EXPECT_EQ(place({}), 1U);
  EXPECT_EQ(place({0}), text.find("\"a\""));
  EXPECT_EQ(place({0, 0}), text.find('1'));
  EXPECT_EQ(place({0, 1}), text.find("{\"b"));
  EXPECT_EQ(place({0, 1, 0}), text.find("\"b"));
  EXPECT_EQ(place({0, 2}), text.find("\"c\""));
  EXPECT_EQ(place({1}), text.find("\"d\""));
}

TEST(JsonEnd, IsWhereTheTextStopsBeingJson) {
  EXPECT_EQ(json_end("[1, 2"), 5U);
  EXPECT_EQ(json_end("{\"a\" 1}"), 5U);
  EXPECT_EQ(json_end("[1] x"), 4U);
  EXPECT_EQ(json_end("[\"a\xFF\"]"), 3U);
  EXPECT_EQ(json_end(""), 0U);
  EXPECT_LE(json_end(std::string(1000000, '[')), 1000U) << "depth is bounded";
}

}  // namespace
}  // namespace millrace::tokenizer::detail
