// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/io/read_outcome.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include <gtest/gtest.h>

namespace millrace::loader {
namespace {

read_progress of(std::uint64_t bytes, std::uint64_t need) {
  return {.bytes = bytes, .need = need, .alignment = 512, .memory_alignment = 512};
}

TEST(ReadOutcome, AllThatIsNeededIsEnough) {
  read_progress whole = of(8192, 8000);
  EXPECT_EQ(take_result(whole, 8192), read_outcome::complete);
  read_progress to_the_end = of(8192, 8000);
  EXPECT_EQ(take_result(to_the_end, 8000), read_outcome::complete);  // the file ends at this byte
}

TEST(ReadOutcome, AShortReadIsReadOn) {
  read_progress p = of(8192, 8000);
  EXPECT_EQ(take_result(p, 4096), read_outcome::resume);
  EXPECT_EQ(p.done, 4096u);
  EXPECT_EQ(take_result(p, 3584), read_outcome::resume);
  EXPECT_EQ(take_result(p, 512), read_outcome::complete);
}

// A device may need coarser alignment for addresses than for offsets. After a short read, the next
// read must start where both the offset and the address are aligned. Otherwise, the device would
// refuse this read (EINVAL), and pread would read the file from then on.
TEST(ReadOutcome, ReadingResumesWhereOffsetAndAddressAreAligned) {
  read_progress p = of(16384, 16000);
  p.memory_alignment = 4096;
  EXPECT_EQ(take_result(p, 4096 + 512), read_outcome::resume);
  EXPECT_EQ(p.done, 4096u);
  EXPECT_EQ(take_result(p, 8191), read_outcome::hand_over);
  EXPECT_EQ(take_result(p, 2 * 4096 + 3584), read_outcome::resume);
  EXPECT_EQ(p.done, 3 * 4096u);
  EXPECT_EQ(take_result(p, 4096), read_outcome::complete);
}

// A read must resume only at an aligned place. Tests short reads of all sizes, on a simulated
// device that refuses unaligned reads.
TEST(ReadOutcome, NoShortReadIsResumedWhereTheDeviceRefusesIt) {
  for (const std::uint32_t offset : {512u, 4096u}) {
    for (const std::uint32_t memory : {4u, 512u, 4096u}) {
      for (std::int64_t most = 512; most <= 16384; most += 512) {
        read_progress p = of(16384, 16000);
        p.alignment = offset;
        p.memory_alignment = memory;
        read_outcome outcome = read_outcome::resume;
        int reads = 0;
        while (outcome == read_outcome::resume || outcome == read_outcome::repeat) {
          ASSERT_LT(++reads, 64);
          const bool refused = p.done % offset != 0 || p.done % memory != 0;
          const auto left = static_cast<std::int64_t>(p.bytes - p.done);
          outcome = take_result(p, refused ? -EINVAL : std::min(most, left));
        }
        const bool aligned = most % std::max(offset, memory) == 0;
        EXPECT_NE(outcome, read_outcome::demote) << offset << " " << memory << " " << most;
        if (aligned || most >= 16000) {
          EXPECT_EQ(outcome, read_outcome::complete) << offset << " " << memory << " " << most;
        }
      }
    }
  }
}

// If a device returns only a part of a block every time, the reader must not repeat the read
// forever.
TEST(ReadOutcome, AReadThatIsAlwaysTooShortIsForPread) {
  read_progress p = of(16384, 16000);
  p.memory_alignment = 4096;
  for (int i = 0; i < 8; ++i) EXPECT_EQ(take_result(p, 512), read_outcome::repeat);
  EXPECT_EQ(take_result(p, 512), read_outcome::hand_over);
}

TEST(ReadOutcome, AnEndInsideABlockIsForPreadToJudge) {
  read_progress p = of(8192, 8000);
  EXPECT_EQ(take_result(p, 7999), read_outcome::hand_over);
}

TEST(ReadOutcome, NothingMoreIsForPreadToJudge) {
  read_progress p = of(8192, 8000);
  EXPECT_EQ(take_result(p, 4096), read_outcome::resume);
  EXPECT_EQ(take_result(p, 0), read_outcome::hand_over);
}

TEST(ReadOutcome, InterruptionsAreRepeatedButNotForEver) {
  for (const int code : {EINTR, EAGAIN}) {
    read_progress p = of(8192, 8000);
    for (int i = 0; i < 8; ++i) EXPECT_EQ(take_result(p, -code), read_outcome::repeat);
    EXPECT_EQ(take_result(p, -code), read_outcome::hand_over);
  }
}

TEST(ReadOutcome, ProgressStartsTheCountAnew) {
  read_progress p = of(8192, 8000);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(take_result(p, -EAGAIN), read_outcome::repeat);
  EXPECT_EQ(take_result(p, 512), read_outcome::resume);
  EXPECT_EQ(take_result(p, -EAGAIN), read_outcome::repeat);
}

TEST(ReadOutcome, WhatTheFileCannotDoIsNotTriedAgain) {
  for (const int code : {EINVAL, EOPNOTSUPP, ENOSYS}) {
    read_progress p = of(8192, 8000);
    EXPECT_EQ(take_result(p, -code), read_outcome::demote);
  }
}

TEST(ReadOutcome, ErrorsAreForPread) {
  for (const int code : {EIO, ESTALE, ETIMEDOUT, EBADF}) {
    read_progress p = of(8192, 8000);
    EXPECT_EQ(take_result(p, -code), read_outcome::hand_over);
  }
}

}  // namespace
}  // namespace millrace::loader
