// SPDX-License-Identifier: Apache-2.0
#include "input/giant_line_reader.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>

#include <gtest/gtest.h>

#include "process/stop_flag.hpp"
#include "support/paths.hpp"

namespace millrace::preprocess {
namespace {

/// Returns a text in reads of a few bytes each. Read number `stop_at` requests the run to stop.
class slow_source final : public byte_source {
 public:
  slow_source(std::string text, int stop_at) : text_(std::move(text)), stop_at_(stop_at) {}

  std::size_t read(std::span<std::byte> out) override {
    if (++reads_ == stop_at_) stop = 1;
    const std::size_t count = std::min({out.size(), text_.size() - at_, std::size_t{5}});
    std::ranges::copy(std::as_bytes(std::span(text_).subspan(at_, count)), out.begin());
    at_ += count;
    return count;
  }
  std::uint64_t position_bytes() const noexcept override { return at_; }
  void cancel() noexcept override {}
  int reads() const noexcept { return reads_; }

  std::atomic<int> stop{0};

 private:
  std::string text_;
  int stop_at_;
  int reads_ = 0;
  std::size_t at_ = 0;
};

followed_line follow(slow_source& source, const test::temp_folder& folder) {
  read_limits limits;
  limits.spool_folder = folder.path();
  limits.stop = &source.stop;
  const std::string head = "0123456789";
  return follow_giant_line(source, std::as_bytes(std::span(head)), {folder / "a", 100}, limits);
}

TEST(GiantLineReader, FindsTheEndOfALine) {
  const test::temp_folder folder;
  for (const auto& [text, bytes, rest, ended] :
       {std::tuple{"abcdefgh\nnext", 18U, "n", false}, std::tuple{"ab\r\nx", 12U, "x", false},
        std::tuple{"abcdefgh", 18U, "", true}}) {
    slow_source source(text, 0);
    const followed_line followed = follow(source, folder);
    EXPECT_EQ(followed.line.begin, 0U) << text;  // offset in the copy
    EXPECT_EQ(followed.line.end, bytes) << text;
    EXPECT_EQ(
        std::string(reinterpret_cast<const char*>(followed.rest.data()), followed.rest.size()),
        rest)
        << text;
    EXPECT_EQ(followed.ended, ended) << text;
  }
}

TEST(GiantLineReader, LooksNoFurtherOnceTheRunIsToStop) {
  const test::temp_folder folder;
  slow_source source(std::string(1000, 'x') + "\n", 7);
  EXPECT_THROW((void)follow(source, folder), line_abandoned);
  EXPECT_EQ(source.reads(), 7);
}

}  // namespace
}  // namespace millrace::preprocess
