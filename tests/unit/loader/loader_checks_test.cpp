// SPDX-License-Identifier: Apache-2.0
//
// Tests the verification, memory, threads, readers and telemetry of a loader through its public
// interface.
#include <millrace/loader/batch_loader.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/loader/detail/io/pread_reader.hpp>
#include <millrace/loader/loader_report.hpp>

#include "support/faulty_reader.hpp"
#include "support/summed_dataset.hpp"
#include "unit/loader/stored_tokens.hpp"

namespace millrace::loader {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr std::uint64_t block_bytes = std::uint64_t{1} << 20;

/// The loader serves windows of 4,096 tokens from a file of three and a half blocks. The third
/// block has a flipped bit.
class LoaderVerification : public testing::Test {
 protected:
  LoaderVerification() {
    test::flip_bit(stored_.bin(), 2 * block_bytes + 77'777);
    options_.verify.scrub_bytes_per_second = 0;
    options_.verify.in_memory = [](int, std::uint64_t, std::uint64_t) { return true; };
  }

  // The first sample that needs the bad block. Its last label is the first token of that block.
  static constexpr std::int64_t first_of_block = 2 * block_bytes / 2 / 4096 - 1;

  test::summed_dataset<std::uint16_t> stored_{7 * block_bytes / 4, 30'000};
  dataset::indexed_dataset data_{stored_.prefix()};
  loader_options options_{.batch_size = 1, .seq_len = 4096};
};

TEST_F(LoaderVerification, EndsTheRunWhereABadBlockIsNeeded) {
  batch_loader loader(data_, options_);
  std::int64_t served = 0;
  try {
    while (loader.next()) ++served;
    FAIL() << "a wrong bit was served";
  } catch (const format_error& e) {
    EXPECT_EQ(e.path(), stored_.bin());
    EXPECT_THAT(e.what(), AllOf(HasSubstr(stored_.bin().string()),
                                HasSubstr("sample " + std::to_string(served))));
  }
  EXPECT_EQ(served, first_of_block);
  EXPECT_EQ(loader.consumed_samples(), first_of_block);
  EXPECT_EQ(loader.observe().verification->bad, 1);
}

TEST_F(LoaderVerification, TellsOfItAndGoesOnWhereAsked) {
  options_.verify.bad_blocks = bad_block_policy::report;
  batch_loader loader(data_, options_);
  std::int64_t served = 0;
  for (const batch& each : loader) served += each.tokens().size() == 4096 ? 1 : 0;
  EXPECT_EQ(served, loader.micro_batches());
  const verify_report report = *loader.observe().verification;
  EXPECT_EQ(report.touched, 4);
  EXPECT_EQ(report.bad, 1);
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_THAT(report.findings[0].what, HasSubstr("block 2"));
}

TEST_F(LoaderVerification, LooksAtNothingWhereItIsOff) {
  options_.verify.mode = verify_mode::off;
  batch_loader loader(data_, options_);
  std::int64_t served = 0;
  while (loader.next()) ++served;
  EXPECT_EQ(served, loader.micro_batches());
  EXPECT_FALSE(loader.observe().verification.has_value());
}

TEST_F(LoaderVerification, FindsIdsThatAreNone) {
  options_.verify.mode = verify_mode::off;
  options_.verify.vocab_size = 20'000;  // the dataset has ids up to 30,000, so this is too small
  batch_loader loader(data_, options_);
  EXPECT_THROW(
      {
        while (loader.next()) {
        }
      },
      format_error);
}

TEST(LoaderGrants, AreToldOfThreadsReadersAndMemory) {
  const test::stored_tokens stored(2000);
  std::size_t slots = 0;
  loader_options options = {
      .batch_size = 2, .seq_len = 10, .look_ahead = 3, .held = 4, .threads = 2};
  options.cpus = {0, 99'999};  // the second CPU does not exist
  options.memory = [&](std::size_t count, std::size_t bytes) {
    slots = count;
    return plain_memory(count, bytes);
  };
  batch_loader loader(stored.data(), options);
  std::int64_t served = 0;
  while (const auto batch = loader.next()) stored.expect_batch(*batch, options, served++);
  EXPECT_EQ(slots, 9U);  // look_ahead, the slots that the caller may hold, and one per thread
  const std::vector<grant> threads = loader.observe().threads;
  ASSERT_GE(threads.size(), 2U);
  for (const grant& each : threads) EXPECT_NE(each.why, "") << each.asked;
  EXPECT_THAT(threads.back().granted, HasSubstr("no"));
  const std::vector<reader_report> readers = loader.observe().readers;
  ASSERT_EQ(readers.size(), 2U);
  std::uint64_t bytes = 0;
  for (const reader_report& each : readers) {
    EXPECT_GT(each.gathers, 0);
    EXPECT_NE(each.why, "");
    bytes += each.bytes;
  }
  EXPECT_EQ(bytes, static_cast<std::uint64_t>(served) * 2 * 11 * sizeof(std::uint16_t));
  const telemetry_report report = loader.observe().times;
  EXPECT_EQ(report.batches, served);
  EXPECT_EQ(report.bytes, static_cast<std::int64_t>(bytes));
  EXPECT_EQ(report.slots, 9);
}

struct slow_loader {
  stall_cause cause;
  std::function<void()> in_reader;
  std::chrono::milliseconds held;  // how long the caller holds all slots
};

void PrintTo(const slow_loader& each, std::ostream* out) {
  *out << stall_cause_names[static_cast<std::size_t>(each.cause)];
}

/// Returns the stalls by cause, except those of the first round, which are caused by the start.
std::array<stall_counts, 4> stalls_of(const slow_loader& slow) {
  const test::stored_tokens stored(2000);
  loader_options options = {.batch_size = 1, .seq_len = 10, .look_ahead = 2};
  options.reader = [&](const std::vector<data_file>& files) {
    return std::make_unique<test::faulty_reader>(std::make_unique<pread_reader>(files),
                                                 [&](std::int64_t) { slow.in_reader(); });
  };
  batch_loader loader(stored.data(), options);
  std::vector<batch> held;
  std::array<stall_counts, 4> stalls{};
  for (int i = 0; i < 84; ++i) {
    if (i == 4) stalls = loader.observe().times.stalls;
    held.push_back(*loader.next());
    if (slow.held.count() > 0 && held.size() < 4) continue;
    std::this_thread::sleep_for(slow.held);
    held.clear();
  }
  const std::array<stall_counts, 4> all = loader.observe().times.stalls;
  for (std::size_t i = 0; i < all.size(); ++i) stalls[i].stalls = all[i].stalls - stalls[i].stalls;
  return stalls;
}

class LoaderStalls : public testing::TestWithParam<slow_loader> {};

TEST_P(LoaderStalls, AreNamed) {
  const std::array<stall_counts, 4> stalls = stalls_of(GetParam());
  std::int64_t all = 0;
  for (const stall_counts& each : stalls) all += each.stalls;
  const std::int64_t named = stalls[static_cast<std::size_t>(GetParam().cause)].stalls;
  EXPECT_GE(all, GetParam().held.count() > 0 ? 15 : 70);
  EXPECT_GE(static_cast<double>(named), 0.95 * static_cast<double>(all));
}

void spin(std::chrono::microseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}
void spin_long() {
  spin(std::chrono::milliseconds(5));
}
// Delays the next batch a little, for the case in which the caller holds all slots. The reported
// cause must still be the caller.
void spin_short() {
  spin(std::chrono::microseconds(300));
}
void sleep() {
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

INSTANTIATE_TEST_SUITE_P(
    All, LoaderStalls,
    testing::Values(slow_loader{stall_cause::storage, sleep, {}},
                    slow_loader{stall_cause::gather, spin_long, {}},
                    slow_loader{stall_cause::consumer, spin_short, std::chrono::milliseconds(8)}),
    [](const auto& each) {
      return std::string(stall_cause_names[static_cast<std::size_t>(each.param.cause)]);
    });

}  // namespace
}  // namespace millrace::loader
