// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/megatron/numpy_random.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/formats/detail/sha256.hpp>

namespace millrace::dataset {
namespace {

using testing::ElementsAre;

/// numpy's own loop, with one draw and one swap at a time.
class naive_random {
 public:
  explicit naive_random(std::uint32_t seed) : twister_(seed) {}

  std::uint64_t interval(std::uint64_t max) {
    std::uint64_t mask = max;
    for (int shift = 1; shift < 64; shift *= 2) mask |= mask >> shift;
    if (max == 0) return 0;
    std::uint64_t drawn = 0;
    do {
      drawn = twister_();
      if (max > 0xFFFFFFFF) drawn = drawn << 32 | twister_();
      drawn &= mask;
    } while (drawn > max);
    return drawn;
  }

  template <class T>
  void shuffle(std::vector<T>& values) {
    for (std::size_t i = values.size(); i-- > 1;) std::swap(values[i], values[interval(i)]);
  }

 private:
  std::mt19937 twister_;
};

template <class T>
std::vector<T> iota(std::size_t n) {
  std::vector<T> values(n);
  std::iota(values.begin(), values.end(), T{0});
  return values;
}

std::string shuffled_sha256(numpy_random& random, std::size_t n) {
  auto values = iota<std::int32_t>(n);
  random.shuffle(std::span(values));
  return formats::sha256_hex(std::as_bytes(std::span(values)));
}

// Shuffles equal those of numpy 2.4.6. One generator, `RandomState(1234)`, shuffles
// `arange(n, dtype=int32)` for several n, one after another.
TEST(NumpyRandom, ShufflesAsNumpyDoes) {
  numpy_random random(1234);
  auto ten = iota<std::int32_t>(10);
  random.shuffle(std::span(ten));
  EXPECT_THAT(ten, ElementsAre(7, 2, 9, 1, 0, 8, 4, 5, 6, 3));
  auto seven = iota<std::int64_t>(7);
  random.shuffle(std::span(seven));
  EXPECT_THAT(seven, ElementsAre(6, 4, 0, 5, 3, 2, 1));
  EXPECT_EQ(shuffled_sha256(random, 1000),
            "c9a2365ef92dd8d26f784ebe8c07a0edebd06438c39a6a66f3bf2b01bed76fad");
  EXPECT_EQ(shuffled_sha256(random, 100003),
            "3c120517a531d9a7ffa5129545b77bf59e11b24d357dd527c6dd645295951765");
  EXPECT_EQ(shuffled_sha256(random, 3000017),
            "ca77415220aecb2f4c73d45b17a4deeba07ce0b79a5190054276f159801c7d24");
}

// A shuffle takes exactly as many draws as numpy's. The tested sizes are near powers of two, near
// the size of a block of targets, and near the size of a group of draws. One generator shuffles all
// sizes. So one draw too many or too few changes the shuffle of the next size.
TEST(NumpyRandom, TakesNoDrawMoreThanNumpy) {
  numpy_random ours(7);
  naive_random naive(7);
  std::vector<std::size_t> sizes = iota<std::size_t>(300);
  for (std::size_t power = 512; power <= 1 << 17; power *= 2) {
    for (std::size_t n = power - 18; n < power + 18; ++n) sizes.push_back(n);
    for (const std::size_t n : {power + 255, power + 257}) sizes.push_back(n);
  }
  for (const std::size_t n : sizes) {
    auto values = iota<std::uint32_t>(n);
    auto expected = values;
    ours.shuffle(std::span(values));
    naive.shuffle(expected);
    ASSERT_EQ(values, expected) << n;
    ASSERT_EQ(ours.interval(1000), naive.interval(1000)) << "after " << n;
  }
}

TEST(NumpyRandom, DrawsFromEveryInterval) {
  numpy_random ours(42);
  naive_random naive(42);
  for (int bits = 0; bits < 64; ++bits) {
    const std::uint64_t power = std::uint64_t{1} << bits;
    for (const std::uint64_t max : {power - 1, power, power + power / 3}) {
      for (int i = 0; i < 20; ++i) ASSERT_EQ(ours.interval(max), naive.interval(max)) << max;
    }
  }
  EXPECT_EQ(ours.interval(~std::uint64_t{0}), naive.interval(~std::uint64_t{0}));
}

// `intervals()` draws many numbers at once. They equal the numbers that are drawn one by one. Some
// limits are near 2^32, where bounds and masks almost wrap.
TEST(NumpyRandom, DrawsManyIntervalsAtOnce) {
  for (const std::uint32_t last : {0xFFFFFFFFU, 0xFFFFFFF0U, 0x80000100U, 0x7FFFFFFFU, 700U}) {
    numpy_random ours(5);
    naive_random naive(5);
    std::vector<std::uint32_t> targets(700);
    ours.intervals(last, targets);
    for (std::size_t i = 0; i < targets.size(); ++i) {
      ASSERT_EQ(targets[i], naive.interval(last - i)) << last << " - " << i;
    }
    EXPECT_EQ(ours.interval(9), naive.interval(9)) << last;
  }
}

// A hash of 60,000 numbers of numpy 2.4.6, as Python draws them:
//
//   random, out = numpy.random.RandomState([3, 4]), []
//   for i in range(20000):
//       out.append(random.binomial(1, rates[i % 10]))
//       out += list(random.randint(0, most[i % 7] + 1, 2))
//   hashlib.sha256(numpy.array(out, dtype=numpy.int64).tobytes()).hexdigest()
TEST(NumpyRandom, TriesAsNumpyDoes) {
  constexpr std::array rates = {0.0, 1.0, 0.5, 1e-300, 1e-9, 0.1, 0.3, 0.9, 1 - 1e-9, 0.7};
  constexpr std::array<std::uint64_t, 7> most = {0, 1, 2, 9, 255, 1000, 65536};
  constexpr std::array<std::uint32_t, 2> key = {3, 4};
  numpy_random random{key};
  std::vector<std::int64_t> drawn;
  for (std::size_t i = 0; i < 20'000; ++i) {
    drawn.push_back(random.binomial(rates[i % rates.size()]) ? 1 : 0);
    for (int twice = 0; twice < 2; ++twice) {
      drawn.push_back(static_cast<std::int64_t>(random.interval(most[i % most.size()])));
    }
  }
  EXPECT_EQ(formats::sha256_hex(std::as_bytes(std::span(drawn))),
            "e1788e8a1c3a8f02f314222c76bd6bd5056f9fc330242c9ae7da0566735c1840");
}

TEST(NumpyRandom, SeedsSeveralAtOnce) {
  const std::array<std::array<std::uint32_t, 2>, 3> keys = {{{1, 2}, {0, 0xFFFFFFFF}, {3, 4}}};
  std::array<numpy_random, 3> together = {numpy_random(1), numpy_random(2), numpy_random(3)};
  for (numpy_random& used : together) (void)used.interval(9);
  numpy_random::seed<3>(together, {keys[0], keys[1], keys[2]});
  for (std::size_t n = 0; n < keys.size(); ++n) {
    numpy_random alone{std::span<const std::uint32_t>(keys[n])};
    for (int i = 0; i < 2000; ++i) ASSERT_EQ(together[n].uniform(), alone.uniform()) << n;
  }
}

// `RandomState([3, 4]).binomial(1, p)` 40 times, then `random_sample()`.
TEST(NumpyRandom, TakesTwoDrawsPerTrialForAnyProbability) {
  const auto tried = [](double p) {
    constexpr std::array<std::uint32_t, 2> key = {3, 4};
    numpy_random random{key};
    std::string found;
    for (int i = 0; i < 40; ++i) found += random.binomial(p) ? '1' : '0';
    EXPECT_EQ(random.uniform(), 0.8661142844606925) << p;
    return found;
  };
  EXPECT_EQ(tried(0), std::string(40, '0'));
  EXPECT_EQ(tried(1), std::string(40, '1'));
  EXPECT_EQ(tried(1e-9), std::string(40, '0'));
  EXPECT_EQ(tried(1 - 1e-9), std::string(40, '1'));
  EXPECT_EQ(tried(0.1), "0000000000000100010100000000000000000000");
  EXPECT_EQ(tried(0.5), "0001011100110111010111001001110100001110");
  EXPECT_EQ(tried(0.7), "1111100011011000101000111111001111111111");
}

}  // namespace
}  // namespace millrace::dataset
