// SPDX-License-Identifier: Apache-2.0
#include <millrace/error.hpp>

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(IoError, NamesPathCallAndReason) {
  const io_error e("/data/a.bin", "mmap", ENOMEM);
  EXPECT_STREQ(e.what(), "/data/a.bin: mmap: Cannot allocate memory");
  EXPECT_EQ(e.path(), "/data/a.bin");
  EXPECT_STREQ(e.call(), "mmap");
  EXPECT_EQ(e.code(), ENOMEM);
}

TEST(FormatError, GainsThePathWhereItIsKnown) {
  const format_error bare(17, "expected a dtype code from 1 to 8, found 9");
  EXPECT_STREQ(bare.what(), "expected a dtype code from 1 to 8, found 9 (at byte 17)");
  EXPECT_TRUE(bare.path().empty());

  const format_error placed = bare.in("a.idx");
  EXPECT_STREQ(placed.what(), "a.idx: expected a dtype code from 1 to 8, found 9 (at byte 17)");
  EXPECT_EQ(placed.path(), "a.idx");
  EXPECT_EQ(placed.offset(), 17);
  EXPECT_EQ(placed.problem(), bare.problem());
}

// All errors have one base class, so that a single handler at the top level of a program catches
// all of them.
TEST(Error, IsTheBaseOfAll) {
  EXPECT_THROW(throw io_error("a", "open", ENOENT), error);
  EXPECT_THROW(throw format_error(0, "wrong"), error);
  EXPECT_THROW(throw config_error("--workers 0: expected 1 or more"), error);
}

}  // namespace
}  // namespace millrace
