// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/sample/gather.hpp>

#include <cstdint>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/dataset/detail/sample/field_options.hpp>

#include "support/paths.hpp"
#include "unit/dataset/write_dataset.hpp"

namespace millrace::dataset {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using pieces = std::vector<piece>;

class Gather : public testing::Test {
 protected:
  Gather() {
    test::write_dataset<std::uint16_t>(folder_ / "data",
                                       {{{10, 11, 12}, {20}}, {}, {{30, 31}, {}, {40, 41, 65535}}});
  }

  template <class T>
  std::vector<T> text(const pieces& from, std::size_t size, std::int64_t pad = -1) {
    std::vector<T> out(size, T{77});
    real_ = gather<T>(data(), from, out, pad);
    return out;
  }

  const indexed_dataset& data() {
    static const indexed_dataset opened(folder_ / "data");
    return opened;
  }

  template <class Error>
  std::string fault(const pieces& from) {
    try {
      (void)text<std::int64_t>(from, 4);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }

  test::temp_folder folder_;
  std::int64_t real_ = 0;
};

TEST_F(Gather, LaysPiecesOneBehindAnother) {
  const pieces from = {{4, 1, 2}, {0, 0, 2}, {3, 0, 0}, {1, 0, 1}};
  EXPECT_THAT(text<std::int64_t>(from, 5), ElementsAre(41, 65535, 10, 11, 20));
  EXPECT_EQ(real_, 5);
  EXPECT_EQ(token_count(from), 5);
  EXPECT_THAT(text<std::uint16_t>(from, 5), ElementsAre(41, 65535, 10, 11, 20));
  EXPECT_THAT(text<std::int32_t>(from, 5), ElementsAre(41, 65535, 10, 11, 20));
}

TEST_F(Gather, PadsWhatIsShort) {
  EXPECT_THAT(text<std::int64_t>({{2, 0, 2}}, 4, -1), ElementsAre(30, 31, -1, -1));
  EXPECT_EQ(real_, 2);
  EXPECT_THAT(text<std::uint16_t>({{2, 0, 2}}, 4, 9), ElementsAre(30, 31, 9, 9));
  EXPECT_THAT(text<std::uint16_t>({{2, 0, 2}}, 4, -1), ElementsAre(30, 31, 0, 0));
  EXPECT_THAT(text<std::uint16_t>({{2, 0, 2}}, 4, 65536), ElementsAre(30, 31, 0, 0));
  EXPECT_THAT(text<std::uint16_t>({}, 2, 3), ElementsAre(3, 3));
  EXPECT_EQ(real_, 0);
}

TEST_F(Gather, RefusesPiecesOfAnotherDataset) {
  EXPECT_THAT(
      fault<format_error>({{0, 2, 2}}),
      HasSubstr("data.idx: sequence 0 has 3 tokens, expected 2 from token 2: a sample index"));
  EXPECT_THAT(fault<format_error>({{1, 2, 0}}), HasSubstr("sequence 1 has 1 tokens"));
  EXPECT_THAT(fault<format_error>({{1, -1, 1}}), HasSubstr("sequence 1 has 1 tokens"));
  EXPECT_THAT(fault<format_error>({{1, 0, -1}}), HasSubstr("sequence 1 has 1 tokens"));
  EXPECT_THAT(fault<format_error>({{1, 1, INT64_MAX}}), HasSubstr("sequence 1 has 1 tokens"));
}

TEST_F(Gather, RefusesMoreThanThereIsRoomFor) {
  EXPECT_THAT(fault<config_error>({{0, 0, 3}, {2, 0, 2}}),
              HasSubstr("pieces of a sample have 5 tokens, expected at most the 4"));
  EXPECT_THROW((void)text<std::uint8_t>({{0, 0, 1}}, 1), config_error) << "uint16 in uint8";
}

// The pad id follows Megatron's rule for the pad ids of its tokenizers.
TEST(PadId, IsNoneWhereItWouldBeAmbiguous) {
  const std::vector<std::int64_t> special = {2, 0};
  EXPECT_EQ(pad_id(std::nullopt, special), -1);
  EXPECT_EQ(pad_id(1, special), 1);
  EXPECT_EQ(pad_id(0, special), -1);
  EXPECT_EQ(pad_id(0, special, true), 0);
  EXPECT_EQ(pad_id(0, {}), 0);
}

}  // namespace
}  // namespace millrace::dataset
