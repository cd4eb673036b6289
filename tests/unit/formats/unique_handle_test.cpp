// SPDX-License-Identifier: Apache-2.0
#include <millrace/io/detail/unique_handle.hpp>

#include <gtest/gtest.h>

#include <type_traits>
#include <vector>

namespace millrace::io {
namespace {

std::vector<int> closed;
void note_close(int value) {
  closed.push_back(value);
}
using handle = unique_handle<int, -1, note_close>;

static_assert(!std::is_copy_constructible_v<handle> && !std::is_copy_assignable_v<handle>);
static_assert(std::is_nothrow_move_constructible_v<handle>);
static_assert(sizeof(handle) == sizeof(int));

class UniqueHandle : public testing::Test {
 protected:
  void SetUp() override { closed.clear(); }
};

TEST_F(UniqueHandle, ClosesOnce) {
  {
    handle a(3);
    const handle b = std::move(a);
    EXPECT_FALSE(a);  // NOLINT(bugprone-use-after-move): that state is what is tested
    EXPECT_EQ(b.get(), 3);
  }
  EXPECT_EQ(closed, std::vector{3});
}

TEST_F(UniqueHandle, OwnsNothingWhenEmpty) {
  { const handle a; }
  { const handle b(-1); }
  EXPECT_TRUE(closed.empty());
}

TEST_F(UniqueHandle, AssignmentClosesTheOldOneWithTheSource) {
  handle a(1);
  {
    handle b(2);
    a = std::move(b);
    EXPECT_TRUE(closed.empty());
  }
  EXPECT_EQ(closed, std::vector{1});
  a = handle(3);
  EXPECT_EQ(closed, (std::vector{1, 2})) << "a temporary ends with the statement";
}

TEST_F(UniqueHandle, ResetClosesNowAndReleaseDoesNot) {
  handle a(1);
  a.reset();
  EXPECT_EQ(closed, std::vector{1});
  a.reset();
  handle b(2);
  EXPECT_EQ(b.release(), 2);
  EXPECT_FALSE(b);
  EXPECT_EQ(closed, std::vector{1});
}

TEST_F(UniqueHandle, SurvivesSelfAssignment) {
  handle a(1);
  handle& same = a;
  a = std::move(same);
  EXPECT_EQ(a.get(), 1);
  EXPECT_TRUE(closed.empty());
}

}  // namespace
}  // namespace millrace::io
