// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/io/read_outcome.hpp>

#include <cerrno>

#include <gtest/gtest.h>

namespace millrace::loader {
namespace {

read_progress of(std::uint64_t bytes, std::uint64_t need) {
  return {bytes, need, 0, 512, 0};
}

TEST(ReadOutcome, AllThatIsNeededIsEnough) {
  read_progress whole = of(8192, 8000);
  EXPECT_EQ(take_result(whole, 8192), read_outcome::complete);
  read_progress to_the_end = of(8192, 8000);
  EXPECT_EQ(take_result(to_the_end, 8000), read_outcome::complete);  // the file ends there
}

TEST(ReadOutcome, AShortReadIsReadOn) {
  read_progress p = of(8192, 8000);
  EXPECT_EQ(take_result(p, 4096), read_outcome::resume);
  EXPECT_EQ(p.done, 4096u);
  EXPECT_EQ(take_result(p, 3584), read_outcome::resume);
  EXPECT_EQ(take_result(p, 512), read_outcome::complete);
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
