// SPDX-License-Identifier: Apache-2.0
//
// An error while a batch is made must be thrown by the call of next() that would have returned this
// batch. A loader may be destroyed no matter what its threads are doing.
#include <millrace/loader/batch_loader.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/loader/detail/io/pread_reader.hpp>

#include "unit/loader/stored_tokens.hpp"

namespace millrace::loader {
namespace {

using testing::HasSubstr;

/// A reader that calls a function before each gather.
class hooked_reader final : public range_reader {
 public:
  hooked_reader(const std::vector<data_file>& files, std::function<void()> before)
      : reader_(files), before_(std::move(before)) {}
  void prefetch(std::span<const file_range> ranges) noexcept override { reader_.prefetch(ranges); }
  void gather(std::span<const read_request> requests) override {
    before_();
    reader_.gather(requests);
  }
  reader_report report() const override { return reader_.report(); }

 private:
  pread_reader reader_;
  std::function<void()> before_;
};

make_reader_function with(std::function<void()> before) {
  return [before](const std::vector<data_file>& files) {
    return std::make_unique<hooked_reader>(files, before);
  };
}

// All batches before the fault are served, no matter which thread is ahead. Then next() throws the
// error once. After that, the run has ended.
TEST(LoaderFaults, ArriveInTheirPlace) {
  const test::stored_tokens stored(2000);
  for (const std::int64_t threads : {1, 3}) {
    std::atomic<int> gathers = 0;
    const loader_options options = {
        .batch_size = 2, .seq_len = 10, .threads = threads, .reader = with([&] {
                                                              if (++gathers == 7)
                                                                throw io_error("disk", "pread",
                                                                               EIO);
                                                            })};
    batch_loader loader(stored.data(), options);
    std::int64_t served = 0;
    try {
      while (const auto batch = loader.next()) stored.expect_batch(*batch, options, served++);
      FAIL() << "the fault is lost";
    } catch (const io_error& e) {
      EXPECT_EQ(e.code(), EIO);
    }
    // The seventh gather fails. Of three threads, thread t gathers batches t, t + 3, t + 6 and so
    // on, and some threads can be ahead of others. At most 9 batches are served: thread 0 gathered
    // 0, 3 and 6, the other threads gathered three batches, and 9 fails. At least 2 are served:
    // threads 0 and 1 gathered three batches each, and 2 fails.
    EXPECT_GE(served, 6 - 2 * (threads - 1));
    EXPECT_LE(served, threads == 1 ? 6 : 9);
    EXPECT_FALSE(loader.next().has_value());
    EXPECT_EQ(loader.consumed_samples(), served * 2);
  }
}

TEST(LoaderFaults, OfReadersThatCannotBeMadeEndTheConstructor) {
  const test::stored_tokens stored(100);
  EXPECT_THROW(
      batch_loader(stored.data(), {.seq_len = 10,
                                   .reader = [](const auto&) -> std::unique_ptr<range_reader> {
                                     throw config_error("no such reader");
                                   }}),
      config_error);
}

TEST(LoaderFaults, OfAFileThatShrinksNameFileAndPlace) {
  const test::stored_tokens stored(100000);
  batch_loader loader(stored.data(), {.batch_size = 1, .seq_len = 1000, .look_ahead = 1});
  ASSERT_TRUE(loader.next().has_value());
  std::filesystem::resize_file(stored.data().bin_path(), 50000);
  try {
    while (loader.next()) {
    }
    FAIL() << "a file of 50000 bytes is read as one of 200000";
  } catch (const io_error& e) {
    EXPECT_THAT(e.what(), HasSubstr(stored.data().bin_path().string()));
  }
}

// If an index is inconsistent in a place far ahead, earlier batches must not be affected.
TEST(LoaderFaults, OfAnIndexComeWithTheBatchThatNeedsIt) {
  const test::temp_folder folder;
  test::documents_of<std::uint16_t> documents;
  for (int d = 0; d < 40; ++d) documents.push_back({std::vector<std::uint16_t>(25, 7)});
  test::write_dataset<std::uint16_t>(folder / "data", documents);
  {  // overwrites the pointer of sequence 20
    std::fstream idx(folder / "data.idx", std::ios::in | std::ios::out | std::ios::binary);
    idx.seekp(34 + 4 * 40 + 8 * 20);
    idx.put(1);
  }
  const dataset::indexed_dataset data(folder / "data");
  loader_options options = {.batch_size = 1, .seq_len = 25};
  options.fields.cu_seqlens = true;
  batch_loader loader(data, options);
  std::int64_t served = 0;
  try {
    while (loader.next()) ++served;
    FAIL() << "accepted";
  } catch (const format_error& e) {
    EXPECT_THAT(e.what(), HasSubstr("data.idx"));
  }
  // The pointer of sequence 20 now has a value that belongs between those of sequences 15 and 16. A
  // search for a later sequence may read this value.
  EXPECT_GE(served, 15);
  EXPECT_LE(served, 20);
}

TEST(LoaderFaults, OfIdsThatNeed64BitsNameTheToken) {
  const test::temp_folder folder;
  test::write_dataset<std::int64_t>(folder / "data", {{{1, 2, -3, std::int64_t{1} << 31, 5}}});
  const dataset::indexed_dataset data(folder / "data");
  batch_loader good(data, {.seq_len = 2});
  EXPECT_THAT(good.next()->tokens(), testing::ElementsAre(1, 2));
  batch_loader bad(data, {.seq_len = 3});
  try {
    bad.next();
    FAIL() << "accepted";
  } catch (const format_error& e) {
    EXPECT_THAT(e.what(), HasSubstr("a token is 2147483648, expected an id that fits in 32 bits"));
    EXPECT_EQ(e.offset(), 24);
  }
}

// The destructor must stop a thread in any state: while it waits for a slot, while it reads, or
// before it has started.
TEST(LoaderFaults, NoneOfBeingDestroyedAtAnyTime) {
  const test::stored_tokens stored(4000);
  for (int round = 0; round < 40; ++round) {
    const auto delay = std::chrono::microseconds(round * 37 % 400);
    batch_loader loader(stored.data(),
                        {.batch_size = 1,
                         .seq_len = 16,
                         .look_ahead = 1 + round % 3,
                         .threads = 1 + round % 4,
                         .reader = with([=] { std::this_thread::sleep_for(delay); })});
    std::vector<batch> held;
    for (int i = 0; i < round % 4; ++i) held.push_back(std::move(*loader.next()));
  }
}

TEST(LoaderFaults, OfFieldsThatNobodyAskedForSayHowToAsk) {
  const test::stored_tokens stored(100);
  batch_loader loader(stored.data(), {.seq_len = 10, .fields = no_host_fields});
  const auto batch = loader.next();
  EXPECT_EQ(batch->text<std::uint16_t>().size(), 11);
  try {
    (void)batch->tokens();
    FAIL() << "there are none";
  } catch (const config_error& e) {
    EXPECT_THAT(e.what(), HasSubstr("set fields.tokens of the loader's options"));
  }
  EXPECT_THROW((void)batch->text<std::int32_t>(), config_error);
}

}  // namespace
}  // namespace millrace::loader
