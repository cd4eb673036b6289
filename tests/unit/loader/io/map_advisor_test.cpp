// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/io/map_advisor.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/io/detail/unique_fd.hpp>

#include "support/paths.hpp"

namespace millrace::loader {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;
using testing::HasSubstr;

class MapAdvisor : public testing::Test {
 protected:
  static std::vector<data_file> files(std::initializer_list<std::uint64_t> sizes) {
    std::vector<data_file> out;
    for (const std::uint64_t bytes : sizes) out.push_back({"f", bytes});
    return out;
  }
  std::string text_of(const map_advisor& advisor) const {
    reader_report report;
    advisor.log().fill(report, *table_);
    std::string text;
    for (const grant& g : report.grants) text += g.asked + ": " + g.granted + ", " + g.why + "\n";
    return text;
  }

  std::shared_ptr<open_files> table_ = std::make_shared<open_files>();
  std::shared_ptr<io_threads> threads_ = std::make_shared<io_threads>(2);
};

TEST_F(MapAdvisor, FilesAreResidentInTheirOrderAsFarAsTheyFit) {
  const map_advisor advisor(files({60, 50, 40, 1}), {.resident_bytes = 100}, threads_);
  EXPECT_EQ(advisor.of(0), map_advice::resident);
  EXPECT_EQ(advisor.of(1), map_advice::random);
  EXPECT_EQ(advisor.of(2), map_advice::resident);
  EXPECT_EQ(advisor.of(3), map_advice::random);
}

TEST_F(MapAdvisor, WithoutANumberHalfOfWhatIsAvailableIsTaken) {
  const map_advisor advisor(files({4096, std::uint64_t{1} << 60}), {}, threads_);
  EXPECT_EQ(advisor.of(0), map_advice::resident);
  EXPECT_EQ(advisor.of(1), map_advice::random);
}

TEST_F(MapAdvisor, WhatIsNamedIsDone) {
  const map_advisor advisor(files({1, 2}), {.advice = map_advice::none}, threads_);
  EXPECT_EQ(advisor.of(0), map_advice::none);
  EXPECT_EQ(advisor.of(1), map_advice::none);
}

/// Returns how many pages of a map are in memory.
std::size_t resident_pages(const file_map& map) {
  std::vector<unsigned char> pages((map.bytes() + page_bytes() - 1) / page_bytes());
  if (::mincore(map.data(), map.bytes(), pages.data()) != 0) return 0;
  return static_cast<std::size_t>(
      std::ranges::count_if(pages, [](auto p) { return (p & 1) != 0; }));
}

TEST_F(MapAdvisor, ResidentFilesAreBroughtInInTheBackground) {
  constexpr std::size_t bytes = std::size_t{70} << 20;  // read in three pieces
  const test::temp_folder folder;
  const auto path = folder / "a";
  test::write_bytes(path, std::vector<std::byte>(bytes, std::byte{1}));
  {
    const auto fd = io::open_read_only(path);
    ASSERT_EQ(::fsync(fd.get()), 0);
    ASSERT_EQ(::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED), 0);
  }
  const std::vector<data_file> list{{path, bytes}};
  map_advisor advisor(list, {.advice = map_advice::resident}, threads_);
  const auto f = table_->attach(list[0]);
  const auto made = table_->map_at(*f, 0);
  ASSERT_TRUE(made.made);
  EXPECT_FALSE(advisor.is_in_memory(0));
  advisor.advise(0, made.got);
  const auto end = steady_clock::now() + seconds(60);
  while (!advisor.is_in_memory(0) && steady_clock::now() < end) std::this_thread::yield();
  ASSERT_TRUE(advisor.is_in_memory(0)) << text_of(advisor);
  EXPECT_EQ(resident_pages(made.got->bytes), bytes / page_bytes());
  EXPECT_THAT(text_of(advisor), HasSubstr("MADV_POPULATE_READ, in the background: yes"));
  EXPECT_THAT(text_of(advisor), HasSubstr("MADV_HUGEPAGE"));
}

// A file can be mapped in parts. If only the first parts are in memory, the whole file does not
// count as being in memory.
TEST_F(MapAdvisor, APartOfAFileIsNotTheFile) {
  constexpr std::size_t bytes = std::size_t{5} << 20;
  const test::temp_folder folder;
  const auto path = folder / "a";
  test::write_bytes(path, std::vector<std::byte>(bytes, std::byte{1}));
  const std::vector<data_file> list{{path, bytes}};
  table_->set_limits({.map_bytes = std::uint64_t{2} << 20});
  map_advisor advisor(list, {.advice = map_advice::resident}, threads_);
  const auto f = table_->attach(list[0]);
  for (const std::uint64_t part : {0U, 1U, 2U}) {
    const auto made = table_->map_at(*f, part << 21);
    ASSERT_TRUE(made.made);
    advisor.advise(0, made.got);
    const auto end = steady_clock::now() + seconds(60);
    const auto populated = [&] {
      return resident_pages(made.got->bytes) == made.got->bytes.bytes() / page_bytes() &&
             text_of(advisor).find("in the background: yes") != std::string::npos;
    };
    while (!populated() && steady_clock::now() < end) std::this_thread::yield();
    ASSERT_TRUE(populated()) << text_of(advisor);
  }
  threads_.reset();  // waits for the running tasks
  EXPECT_FALSE(advisor.is_in_memory(0));
}

TEST_F(MapAdvisor, AFileThatEndsTooSoonIsNotSaidToBeInMemory) {
  const test::temp_folder folder;
  const auto path = folder / "a";
  test::write_bytes(path, std::vector<std::byte>(100'000, std::byte{1}));
  const std::vector<data_file> list{{path, 100'000}};
  map_advisor advisor(list, {.advice = map_advice::resident}, threads_);
  const auto f = table_->attach(list[0]);
  const auto made = table_->map_at(*f, 0);
  std::filesystem::resize_file(path, 100);
  advisor.advise(0, made.got);
  const auto end = steady_clock::now() + seconds(60);
  while (text_of(advisor).find("background: no") == std::string::npos &&
         steady_clock::now() < end) {
    std::this_thread::yield();
  }
  EXPECT_THAT(text_of(advisor), HasSubstr("MADV_POPULATE_READ, in the background: no"));
  EXPECT_FALSE(advisor.is_in_memory(0));
}

}  // namespace
}  // namespace millrace::loader
