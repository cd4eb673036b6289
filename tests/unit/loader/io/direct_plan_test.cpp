// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/io/direct_plan.hpp>

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "support/seed.hpp"

namespace millrace::loader {
namespace {

constexpr direct_alignment usual{512, 512};

direct_alignment always(std::int64_t) {
  return usual;
}

std::vector<extent> plan_of(const std::vector<read_request>& requests, std::uint64_t slot = 8192) {
  direct_plan plan(slot);
  plan.make(requests, always);
  return {plan.extents().begin(), plan.extents().end()};
}

TEST(DirectPlan, ReadsWholeBlocks) {
  std::byte to{};
  const auto extents = plan_of({{{0, 1000, 100}, &to}});
  ASSERT_EQ(extents.size(), 1u);
  EXPECT_EQ(extents[0].begin, 512u);
  EXPECT_EQ(extents[0].end, 1536u);
  EXPECT_EQ(extents[0].need_end, 1100u);
  EXPECT_EQ(extents[0].straight, nullptr);
}

TEST(DirectPlan, MakesNeighboursOne) {
  std::byte to{};
  // Between the four requests: a gap that is too small to skip, a gap that is large enough to skip,
  // and a change of the file.
  const std::vector<read_request> requests{{{0, 0, 100}, &to},
                                           {{0, 2000, 100}, &to},
                                           {{0, 2560 + direct_plan::most_gap + 512, 100}, &to},
                                           {{1, 0, 100}, &to}};
  const auto extents = plan_of(requests, 65536);
  ASSERT_EQ(extents.size(), 3u);
  EXPECT_EQ(extents[0].end, 2560u);
  EXPECT_EQ(extents[0].pieces, 2u);
  EXPECT_EQ(extents[2].file, 1);
}

TEST(DirectPlan, NeverExceedsASlot) {
  std::byte to{};
  const auto extents = plan_of({{{0, 0, 8000}, &to}, {{0, 8000, 7000}, &to}});
  ASSERT_EQ(extents.size(), 2u);
  EXPECT_EQ(extents[0].end, 8192u);
  EXPECT_EQ(extents[1].begin, 7680u);  // this extent and the previous one read the same block
}

TEST(DirectPlan, ReadsStraightWhereAllIsAligned) {
  alignas(512) static std::byte memory[64 * 1024];
  for (const std::uint64_t bytes : {512u, 8192u, 65536u}) {
    const auto extents = plan_of({{{0, 1024, bytes}, memory}});
    ASSERT_EQ(extents.size(), 1u) << bytes;
    EXPECT_EQ(extents[0].straight, memory);
  }
  EXPECT_EQ(plan_of({{{0, 1024, 512}, memory + 2}})[0].straight, nullptr);
  EXPECT_EQ(plan_of({{{0, 1024, 511}, memory}})[0].straight, nullptr);
  EXPECT_EQ(plan_of({{{0, 1026, 512}, memory}})[0].straight, nullptr);
  EXPECT_EQ(plan_of({{{0, 1024, 512}, nullptr}})[0].straight, nullptr);
}

TEST(DirectPlan, ReadsTheMiddleOfALongRequestStraight) {
  alignas(512) static std::byte memory[64 * 1024];
  // The first whole block begins 12 bytes after the start of the request. Its place in memory,
  // memory + 512, is aligned.
  const auto extents = plan_of({{{0, 500, 30'000}, memory + 500}});
  ASSERT_EQ(extents.size(), 3u);
  EXPECT_EQ(extents[0].straight, nullptr);
  EXPECT_EQ(extents[1].begin, 512u);
  EXPECT_EQ(extents[1].end, 30'208u);
  EXPECT_EQ(extents[1].straight, memory + 512);
  EXPECT_EQ(extents[2].need_end, 30'500u);
}

// Each byte of each request must come from exactly one extent, which contains this byte. Every
// extent must obey the rules.
TEST(DirectPlanProperty, CoversEveryByteOnceWithAlignedExtents) {
  std::mt19937_64 random(test::seed(5));
  alignas(4096) static std::byte memory[1 << 20];
  const auto index = [](const std::byte* at) { return static_cast<std::size_t>(at - memory); };
  for (int round = 0; round < 300; ++round) {
    const std::uint64_t slot = std::uint64_t{4096} << random() % 4;
    const auto alignment = [&](std::int64_t file) {
      return file == 0 ? usual : direct_alignment{4096, 4096};
    };
    std::vector<read_request> requests(random() % 30);
    std::size_t used = 0;
    for (auto& r : requests) {
      const std::uint64_t unit = random() % 3 == 0 ? 4096 : random() % 2 == 0 ? 512 : 1;
      r.from = {static_cast<std::int64_t>(random() % 2), random() % 64 * unit,
                random() % 8 * unit + random() % 2};
      used = (used + unit - 1) / unit * unit;
      r.to = memory + used;
      used += r.from.bytes;
      ASSERT_LT(used, sizeof memory);
    }
    direct_plan plan(slot);
    plan.make(requests, alignment);
    std::vector<unsigned char> filled(used);
    for (const extent& e : plan.extents()) {
      const direct_alignment a = alignment(e.file);
      EXPECT_EQ(e.begin % a.offset, 0u);
      EXPECT_EQ(e.end % a.offset, 0u);
      EXPECT_LT(e.begin, e.end);
      EXPECT_LE(e.need_end, e.end);
      EXPECT_GT(e.need_end + a.offset, e.end);
      if (e.straight == nullptr) {
        EXPECT_LE(e.end - e.begin, slot);
      } else {
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(e.straight) % a.memory, 0u);
      }
      for (const read_request& piece : plan.pieces_of(e)) {
        EXPECT_EQ(piece.from.file, e.file);
        EXPECT_GE(piece.from.offset, e.begin);
        EXPECT_LE(piece.from.offset + piece.from.bytes, e.need_end);
        for (std::uint64_t i = 0; i < piece.from.bytes; ++i) ++filled[index(piece.to + i)];
        bool is_of_one = false;  // has the same file-to-memory distance as some request
        for (const read_request& r : requests) {
          is_of_one = is_of_one || (r.from.file == piece.from.file && piece.to >= r.to &&
                                    piece.to + piece.from.bytes <= r.to + r.from.bytes &&
                                    piece.from.offset - r.from.offset ==
                                        static_cast<std::uint64_t>(piece.to - r.to));
        }
        EXPECT_TRUE(is_of_one);
      }
    }
    for (const read_request& r : requests) {
      for (std::uint64_t i = 0; i < r.from.bytes; ++i) {
        ASSERT_EQ(filled[index(r.to + i)], 1) << "byte " << i << " of a request, round " << round;
      }
    }
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace millrace::loader
