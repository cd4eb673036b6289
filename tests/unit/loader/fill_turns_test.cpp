// SPDX-License-Identifier: Apache-2.0
//
// Each filling thread has its own reader. The loader announces a range only to the reader of the
// thread that will read the range.
#include <millrace/loader/detail/batch/fill_turns.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <span>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/loader/batch_loader.hpp>
#include <millrace/loader/detail/io/pread_reader.hpp>

#include "unit/loader/stored_tokens.hpp"

namespace millrace::loader {
namespace {

/// The ranges that were announced to one reader, and the ranges that it read. The test inspects
/// them after the loader is destroyed.
struct reader_history {
  std::set<std::tuple<std::int64_t, std::uint64_t, std::uint64_t>> told;
  std::vector<std::uint64_t> gathered;  // offset of the first range of each gather
  std::int64_t untold = 0;              // number of ranges that were read without an announcement
};

class remembering_reader final : public range_reader {
 public:
  remembering_reader(const std::vector<data_file>& files, reader_history& history)
      : reader_(files), history_(&history) {}
  void prefetch(std::span<const file_range> ranges) noexcept override {
    for (const file_range& r : ranges) history_->told.insert({r.file, r.offset, r.bytes});
  }
  void gather(std::span<const read_request> requests) override {
    history_->gathered.push_back(requests.front().from.offset);
    for (const read_request& r : requests) {
      history_->untold += history_->told.count({r.from.file, r.from.offset, r.from.bytes}) == 0;
    }
    reader_.gather(requests);
  }
  reader_report report() const override { return reader_.report(); }

 private:
  pread_reader reader_;
  reader_history* history_;
};

TEST(FillTurns, TellEveryReaderOfWhatItWillRead) {
  const test::stored_tokens stored(4000);
  for (const std::int64_t threads : {1, 2, 3, 7}) {
    std::deque<reader_history> histories;
    loader_options options = {.batch_size = 2, .seq_len = 10, .threads = threads};
    options.reader = [&](const std::vector<data_file>& files) {
      return std::make_unique<remembering_reader>(files, histories.emplace_back());
    };
    std::int64_t served = 0;
    {
      batch_loader loader(stored.data(), options);
      while (const auto batch = loader.next()) stored.expect_batch(*batch, options, served++);
    }
    ASSERT_GT(served, 100);
    ASSERT_EQ(histories.size(), static_cast<std::size_t>(threads));
    for (std::size_t w = 0; w < histories.size(); ++w) {
      EXPECT_EQ(histories[w].untold, 0) << "reader " << w << " of " << threads;
      // Of n threads, thread w fills batches w, w + n, w + 2n, ...
      const std::vector<std::uint64_t>& gathered = histories[w].gathered;
      const auto step = static_cast<std::uint64_t>(threads) * 20 * sizeof(std::uint16_t);
      ASSERT_EQ(gathered.size(),
                (static_cast<std::size_t>(served) + histories.size() - 1 - w) / histories.size());
      for (std::size_t i = 0; i < gathered.size(); ++i) {
        EXPECT_EQ(gathered[i], w * 20 * sizeof(std::uint16_t) + i * step);
      }
    }
  }
}

// If one thread is slow, the other threads must use exactly the slots that are not assigned to the
// slow one.
TEST(FillTurns, AreNotLostWhereOneThreadIsSlow) {
  const test::stored_tokens stored(4000);
  std::deque<reader_history> histories;
  loader_options options = {.batch_size = 2, .seq_len = 10, .look_ahead = 8, .threads = 3};
  class slow_reader final : public range_reader {
   public:
    slow_reader(const std::vector<data_file>& files, bool is_slow)
        : reader_(files), is_slow_(is_slow) {}
    void prefetch(std::span<const file_range> ranges) noexcept override {
      reader_.prefetch(ranges);
    }
    void gather(std::span<const read_request> requests) override {
      if (is_slow_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      reader_.gather(requests);
    }
    reader_report report() const override { return reader_.report(); }

   private:
    pread_reader reader_;
    bool is_slow_;
  };
  bool is_first = true;
  options.reader = [&](const std::vector<data_file>& files) {
    return std::make_unique<slow_reader>(files, std::exchange(is_first, false));
  };
  batch_loader loader(stored.data(), options);
  std::int64_t served = 0;
  while (const auto batch = loader.next()) stored.expect_batch(*batch, options, served++);
  EXPECT_GT(served, 100);
}

}  // namespace
}  // namespace millrace::loader
