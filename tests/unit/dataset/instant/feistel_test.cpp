// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/instant/feistel.hpp>

#include <cstdint>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::dataset {
namespace {

std::vector<std::int64_t> all_of(const feistel& order) {
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < order.size(); ++i) out.push_back(order(i));
  return out;
}

feistel order_of(std::int64_t n, std::uint64_t seed) {
  return {n, keys_of(order_hash(shuffle_of::windows, seed, name_hash("web")))};
}

TEST(Feistel, OfOneIsTheIdentity) {
  EXPECT_EQ(order_of(1, 7)(0), 0);
  EXPECT_EQ(order_of(1, 7).inverse(0), 0);
}

TEST(Feistel, DependsOnEachKey) {
  const feistel_keys keys = keys_of(1);
  const auto whole = all_of(feistel(1000, keys));
  for (std::size_t i = 0; i < keys.size(); ++i) {
    feistel_keys other = keys;
    other[i] ^= 1;
    EXPECT_NE(all_of(feistel(1000, other)), whole) << i;
    other = keys;
    other[i] ^= std::uint64_t{1} << 63;
    EXPECT_NE(all_of(feistel(1000, other)), whole) << i;
  }
}

// The order is a bijection for every size. Some sizes need an even number of bits, others an odd
// number. Some sizes use all numbers of these bits; for others, cycle walking skips most numbers.
TEST(Feistel, IsABijectionAtTheEdgesOfItsDomains) {
  for (const std::int64_t n : {2, 255, 256, 257, 511, 512, 513, 65535, 65536, 65537}) {
    const feistel order = order_of(n, 3);
    std::vector<bool> met(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t to = order(i);
      ASSERT_TRUE(0 <= to && to < n) << n;
      ASSERT_FALSE(met[static_cast<std::size_t>(to)]) << n;
      met[static_cast<std::size_t>(to)] = true;
      ASSERT_EQ(order.inverse(to), i) << n;
    }
  }
}

TEST(Feistel, ReachesTheLargestSize) {
  const feistel order = order_of(feistel::largest, 3);
  for (const std::int64_t i : {std::int64_t{0}, std::int64_t{1}, feistel::largest - 1}) {
    const std::int64_t to = order(i);
    ASSERT_TRUE(0 <= to && to < feistel::largest);
    EXPECT_EQ(order.inverse(to), i);
  }
}

}  // namespace
}  // namespace millrace::dataset
