// SPDX-License-Identifier: Apache-2.0
#include <millrace/error.hpp>
#include <millrace/loader/detail/memory/cpu_list.hpp>

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::loader {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(CpuList, IsParsed) {
  EXPECT_THAT(parse_cpu_list(""), IsEmpty());
  EXPECT_THAT(parse_cpu_list("0"), ElementsAre(0));
  EXPECT_THAT(parse_cpu_list("0-3,8,10-11"), ElementsAre(0, 1, 2, 3, 8, 10, 11));
  EXPECT_THAT(parse_cpu_list("5,1-2,2"), ElementsAre(1, 2, 5));
  EXPECT_EQ(parse_cpu_list("0-8191").size(), 8192U);
}

TEST(CpuList, IsWrittenAsItWasRead) {
  for (const char* text : {"", "0", "0-3,8,10-11", "1,3,5"}) {
    EXPECT_EQ(cpu_list_text(parse_cpu_list(text)), text);
  }
}

TEST(CpuList, RefusesWhatIsNone) {
  for (const char* text : {"a", "-", "1-", "1,", ",1", "3-1", "1 2", "8192", "-1", "1--2", "1-2-3",
                           "99999999999", "0x1"}) {
    try {
      (void)parse_cpu_list(text);
      ADD_FAILURE() << "accepted '" << text << "'";
    } catch (const format_error& e) {
      EXPECT_THAT(e.what(), HasSubstr(std::string("the list '") + text + "'"));
    }
  }
}

TEST(CpuList, BindsAThread) {
  const auto all = allowed_cpus();
  ASSERT_FALSE(all.empty());
  std::jthread([&] {
    const std::vector<int> last = {all.back()};
    ASSERT_EQ(bind_to_cpus(last), 0);
    EXPECT_EQ(allowed_cpus(), last);
    EXPECT_EQ(bind_to_cpus(std::vector<int>{8191}), EINVAL);
    EXPECT_EQ(bind_to_cpus(std::vector<int>{-1}), EINVAL);
    EXPECT_EQ(bind_to_cpus(std::vector<int>{100'000}), EINVAL);
    EXPECT_EQ(allowed_cpus(), last);
  }).join();
  EXPECT_EQ(allowed_cpus(), all);
}

}  // namespace
}  // namespace millrace::loader
