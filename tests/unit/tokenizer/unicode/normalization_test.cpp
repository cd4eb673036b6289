// SPDX-License-Identifier: Apache-2.0
#include "unicode/normalization.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {
namespace {

// Text that does not change is skipped many bytes at a time. Here, every character is put between
// characters of one, two or three bytes, at any offset within a step. The output must be the same
// as for a text that is too short for steps.
TEST(Normalization, SeesEveryCharacterInALongText) {
  const std::string stable[] = {"a", "\u0436", "\u304B", "\u6F22", "\u2014", "\uFF21"};
  std::string buffer;
  for (std::uint32_t point = 0x80; point < 0x110000; ++point) {
    if (point >= 0xD800 && point < 0xE000) continue;
    for (std::size_t kind = 0; kind < std::size(stable); ++kind) {
      const bool is_dense = point < 0x3400 || (point >= 0xF900 && point < 0x10000);
      if (!is_dense && kind != point % std::size(stable)) continue;
      const std::string& beside = stable[kind];
      std::string middle = beside;
      append_code_point(middle, point);
      middle += beside;
      const std::string expected(normalize_to(normal_form::nfc, middle, buffer));
      const auto far_from_the_ends = [&](const std::string& text) {
        std::string all;
        for (std::size_t i = 0; i < 20 + point % 64; ++i) all += beside;
        all += text;
        for (std::size_t i = 0; i < 70; ++i) all += beside;
        return all;
      };
      ASSERT_EQ(normalize_to(normal_form::nfc, far_from_the_ends(middle), buffer),
                far_from_the_ends(expected))
          << std::hex << point;
    }
  }
}

}  // namespace
}  // namespace millrace::tokenizer::detail
