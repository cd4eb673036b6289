// SPDX-License-Identifier: Apache-2.0
#include "support/failing_calls.hpp"

#include "support/merge_fault.hpp"

namespace millrace::preprocess {
namespace {

using test::calls_can_fail;
using test::calls_cannot_fail;
using test::file_set;
using test::run_failing;
using testing::HasSubstr;
using testing::Not;

using FailingCallsOfMerge = test::merge_fault;
using FailingCallsOfResume = test::resume_fault;

// A FUSE file system without statfs reports 0 blocks in total, and therefore 0 free blocks. The
// merge must not treat it as a full disk.
TEST_F(FailingCallsOfMerge, NeedsNoFileSystemThatReportsItsSize) {
  if (!calls_can_fail) GTEST_SKIP() << calls_cannot_fail;
  for (const test::strings& more : {test::strings{}, shuffled}) {
    SCOPED_TRACE(more.size());
    const file_set wanted = undisturbed(more);
    empty_out();
    const auto [result, struck] = run_failing(command(more), folder_.path(), "space:1:no-size:on");
    EXPECT_TRUE(struck);
    EXPECT_EQ(result.status, 0) << result.err;
    expect_files(wanted);
  }
}

// Makes each stat call on the P.bad file of a part fail in turn (P: the prefix of the part). One of
// these calls asks for the size of the file.
TEST_F(FailingCallsOfMerge, AreRefusedAtEveryLookAtASidecar) {
  if (!calls_can_fail) GTEST_SKIP() << calls_cannot_fail;
  constexpr int most = 100;
  int k = 1;
  for (; k < most; ++k) {
    SCOPED_TRACE(k);
    empty_out();
    const auto [result, struck] = run_failing(
        command({}), folder_.path(), "stat:" + std::to_string(k) + ":EIO:once", "_document.bad");
    if (!struck) break;
    expect_sentence(result, ".bad");
  }
  EXPECT_GT(k, 3) << "each of the three parts has a P.bad";
  EXPECT_LT(k, most);
}

// A run that finished no work leaves at most its journal. The journal stays if the run cannot
// examine it.
TEST_F(FailingCallsOfResume, KeepNothingOfARunThatDidNothing) {
  if (!calls_can_fail) GTEST_SKIP() << calls_cannot_fail;
  add("1.jsonl", "{broken\n");
  constexpr int most = 20;
  int k = 1;
  for (; k < most; ++k) {
    SCOPED_TRACE(k);
    empty_out();
    const auto [result, struck] =
        run_failing(command(), folder_.path(), "stat:" + std::to_string(k) + ":EIO:on", ".journal");
    if (!struck) break;
    EXPECT_EQ(result.status, 1) << result.err;
    EXPECT_THAT(result.err, Not(HasSubstr("the finished work")));
    for (const auto& [name, bytes] : test::files_of(out())) EXPECT_EQ(name, "x.journal");
  }
  EXPECT_GT(k, 2);
  EXPECT_LT(k, most);
}

}  // namespace
}  // namespace millrace::preprocess
