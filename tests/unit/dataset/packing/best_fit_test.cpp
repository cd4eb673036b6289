// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/packing/best_fit.hpp>

#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/dataset/detail/packing/block_layout.hpp>
#include <millrace/dataset/detail/packing/context_parallel.hpp>
#include <millrace/dataset/detail/packing/room_index.hpp>
#include <millrace/error.hpp>

#include "support/seed.hpp"
#include "unit/dataset/packing/naive_packing.hpp"

namespace millrace::dataset {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using lengths = std::vector<std::int64_t>;

std::vector<std::vector<packed_part>> rows_of(best_fit& packer, const lengths& of,
                                              std::int64_t first_document = 0) {
  const block_layout layout(packer, of, first_document);
  std::vector<std::vector<packed_part>> rows(static_cast<std::size_t>(layout.row_count()));
  for (std::size_t r = 0; r < rows.size(); ++r) {
    layout.append_row(static_cast<std::int64_t>(r), rows[r]);
  }
  return rows;
}

TEST(RoomIndex, FindsTheLeastRoomThatIsEnough) {
  for (const std::size_t most : {1U, 63U, 64U, 4096U, 300000U}) {
    std::mt19937_64 random(test::seed(most));
    room_index index(most, 100);
    std::set<std::pair<std::size_t, std::uint32_t>> model;
    std::vector<std::uint32_t> free(100);
    for (std::uint32_t r = 0; r < 100; ++r) free[r] = r;
    for (int step = 0; step < 20000; ++step) {
      const std::size_t room = random() % (most + 1);
      if (step % 5000 == 4999) {
        index.clear();
        for (const auto& [_, row] : model) free.push_back(row);
        model.clear();
      } else if (random() % 2 == 0 && !free.empty()) {
        index.put(room, free.back());
        model.emplace(room, free.back());
        free.pop_back();
      } else {
        const auto found = index.take(room);
        const auto least = model.lower_bound({room, 0});
        ASSERT_EQ(found.row == room_index::no_row, least == model.end()) << step;
        if (least == model.end()) continue;
        ASSERT_EQ(found.room, least->first) << step;
        ASSERT_EQ(model.erase({found.room, found.row}), 1U) << step;
        free.push_back(found.row);
      }
    }
  }
}

TEST(RoomIndex, GivesTheLastOfEquals) {
  room_index index(10, 3);
  index.put(4, 0);
  index.put(4, 2);
  index.put(4, 1);
  EXPECT_EQ(index.take(3).row, 1U);
  EXPECT_EQ(index.take(4).row, 2U);
  EXPECT_EQ(index.take(0).row, 0U);
  EXPECT_EQ(index.take(0).row, room_index::no_row);
}

TEST(BestFit, FillsTheFullestRowThatHasRoom) {
  best_fit packer({.seq_len = 10});
  // The documents are placed longest first: 7 and 6 open rows, 4 joins 6, 3 joins 7, and 1 opens a
  // new row.
  EXPECT_EQ(packer.pack(lengths{4, 7, 1, 6, 3}), 3);
  EXPECT_EQ(packer.full_rows(), 0);
  EXPECT_THAT(packer.shared_row_of(), ElementsAre(1, 0, 2, 1, 0));
  EXPECT_THAT(rows_of(packer, {4, 7, 1, 6, 3}, 100),
              ElementsAre(ElementsAre(packed_part{101, 0, 7}, packed_part{104, 0, 3}),
                          ElementsAre(packed_part{100, 0, 4}, packed_part{103, 0, 6}),
                          ElementsAre(packed_part{102, 0, 1})));
}

TEST(BestFit, CutsLongDocumentsIntoRowsOfTheirOwn) {
  best_fit packer({.seq_len = 4});
  EXPECT_THAT(rows_of(packer, {9, 0, 4, 3}),
              ElementsAre(ElementsAre(packed_part{0, 0, 4}), ElementsAre(packed_part{0, 4, 4}),
                          ElementsAre(packed_part{2, 0, 4}),
                          ElementsAre(packed_part{0, 8, 1}, packed_part{3, 0, 3})));
}

TEST(BestFit, RoundsSharesUp) {
  best_fit packer({.seq_len = 8, .pad_documents_to = 4});
  // Rounded up, the documents of 1, 2 and 5 tokens take 4, 4 and 8 tokens. Without rounding, all
  // three would fit into one row.
  EXPECT_THAT(rows_of(packer, {1, 2, 5}),
              ElementsAre(ElementsAre(packed_part{2, 0, 5}),
                          ElementsAre(packed_part{0, 0, 1}, packed_part{1, 0, 2})));
}

TEST(BestFit, OfNothingIsNothing) {
  best_fit packer({.seq_len = 8});
  EXPECT_EQ(packer.pack({}), 0);
  EXPECT_EQ(packer.pack(lengths{0, 0}), 0);
  EXPECT_TRUE(rows_of(packer, {0, 0}).empty());
}

TEST(BestFit, RefusesOptionsThatCannotBe) {
  const auto fault = [](best_fit_options options) -> std::string {
    try {
      check(options);
    } catch (const config_error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(fault({.seq_len = 1}), "");
  EXPECT_EQ(fault({.seq_len = 1 << 24}), "");
  EXPECT_THAT(fault({.seq_len = 0}), HasSubstr("seq_len is 0, expected 1 to 16777216"));
  EXPECT_THAT(fault({.seq_len = (1 << 24) + 1}), HasSubstr("seq_len is 16777217"));
  EXPECT_THAT(fault({.seq_len = 8, .pad_documents_to = 0}), HasSubstr("pad_documents_to is 0"));
  EXPECT_THAT(
      fault({.seq_len = 8, .pad_documents_to = 3}),
      HasSubstr("pad_documents_to is 3, expected a number that divides seq_len, which is 8"));
}

lengths random_lengths(std::mt19937_64& random, std::int64_t seq_len) {
  const std::size_t count = random() % 10 == 0 ? 4096 : random() % 200;
  const std::int64_t most[] = {4, seq_len / 3 + 1, seq_len + 2, 5 * seq_len};
  const std::int64_t limit = most[random() % 4];
  lengths drawn(count);
  for (auto& length : drawn) {
    length = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit + 1));
  }
  return drawn;
}

TEST(BestFit, IsThatOfANaiveModel) {
  std::mt19937_64 random(test::seed(3));
  for (int round = 0; round < 150; ++round) {
    const std::int64_t multiple = std::int64_t{1} << (random() % 3 == 0 ? random() % 5 : 0);
    const std::int64_t seq_len = multiple * (1 + static_cast<std::int64_t>(random() % 100));
    best_fit packer({.seq_len = seq_len, .pad_documents_to = multiple});
    for (int again = 0; again < 3; ++again) {  // no state may remain between blocks
      const lengths of = random_lengths(random, seq_len);
      const auto expected = test::naive_block(of, 7, seq_len, multiple);
      ASSERT_EQ(rows_of(packer, of, 7), expected) << "round " << round;
      EXPECT_EQ(packer.pack(of), static_cast<std::int64_t>(expected.size()));
      // Each document must be found again in exactly the rows that contain it.
      const block_layout layout(packer, of, 7);
      for (std::size_t d = 0; d < of.size(); ++d) {
        lengths found;
        layout.append_rows_of(7 + static_cast<std::int64_t>(d), found);
        std::int64_t tokens = 0;
        for (const std::int64_t r : found) {
          for (const packed_part& part : expected[static_cast<std::size_t>(r)]) {
            if (part.document != 7 + static_cast<std::int64_t>(d)) continue;
            EXPECT_EQ(part.first, tokens);
            tokens += part.tokens;
          }
        }
        ASSERT_EQ(tokens, of[d]);
      }
    }
  }
}

TEST(ContextParallel, NamesTheNumber) {
  EXPECT_EQ(document_multiple({}), 1);
  EXPECT_EQ(document_multiple({.tensor_parallel = 8, .sequence_parallel = true}), 1);
  EXPECT_EQ(document_multiple({.context_parallel = 4}), 8);
  EXPECT_EQ(document_multiple({.context_parallel = 4, .tensor_parallel = 8}), 8);
  EXPECT_EQ(
      document_multiple({.context_parallel = 2, .tensor_parallel = 8, .sequence_parallel = true}),
      16);
  EXPECT_EQ(
      document_multiple({.context_parallel = 2, .tensor_parallel = 3, .sequence_parallel = true}),
      12);
  EXPECT_THROW((void)document_multiple({.context_parallel = 0}), config_error);
  EXPECT_NO_THROW(check_cu_seqlens({}, 1));
  EXPECT_NO_THROW(check_cu_seqlens({.context_parallel = 4}, 16));
  try {
    check_cu_seqlens({.context_parallel = 4}, 1);
    ADD_FAILURE() << "not refused";
  } catch (const config_error& e) {
    EXPECT_THAT(e.what(), HasSubstr("pad_documents_to is 1, expected a multiple of 8"));
  }
}

}  // namespace
}  // namespace millrace::dataset
