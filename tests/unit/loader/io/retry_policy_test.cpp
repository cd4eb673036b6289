// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/io/retry_policy.hpp>

#include <cerrno>
#include <chrono>

#include <gtest/gtest.h>

namespace millrace::loader {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

TEST(RetryPolicy, OnlyANetworkMayMendItself) {
  for (const int code : {EIO, ESTALE, ETIMEDOUT, ECONNRESET, EHOSTDOWN, EREMOTEIO}) {
    EXPECT_TRUE(retry_policy::may_pass(code, file_system_kind::network)) << code;
    EXPECT_FALSE(retry_policy::may_pass(code, file_system_kind::local)) << code;
    EXPECT_FALSE(retry_policy::may_pass(code, file_system_kind::memory)) << code;
  }
  for (const int code : {ENOENT, EACCES, EINVAL, EBADF, EISDIR, ENODATA, 0}) {
    EXPECT_FALSE(retry_policy::may_pass(code, file_system_kind::network)) << code;
  }
  EXPECT_TRUE(retry_policy::may_pass(EAGAIN, file_system_kind::local));
}

TEST(RetryPolicy, WaitsDoubleUpToTheMost) {
  const retry_policy policy{
      .attempts = 9, .first_wait = milliseconds(50), .most_wait = milliseconds(300)};
  EXPECT_EQ(policy.wait_before(1, 1), microseconds(50'000));
  EXPECT_EQ(policy.wait_before(1, 0), microseconds(25'000));
  EXPECT_EQ(policy.wait_before(2, 1), microseconds(100'000));
  EXPECT_EQ(policy.wait_before(3, 0.5), microseconds(150'000));
  EXPECT_EQ(policy.wait_before(4, 1), microseconds(300'000));
  EXPECT_EQ(policy.wait_before(1000, 1), microseconds(300'000));
}

// Checks the default values that the header documents.
TEST(RetryPolicy, ByDefaultGivesUpAfterOneAndAHalfSeconds) {
  const retry_policy policy;
  microseconds least{0};
  microseconds most{0};
  for (int n = 1; n < policy.attempts; ++n) {
    least += policy.wait_before(n, 0);
    most += policy.wait_before(n, 1);
  }
  EXPECT_EQ(least, milliseconds(775));
  EXPECT_EQ(most, milliseconds(1550));
}

TEST(Retries, EndWithTheAttempts) {
  const retry_policy policy{
      .attempts = 3, .first_wait = milliseconds(1), .most_wait = milliseconds(1)};
  retries tries(policy);
  EXPECT_FALSE(tries.again(EIO, file_system_kind::local));
  EXPECT_TRUE(tries.again(EIO, file_system_kind::network));
  EXPECT_TRUE(tries.again(ESTALE, file_system_kind::network));
  EXPECT_FALSE(tries.again(EIO, file_system_kind::network));
  EXPECT_EQ(tries.done(), 2);
}

}  // namespace
}  // namespace millrace::loader
