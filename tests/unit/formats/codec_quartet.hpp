// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <millrace/error.hpp>

/// Every codec must pass these tests. `parse` is called as parse(std::span<const std::byte>).
namespace millrace::test {

using bytes = std::vector<std::byte>;

/// Returns the error with which `parse` refuses `input`, or nullopt if `parse` accepts it. Fails
/// the test on any error except a format_error with an offset inside the input.
template <class Parse>
std::optional<format_error> refusal(Parse parse, std::span<const std::byte> input) {
  // The allocation has exactly this size, so that ASan detects a read past its end.
  const bytes exact(input.begin(), input.end());
  try {
    (void)parse(std::span<const std::byte>(exact));
    return std::nullopt;
  } catch (const format_error& e) {
    EXPECT_LE(e.offset(), exact.size()) << e.what();
    const bool one_line_of_ascii =
        std::ranges::all_of(std::string(e.what()), [](char c) { return c >= ' ' && c <= '~'; });
    EXPECT_TRUE(one_line_of_ascii) << e.what();
    return e;
  }
}

/// Expects that `parse` refuses `input` at byte `offset`, with a message that contains `text`.
template <class Parse>
void expect_refused(Parse parse, std::span<const std::byte> input, std::uint64_t offset,
                    const std::string& text) {
  const auto e = refusal(parse, input);
  ASSERT_TRUE(e) << "accepted, expected: " << text;
  EXPECT_EQ(e->offset(), offset) << e->what();
  EXPECT_THAT(e->problem(), testing::HasSubstr(text));
}

/// A truncated copy is the most common kind of damage. `parse` must refuse every truncated copy and
/// must not read past the end of the copy.
template <class Parse>
void expect_every_truncation_refused(Parse parse, std::span<const std::byte> whole) {
  ASSERT_FALSE(refusal(parse, whole)) << refusal(parse, whole)->what();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_TRUE(refusal(parse, whole.first(size)))
        << "accepted the first " << size << " of " << whole.size() << " bytes";
  }
}

/// Tries every other value of every byte. `parse` must accept or refuse each altered file, without
/// any other error.
///
/// @return number of altered files that `parse` refused
template <class Parse>
std::size_t survive_every_alteration(Parse parse, std::span<const std::byte> whole) {
  bytes altered(whole.begin(), whole.end());
  std::size_t refused = 0;
  for (std::size_t at = 0; at < altered.size(); ++at) {
    for (int by = 1; by < 256; ++by) {
      altered[at] = whole[at] ^ static_cast<std::byte>(by);
      if (refusal(parse, altered)) ++refused;
      if (testing::Test::HasFailure()) {
        ADD_FAILURE() << "with byte " << at << " altered by " << by;
        return refused;
      }
    }
    altered[at] = whole[at];
  }
  return refused;
}

/// Returns a copy of `input` in which `value` replaces the bytes at `offset`.
template <class T>
bytes with(std::span<const std::byte> input, std::size_t offset, T value) {
  bytes copy(input.begin(), input.end());
  std::memcpy(copy.data() + offset, &value, sizeof(T));
  return copy;
}

}  // namespace millrace::test
