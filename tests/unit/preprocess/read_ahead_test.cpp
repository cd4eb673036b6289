// SPDX-License-Identifier: Apache-2.0
#include "input/read_ahead.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include <millrace/error.hpp>

#include "support/read_source.hpp"
#include "support/text_source.hpp"

namespace millrace::preprocess {
namespace {

std::string long_text(std::size_t size) {
  std::string text;
  while (text.size() < size) text += std::to_string(text.size() * 7919) + "\n";
  return text;
}

TEST(ReadAhead, GivesWhatTheInnerSourceGives) {
  const std::string text = long_text(7'000'000);
  for (const std::size_t inner : {std::size_t{1000}, std::size_t{600'000}, std::size_t{1} << 24}) {
    for (const std::size_t step : {std::size_t{999}, std::size_t{1} << 20, std::size_t{1} << 23}) {
      read_ahead source(std::make_unique<test::text_source>(text, inner));
      EXPECT_EQ(source.position_bytes(), 0U);
      EXPECT_EQ(test::read_source(source, UINT64_MAX, step), text);
      EXPECT_EQ(test::read_source(source), "") << "the end stays";
      EXPECT_EQ(source.position_bytes(), text.size());
    }
  }
  read_ahead nothing(std::make_unique<test::text_source>(""));
  EXPECT_EQ(test::read_source(nothing), "");
}

/// Counts the bytes that were requested. Returns data without end, or throws after `fails_after`
/// bytes.
class endless_source final : public byte_source {
 public:
  endless_source(std::atomic<std::uint64_t>& given, std::uint64_t fails_after)
      : given_(given), fails_after_(fails_after) {}
  std::size_t read(std::span<std::byte> out) override {
    if (given_ >= fails_after_) throw format_error("file", given_, "damaged");
    given_ += out.size();
    return out.size();
  }
  std::uint64_t position_bytes() const noexcept override { return given_; }
  void cancel() noexcept override {}

 private:
  std::atomic<std::uint64_t>& given_;
  std::uint64_t fails_after_;
};

TEST(ReadAhead, GivesAllThatPrecedesAnError) {
  for (const std::uint64_t chunks : {0U, 1U, 9U}) {
    std::atomic<std::uint64_t> given = 0;
    read_ahead source(std::make_unique<endless_source>(given, chunks * read_ahead::chunk_bytes));
    EXPECT_EQ(test::read_source(source, chunks * read_ahead::chunk_bytes).size(),
              chunks * read_ahead::chunk_bytes);
    EXPECT_THROW((void)test::read_source(source), format_error);
  }
}

// Memory must not grow if a file is decompressed faster than it is consumed.
TEST(ReadAhead, RunsNoFurtherAheadThanItMay) {
  std::atomic<std::uint64_t> given = 0;
  read_ahead source(std::make_unique<endless_source>(given, UINT64_MAX));
  constexpr std::uint64_t room = read_ahead::chunks * read_ahead::chunk_bytes;
  while (given < room) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(given, room);
  (void)test::read_source(source, 3 * read_ahead::chunk_bytes);
  EXPECT_LE(given, room + 3 * read_ahead::chunk_bytes);
}

TEST(ReadAhead, StopsBeforeTheEndIsRead) {
  std::atomic<std::uint64_t> given = 0;
  for (int round = 0; round < 50; ++round) {
    read_ahead source(std::make_unique<endless_source>(given, UINT64_MAX));
    if (round % 2 == 0) (void)test::read_source(source, 10);
  }
}

/// A source whose reads wait until cancel() is called.
class silent_source final : public byte_source {
 public:
  std::size_t read(std::span<std::byte>) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return cancelled_; });
    return 0;
  }
  std::uint64_t position_bytes() const noexcept override { return 0; }
  void cancel() noexcept override {
    const std::scoped_lock lock(mutex_);
    cancelled_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool cancelled_ = false;
};

TEST(ReadAhead, CancelsTheSourceThatItWaitsFor) {
  { read_ahead source(std::make_unique<silent_source>()); }
  read_ahead source(std::make_unique<silent_source>());
  std::thread other([&] { source.cancel(); });
  EXPECT_EQ(test::read_source(source), "");
  other.join();
}

}  // namespace
}  // namespace millrace::preprocess
