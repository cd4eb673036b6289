// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/token_windows.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/paths.hpp"
#include "unit/dataset/write_dataset.hpp"

namespace millrace::dataset {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// Creating token_windows from a temporary dataset must not compile.
static_assert(!std::is_constructible_v<token_windows, indexed_dataset, std::int64_t>);

class TokenWindows : public testing::Test {
 protected:
  template <class T>
  indexed_dataset stored(const test::documents_of<T>& documents) {
    test::write_dataset<T>(folder_ / "data", documents);
    return indexed_dataset(folder_ / "data");
  }

  static std::vector<std::int64_t> ids(const token_view& view) {
    std::vector<std::int64_t> out;
    for (std::int64_t i = 0; i < view.size(); ++i) out.push_back(view[i]);
    return out;
  }

  static std::string refusal(const indexed_dataset& data, std::int64_t seq_len) {
    try {
      const token_windows windows(data, seq_len);
    } catch (const config_error& e) {
      return e.what();
    }
    return "accepted";
  }

  test::temp_folder folder_;
};

TEST_F(TokenWindows, ShareOneTokenAndCrossDocuments) {
  const auto data = stored<std::uint16_t>({{{0, 1}}, {}, {{2}, {}, {3, 4, 5}}, {{6, 7, 8}}});
  const token_windows windows(data, 3);
  EXPECT_EQ(windows.seq_len(), 3);
  ASSERT_EQ(windows.count(), 2);
  EXPECT_THAT(ids(windows[0]), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(ids(windows[1]), ElementsAre(3, 4, 5, 6));
}

// The last token of a window is also the first token of the next window. So n + 1 tokens give n
// windows of one token.
TEST_F(TokenWindows, AreAsManyAsHaveALabelForEachToken) {
  for (std::size_t tokens = 2; tokens <= 12; ++tokens) {
    const auto data = stored<std::int32_t>({{std::vector<std::int32_t>(tokens, 7)}});
    for (std::int64_t seq_len = 1; seq_len < static_cast<std::int64_t>(tokens); ++seq_len) {
      std::int64_t whole = 0;
      while ((whole + 1) * seq_len + 1 <= static_cast<std::int64_t>(tokens)) ++whole;
      EXPECT_EQ(token_windows(data, seq_len).count(), whole) << tokens << " by " << seq_len;
    }
  }
}

TEST_F(TokenWindows, StayValidWhenTheDatasetMoves) {
  auto data = stored<std::uint8_t>({{{1, 2, 3}}});
  const token_windows windows(data, 2);
  const indexed_dataset moved = std::move(data);
  EXPECT_THAT(ids(windows[0]), ElementsAre(1, 2, 3));
}

TEST_F(TokenWindows, RefuseADatasetOfLessThanOne) {
  const auto data = stored<std::uint16_t>({{{1, 2, 3, 4}}});
  EXPECT_EQ(token_windows(data, 3).count(), 1);
  EXPECT_THAT(refusal(data, 4), AllOf(HasSubstr("data has 4 tokens"), HasSubstr("which is 5")));
  EXPECT_THAT(refusal(data, std::numeric_limits<std::int64_t>::max()),
              HasSubstr("which is 9223372036854775808"));

  EXPECT_THAT(refusal(stored<std::uint16_t>({}), 1), HasSubstr("data has 0 tokens"));
}

TEST_F(TokenWindows, RefuseALengthBelowOne) {
  const auto data = stored<std::uint16_t>({{{1, 2}}});
  EXPECT_THAT(refusal(data, 0), HasSubstr("seq_len is 0"));
  EXPECT_THAT(refusal(data, std::numeric_limits<std::int64_t>::min()), HasSubstr("seq_len is -"));
}

TEST_F(TokenWindows, RefuseFloats) {
  EXPECT_THAT(refusal(stored<float>({{{1, 2}}}), 1), HasSubstr("data holds float32"));
  EXPECT_THAT(refusal(stored<double>({{{1, 2}}}), 1), HasSubstr("data holds float64"));
}

}  // namespace
}  // namespace millrace::dataset
