// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/verify/token_range.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "support/seed.hpp"

namespace millrace::loader {
namespace {

/// The simplest implementation, as the reference.
template <class T>
std::size_t naive(const std::vector<T>& tokens, std::int64_t vocab_size) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto id = static_cast<std::int64_t>(tokens[i]);  // int64 can hold ids of every type
    if (id < 0 || id >= vocab_size) return i;
  }
  return tokens.size();
}

template <class T>
class TokenRange : public testing::Test {};
using types = testing::Types<std::uint8_t, std::int8_t, std::int16_t, std::uint16_t, std::int32_t,
                             std::int64_t>;
TYPED_TEST_SUITE(TokenRange, types);

TYPED_TEST(TokenRange, IsThatOfTheNaiveModel) {
  using T = TypeParam;
  std::mt19937_64 random(test::seed(6));
  constexpr T most = std::numeric_limits<T>::max();
  const std::int64_t sizes[] = {1,
                                2,
                                100,
                                128,
                                255,
                                256,
                                257,
                                32768,
                                65535,
                                65536,
                                70000,
                                std::int64_t{1} << 31,
                                std::numeric_limits<std::int64_t>::max()};
  for (int round = 0; round < 300; ++round) {
    const std::int64_t vocab_size = sizes[random() % std::size(sizes)];
    const auto limit = static_cast<std::uint64_t>(
        std::min<std::uint64_t>(static_cast<std::uint64_t>(vocab_size), std::uint64_t{most} + 1));
    std::vector<T> tokens(random() % 10000);
    for (T& token : tokens) token = static_cast<T>(random() % limit);
    if (round % 3 != 0 && !tokens.empty()) {
      // Replaces one or two tokens by random values, which may be negative.
      for (int i = 0; i <= round % 2; ++i)
        tokens[random() % tokens.size()] = static_cast<T>(random());
    }
    // The tokens start at an odd address. This can also happen in a slot whose layout is for
    // another token width.
    std::vector<std::byte> bytes(tokens.size() * sizeof(T) + 1);
    if (!tokens.empty()) std::memcpy(bytes.data() + 1, tokens.data(), tokens.size() * sizeof(T));
    const auto view = std::span<const std::byte>(bytes).subspan(1);
    const std::size_t expected = naive(tokens, vocab_size);
    ASSERT_EQ(find_outside(view, formats::dtype_of<T>(), vocab_size), expected)
        << tokens.size() << " tokens, vocab_size " << vocab_size;
    if (expected < tokens.size()) {
      EXPECT_EQ(token_at(view, formats::dtype_of<T>(), expected),
                static_cast<std::int64_t>(tokens[expected]));
    }
  }
}

TEST(TokenRangeOfFloats, IsNoQuestion) {
  const std::vector<float> numbers = {-1, 1e30F};
  EXPECT_EQ(find_outside(std::as_bytes(std::span(numbers)), formats::dtype::float32, 1), 2U);
}

}  // namespace
}  // namespace millrace::loader
