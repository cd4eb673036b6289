// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/indexed_dataset.hpp>

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::dataset {
namespace {

using testing::ElementsAre;

template <class T>
token_view view_of(const std::vector<T>& tokens) {
  return {formats::dtype_of<T>(), std::as_bytes(std::span(tokens))};
}

template <class To>
std::vector<To> copy(const token_view& view) {
  std::vector<To> out(static_cast<std::size_t>(view.size()));
  view.copy_to(std::span(out));
  return out;
}

template <class T>
class TokenViewOf : public testing::Test {};
using AllTypes = testing::Types<std::uint8_t, std::int8_t, std::int16_t, std::int32_t, std::int64_t,
                                double, float, std::uint16_t>;
TYPED_TEST_SUITE(TokenViewOf, AllTypes);

TYPED_TEST(TokenViewOf, GivesEachTokenInEveryForm) {
  using T = TypeParam;
  const std::vector<T> tokens = {T{7}, T{0}, T{100}};
  const token_view view = view_of(tokens);

  EXPECT_EQ(view.type(), formats::dtype_of<T>());
  ASSERT_EQ(view.size(), 3);
  EXPECT_EQ(view[0], 7);
  EXPECT_EQ(view[2], 100);
  EXPECT_EQ(view.as_double(2), 100.0);
  EXPECT_EQ(view.as<T>().data(), tokens.data());
  EXPECT_THAT(copy<T>(view), ElementsAre(T{7}, T{0}, T{100}));
  EXPECT_THAT(copy<T>(view.subview(1, 2).subview(1, 1)), ElementsAre(T{100}));
}

// A view may start at any address. Only `as<T>` requires alignment.
TYPED_TEST(TokenViewOf, ReadsAtAnyAddress) {
  using T = TypeParam;
  const std::vector<T> tokens = {T{1}, T{2}, T{3}};
  const auto bytes = std::as_bytes(std::span(tokens));
  std::vector<std::byte> shifted(1 + bytes.size());
  std::copy(bytes.begin(), bytes.end(), shifted.begin() + 1);
  const token_view view(formats::dtype_of<T>(), std::span(shifted).subspan(1));

  EXPECT_EQ(view[2], 3);
  EXPECT_THAT(copy<T>(view), ElementsAre(T{1}, T{2}, T{3}));
  EXPECT_TRUE(view == view_of(tokens));
}

TEST(TokenView, DefaultIsEmpty) {
  const token_view view;
  EXPECT_TRUE(view.empty());
  EXPECT_EQ(view.size(), 0);
  EXPECT_TRUE(view.subview(0, 0).empty());
  EXPECT_TRUE(copy<std::int64_t>(view).empty());
  EXPECT_TRUE(view.as<std::uint16_t>().empty());
}

TEST(TokenView, WidensTheExtremesOfEachType) {
  EXPECT_THAT(copy<std::int64_t>(view_of<std::uint16_t>({0, 65535})), ElementsAre(0, 65535));
  EXPECT_THAT(copy<std::int32_t>(view_of<std::uint16_t>({0, 65535})), ElementsAre(0, 65535));
  EXPECT_THAT(copy<std::int64_t>(view_of<std::int8_t>({-128, 127})), ElementsAre(-128, 127));
  constexpr auto low = std::numeric_limits<std::int32_t>::min();
  EXPECT_THAT(copy<std::int64_t>(view_of<std::int32_t>({low, -1})), ElementsAre(low, -1));
  EXPECT_THAT(copy<double>(view_of<float>({0.5F, -3.0F})), ElementsAre(0.5, -3.0));
}

// Every token of a view is converted. Sizes up to 1,000 tokens exercise the compiler's vector loop
// and the code before and after it.
TEST(TokenView, ConvertsEveryTokenOfALongRun) {
  for (const std::size_t size : {1U, 7U, 31U, 64U, 1000U}) {
    SCOPED_TRACE(size);
    std::vector<std::uint16_t> tokens(size);
    for (std::size_t i = 0; i < size; ++i) tokens[i] = static_cast<std::uint16_t>(i * 251);
    const auto wide = copy<std::int64_t>(view_of(tokens));
    for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(wide[i], tokens[i]) << i;
  }
}

TEST(TokenView, CopiesOnlyWhatFits) {
  EXPECT_THROW(copy<std::int32_t>(view_of<std::int64_t>({1})), config_error);
  EXPECT_THROW(copy<std::int16_t>(view_of<std::uint16_t>({1})), config_error);
  EXPECT_THROW(copy<std::uint64_t>(view_of<std::int8_t>({1})), config_error);
  EXPECT_THROW(copy<std::int64_t>(view_of<float>({1})), config_error);
  EXPECT_THROW(copy<float>(view_of<std::int32_t>({1})), config_error);
  static_assert(holds_every<std::int32_t, std::uint16_t> && !holds_every<double, std::int64_t>);
  static_assert(holds_every<float, std::uint16_t> && !holds_every<std::uint16_t, std::int8_t>);
}

TEST(TokenView, NamesBothTypesWhenAskedForAnother) {
  try {
    (void)view_of<std::uint16_t>({1}).as<std::int32_t>();
    FAIL() << "accepted";
  } catch (const config_error& e) {
    EXPECT_STREQ(e.what(), "tokens are uint16, requested as int32");
  }
}

TEST(TokenView, CutsFloatsToIdsWithoutOverflow) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> tokens = {1.9, -1.9, infinity, -infinity, nan, 0x1p63, -0x1p63};
  const token_view view = view_of(tokens);
  constexpr auto low = std::numeric_limits<std::int64_t>::min();
  constexpr auto high = std::numeric_limits<std::int64_t>::max();
  const std::vector<std::int64_t> expected = {1, -1, high, low, 0, high, low};
  for (std::int64_t i = 0; i < view.size(); ++i) {
    EXPECT_EQ(view[i], expected[static_cast<std::size_t>(i)]) << i;
  }
}

TEST(TokenView, ComparesTypeAndBytes) {
  const std::vector<std::uint16_t> a = {1, 2, 3};
  const std::vector<std::uint16_t> b = {1, 2, 3};
  const std::vector<std::int16_t> c = {1, 2, 3};
  EXPECT_TRUE(view_of(a) == view_of(b));
  EXPECT_FALSE(view_of(a) == view_of(b).subview(0, 2));
  EXPECT_FALSE(view_of(a) == view_of(c));
}

}  // namespace
}  // namespace millrace::dataset
