// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/sample/cu_seqlens.hpp>

#include <sys/mman.h>

#include <cstdint>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/attention_mask.hpp"
#include "support/paths.hpp"
#include "support/seed.hpp"
#include "unit/dataset/sample/naive_fields.hpp"
#include "unit/dataset/write_dataset.hpp"

namespace millrace::dataset {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<piece> pieces_of(const std::vector<std::int64_t>& lengths) {
  std::vector<piece> pieces;
  for (const std::int64_t length : lengths) {
    pieces.push_back({static_cast<std::int64_t>(pieces.size()), 0, length});
  }
  return pieces;
}

struct filled {
  std::vector<std::int32_t> all;
  cu_seqlens_size size;
};

template <class Joined = pieces_apart>
filled fill(const std::vector<piece>& pieces, std::int64_t seq_len, bool extra,
            const Joined& joined = {}) {
  filled f;
  f.all.assign(static_cast<std::size_t>(seq_len) + 1, -7);
  f.size = fill_cu_seqlens(pieces, seq_len, extra, f.all, joined);
  return f;
}

TEST(CuSeqlens, AreTheSumsOfThePieces) {
  const auto f = fill(pieces_of({3, 4, 2}), 8, true);
  EXPECT_THAT(f.all, ElementsAre(0, 3, 7, 8, 8, 8, 8, 8, 8));
  EXPECT_EQ(f.size, (cu_seqlens_size{4, 4}));
}

TEST(CuSeqlens, LeaveOutADocumentOfTheExtraTokenAlone) {
  EXPECT_THAT(fill(pieces_of({3, 1}), 3, true).all, ElementsAre(0, 3, 3, 3));
  EXPECT_THAT(fill(pieces_of({3, 1}), 4, false).all, ElementsAre(0, 3, 4, 4, 4));
}

TEST(CuSeqlens, GiveThePaddingToTheLastDocument) {
  EXPECT_THAT(fill(pieces_of({2, 2}), 6, true).all, ElementsAre(0, 2, 6, 6, 6, 6, 6));
  EXPECT_THAT(fill({}, 2, true).all, ElementsAre(0, 2, 2));
  EXPECT_THAT(fill(pieces_of({2}), 4, false).all, ElementsAre(0, 4, 4, 4, 4));
}

TEST(CuSeqlens, HaveEmptyPiecesTwice) {
  EXPECT_THAT(fill(pieces_of({2, 0, 2}), 4, false).all, ElementsAre(0, 2, 2, 4, 4));
  // With the repeated boundaries, there would be more than 4 entries. Without them, there are at
  // most 4.
  EXPECT_THAT(fill(pieces_of({1, 0, 0, 2}), 3, false).all, ElementsAre(0, 1, 3, 3));
}

TEST(CuSeqlens, AreWhatMegatronsRuleSays) {
  std::mt19937_64 random(test::seed(2));
  for (int round = 0; round < 5000; ++round) {
    const bool extra = random() % 2 == 0;
    const std::int64_t seq_len = 1 + static_cast<std::int64_t>(random() % 30);
    const std::int64_t room = seq_len + (extra ? 1 : 0);
    std::vector<std::int64_t> lengths;
    for (std::int64_t sum = 0; sum < room && (random() % 20 != 0 || sum == 0);) {
      lengths.push_back(1 + static_cast<std::int64_t>(random() % 9));
      lengths.back() = std::min(lengths.back(), room - sum);
      sum += lengths.back();
    }
    auto expected = test::naive_cu_seqlens(lengths, seq_len, extra);
    const auto found = fill(pieces_of(lengths), seq_len, extra);
    std::int32_t longest = 0;
    for (std::size_t i = 1; i < expected.size(); ++i) {
      longest = std::max(longest, expected[i] - expected[i - 1]);
    }
    EXPECT_EQ(found.size, (cu_seqlens_size{static_cast<std::int64_t>(expected.size()), longest}));
    expected.resize(static_cast<std::size_t>(seq_len) + 1, static_cast<std::int32_t>(seq_len));
    ASSERT_EQ(found.all, expected) << round;

    // Position ids agree with the mask: a token at position p can see exactly itself and the p
    // tokens before it.
    std::vector<std::int64_t> positions(static_cast<std::size_t>(seq_len), -7);
    fill_position_ids<std::int64_t>(found.all, positions);
    const auto mask = test::attention_mask::by_cu_seqlens(found.all);
    for (std::int64_t i = 0; i < seq_len; ++i) {
      const std::int64_t start = i - positions[static_cast<std::size_t>(i)];
      for (std::int64_t j = 0; j < seq_len; ++j) ASSERT_EQ(mask(i, j), j > i || j < start);
    }
  }
}

TEST(CuSeqlens, JoinTheSequencesOfADocument) {
  const test::temp_folder folder;
  // Document 0 has sequences 0 and 1; document 1 has none; document 2 has sequences 2, 3 (empty)
  // and 4; document 3 has sequence 5.
  test::write_dataset<std::uint16_t>(folder / "data",
                                     {{{1, 1}, {1}}, {}, {{2, 2}, {}, {2}}, {{3, 3}}});
  const indexed_dataset data(folder / "data");
  const same_document joined(data);
  const std::vector<piece> pieces = {{0, 1, 1}, {1, 0, 1}, {2, 0, 2},
                                     {3, 0, 0}, {4, 0, 1}, {5, 0, 2}};
  EXPECT_THAT(fill(pieces, 6, true, joined).all, ElementsAre(0, 2, 5, 6, 6, 6, 6));
  EXPECT_THAT(fill(pieces, 6, true).all, ElementsAre(0, 1, 2, 4, 4, 5, 6));
  EXPECT_TRUE(joined({2, 0, 1}, {2, 1, 1}));
  EXPECT_FALSE(joined({2, 1, 1}, {2, 0, 1})) << "from the start again";
  EXPECT_FALSE(joined({4, 0, 1}, {2, 0, 1})) << "backwards";
}

TEST(CuSeqlens, OfAMicroBatchAreOneRow) {
  const std::vector<std::int32_t> rows = {0, 1, 4, 4, 4, 0, 4, 4, 4, 4, 0, 2, 2, 3, 4};
  std::vector<std::int32_t> out(13, -7);
  const auto entries = join_cu_seqlens(rows, 4, out);
  out.resize(static_cast<std::size_t>(entries));
  EXPECT_THAT(out, ElementsAre(0, 1, 4, 8, 10, 10, 11, 12));
}

TEST(CuSeqlens, RefuseAMicroBatchThatTheyCannotCount) {
  // Two rows of 2^30 tokens are one row too many. Their memory must not be read.
  constexpr std::int64_t seq_len = std::int64_t{1} << 30;
  constexpr std::size_t size = 2 * (static_cast<std::size_t>(seq_len) + 1);
  void* const region =
      ::mmap(nullptr, 4 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (region == MAP_FAILED) GTEST_SKIP() << "no room for an address range of 8 GiB";
  std::vector<std::int32_t> out(1);
  try {
    (void)join_cu_seqlens({static_cast<const std::int32_t*>(region), size}, seq_len, out);
    ADD_FAILURE() << "not refused";
  } catch (const config_error& e) {
    EXPECT_THAT(e.what(), HasSubstr("2 rows of 1073741824 tokens is longer than"));
  }
  ::munmap(region, 4 * size);
}

}  // namespace
}  // namespace millrace::dataset
