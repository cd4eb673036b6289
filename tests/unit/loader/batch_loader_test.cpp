// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/instant/instant_order.hpp>
#include <millrace/loader/batch_loader.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/dataset/instant_run.hpp>
#include <millrace/loader/detail/io/pread_reader.hpp>

#include "unit/loader/stored_tokens.hpp"

namespace millrace::loader {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// The loader refers to the dataset, so a temporary dataset must not compile.
static_assert(!std::is_constructible_v<batch_loader, dataset::indexed_dataset, loader_options>);
static_assert(!std::is_copy_constructible_v<batch_loader>);

/// Reads all batches of a loader, and compares all their contents with the model.
template <class T>
void expect_run(const test::stored_tokens<T>& stored, const loader_options& options) {
  batch_loader loader(stored.data(), options);
  const auto expected = static_cast<std::int64_t>(stored.samples(options).size());
  const std::int64_t step = options.world_size * options.batch_size;
  EXPECT_EQ(loader.micro_batches(), expected);
  for (std::int64_t m = 0; m < expected; ++m) {
    EXPECT_EQ(loader.consumed_samples(), options.consumed_samples + m * step);
    const auto batch = loader.next();
    ASSERT_TRUE(batch.has_value());
    stored.expect_batch(*batch, options, m);
  }
  EXPECT_EQ(loader.consumed_samples(), options.consumed_samples + expected * step);
  EXPECT_FALSE(loader.next().has_value());
  EXPECT_FALSE(loader.next().has_value());
}

template <class T>
class BatchLoaderOf : public testing::Test {};
using Integers =
    testing::Types<std::uint8_t, std::int8_t, std::int16_t, std::uint16_t, std::int32_t>;
TYPED_TEST_SUITE(BatchLoaderOf, Integers);

TYPED_TEST(BatchLoaderOf, ServesTheWindowsOfEveryIntegerType) {
  const test::stored_tokens<TypeParam> stored(700);
  expect_run(stored, {.batch_size = 4, .seq_len = 13});
}

TEST(BatchLoader, ServesTheSmallestThereIs) {
  expect_run(test::stored_tokens(2), {.batch_size = 1, .seq_len = 1});
  expect_run(test::stored_tokens(257), {.batch_size = 1, .seq_len = 256});
}

TEST(BatchLoader, ServesTheSameWhateverItLooksAhead) {
  const test::stored_tokens stored(400);
  for (std::int64_t look_ahead = 1; look_ahead <= 5; ++look_ahead) {
    SCOPED_TRACE(testing::Message() << "look_ahead " << look_ahead);
    expect_run(stored, {.batch_size = 3, .seq_len = 10, .look_ahead = look_ahead});
  }
  expect_run(stored, {.batch_size = 3, .seq_len = 10, .look_ahead = 1024});
}

TEST(BatchLoader, GoesOnFromWhereverItStopped) {
  const test::stored_tokens stored(200);
  const loader_options whole = {.batch_size = 2, .seq_len = 6, .rank = 1, .world_size = 2};
  batch_loader reference(stored.data(), whole);
  for (std::int64_t k = 0; k <= reference.micro_batches(); ++k) {
    SCOPED_TRACE(testing::Message() << "stopped after " << k);
    batch_loader before(stored.data(), whole);
    for (std::int64_t m = 0; m < k; ++m) ASSERT_TRUE(before.next().has_value());

    loader_options rest = whole;
    rest.consumed_samples = before.consumed_samples();
    batch_loader after(stored.data(), rest);
    ASSERT_EQ(after.micro_batches(), reference.micro_batches() - k);
    while (const auto batch = after.next()) {
      stored.expect_batch(*batch, whole, stored.number_of(*batch, whole));
    }
    expect_run(stored, rest);
  }
}

// A step must have the same samples in the same order for any number of ranks.
TEST(BatchLoader, DealsTheSameStepsToAnyNumberOfRanks) {
  const test::stored_tokens stored(1300);  // 259 windows: six steps of 42, and 7 left over
  for (const std::int64_t world_size : {1, 2, 3, 7}) {
    SCOPED_TRACE(testing::Message() << world_size << " ranks");
    const std::int64_t rows = 42 / world_size;
    for (std::int64_t rank = 0; rank < world_size; ++rank) {
      batch_loader loader(
          stored.data(),
          {.batch_size = rows, .seq_len = 5, .rank = rank, .world_size = world_size});
      ASSERT_EQ(loader.micro_batches(), 6);
      for (std::int64_t step = 0; step < 6; ++step) {
        EXPECT_EQ(loader.next()->first_sample(), step * 42 + rank * rows);
        EXPECT_EQ(loader.consumed_samples(), (step + 1) * 42);
      }
      expect_run(stored,
                 {.batch_size = rows, .seq_len = 5, .rank = rank, .world_size = world_size});
    }
  }
}

TEST(BatchLoader, RefusesToServeWhenEverySlotIsHeld) {
  const test::stored_tokens stored(500);
  for (std::int64_t look_ahead = 1; look_ahead <= 3; ++look_ahead) {
    const std::int64_t most = 4 - look_ahead;
    const loader_options options = {
        .batch_size = 2, .seq_len = 8, .look_ahead = look_ahead, .held = most};
    batch_loader loader(stored.data(), options);
    std::vector<std::optional<batch>> held;
    const std::int64_t slots = look_ahead + most + 1;
    for (std::int64_t m = 0; m < slots; ++m) held.push_back(loader.next());
    // NOLINTNEXTLINE(clang-analyzer-deadcode.DeadStores): it is read after the exception
    const std::int64_t consumed = loader.consumed_samples();
    try {
      loader.next();
      FAIL() << "served";
    } catch (const config_error& e) {
      EXPECT_THAT(e.what(),
                  AllOf(HasSubstr("all " + std::to_string(held.size()) + " slots"),
                        HasSubstr("held is " + std::to_string(most)), HasSubstr("raise held")));
    }
    EXPECT_EQ(loader.consumed_samples(), consumed);

    held[1].reset();
    stored.expect_batch(*loader.next(), options, slots);
    stored.expect_batch(*held[0], options, 0);
  }
}

// The default options suffice for stage 0 of a pipeline of 8 stages. There, the trainer holds 8
// batches at a time, and each next() must still find prepared batches.
TEST(BatchLoader, ServesAPipelineOfEightStagesByDefault) {
  const test::stored_tokens stored(2000);
  const loader_options options = {.batch_size = 2, .seq_len = 8};
  batch_loader loader(stored.data(), options);
  std::deque<batch> held;
  std::int64_t served = 0;
  while (auto batch = loader.next()) {
    stored.expect_batch(*batch, options, served++);
    held.push_back(std::move(*batch));
    if (held.size() == 8) held.pop_front();  // the backward pass of the oldest batch ends
  }
  EXPECT_EQ(served, std::ssize(stored.samples(options)));
}

// Some slots exist only for batches that the caller may hold. The loader must not prefetch into
// them, even if the caller holds no batch.
TEST(BatchLoader, PreparesNoMoreBatchesForACallerThatMayHoldMore) {
  const test::stored_tokens stored(4000);
  for (const std::int64_t held : {1, 50}) {
    std::atomic<std::int64_t> gathers = 0;
    loader_options options = {.batch_size = 1, .seq_len = 8, .look_ahead = 3, .held = held};
    class counting_reader final : public range_reader {
     public:
      counting_reader(const std::vector<data_file>& files, std::atomic<std::int64_t>& gathers)
          : reader_(files), gathers_(gathers) {}
      void prefetch(std::span<const file_range>) noexcept override {}
      void gather(std::span<const read_request> requests) override {
        ++gathers_;
        reader_.gather(requests);
      }
      reader_report report() const override { return reader_.report(); }

     private:
      pread_reader reader_;
      std::atomic<std::int64_t>& gathers_;
    };
    options.reader = [&](const std::vector<data_file>& files) {
      return std::make_unique<counting_reader>(files, gathers);
    };
    batch_loader loader(stored.data(), options);
    for (std::int64_t taken = 0; taken < 20; ++taken) {
      const std::int64_t most = taken + 3 + 1;  // look_ahead, and one per thread
      while (gathers < most) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      EXPECT_EQ(gathers, most) << "held " << held << ", after " << taken << " batches";
      ASSERT_TRUE(loader.next().has_value());
    }
  }
}

// Another thread releases a slot before the call of next(). The call must use this slot instead of
// reporting that all slots are held.
TEST(BatchLoader, SeesEveryReleaseThatCameBefore) {
  const test::stored_tokens stored(20000);
  batch_loader loader(stored.data(), {.batch_size = 1, .seq_len = 4, .look_ahead = 1, .held = 1});
  std::vector<batch> held;
  for (int i = 0; i < 3; ++i) held.push_back(std::move(*loader.next()));

  std::atomic<batch*> handed = nullptr;
  std::jthread other([&handed](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      if (batch* b = handed.load()) {
        { const batch taken = std::move(*b); }
        handed = nullptr;
      }
      std::this_thread::yield();
    }
  });
  for (std::size_t i = 0; i < 2000; ++i) {
    handed = &held[i % 3];
    while (handed.load() != nullptr) std::this_thread::yield();
    ASSERT_NO_THROW(held[i % 3] = std::move(*loader.next()));
  }
}

// If the caller holds every batch of a short run, next() must report the end of the run, not an
// error.
TEST(BatchLoader, EndsEvenWhenEveryBatchIsHeld) {
  const test::stored_tokens stored(31);  // six windows of 5
  for (const std::int64_t batch_size : {1, 2, 3, 6}) {
    batch_loader loader(stored.data(), {.batch_size = batch_size, .seq_len = 5, .look_ahead = 4});
    std::vector<batch> held;
    while (auto batch = loader.next()) held.push_back(std::move(*batch));
    EXPECT_EQ(static_cast<std::int64_t>(held.size()), 6 / batch_size);
  }
}

TEST(BatchLoader, ServesTheSameOnAsManyThreadsAsThereMayBe) {
  expect_run(test::stored_tokens(400), {.batch_size = 1, .seq_len = 1, .threads = 255});
}

TEST(BatchLoader, ToldAheadOfMoreThanThereIsTakesNoMoreMemory) {
  const test::stored_tokens stored(400);
  expect_run(stored, {.batch_size = 1, .seq_len = 8, .prefetch_samples = 65536});
}

TEST(BatchLoader, StopsAtAnyTime) {
  const test::stored_tokens stored(5000);
  for (std::int64_t taken = 0; taken < 40; ++taken) {
    batch_loader loader(stored.data(), {.batch_size = 2, .seq_len = 32, .look_ahead = 3});
    for (std::int64_t m = 0; m < taken; ++m) ASSERT_TRUE(loader.next().has_value());
  }
}

TEST(BatchLoader, ServesNothingWhereNoStepIsWhole) {
  const test::stored_tokens stored(100);
  // The slots for these options would not fit into memory. The runs have no batch, so no slots may
  // be allocated.
  expect_run(stored, {.batch_size = 2147483647, .seq_len = 99, .world_size = 2147483647});
  expect_run(stored, {.batch_size = 10, .seq_len = 10});                        // only 9 windows
  expect_run(stored, {.batch_size = 1, .seq_len = 10, .consumed_samples = 9});  // all served
  expect_run(stored, {.seq_len = 10, .rank = 9, .world_size = 10});  // 9 windows for 10 ranks
  EXPECT_FALSE(batch_loader(stored.data(), {.seq_len = 10, .consumed_samples = 9}).next());
}

std::string refusal(const dataset::indexed_dataset& data, const loader_options& options) {
  try {
    batch_loader loader(data, options);
  } catch (const config_error& e) {
    return e.what();
  }
  return "accepted";
}

TEST(BatchLoader, RefusesOptionsThatCannotBe) {
  const test::stored_tokens stored(100);
  EXPECT_THAT(refusal(stored.data(), {.batch_size = 0}), HasSubstr("batch_size is 0"));
  EXPECT_THAT(refusal(stored.data(), {.seq_len = 0}), HasSubstr("seq_len is 0"));
  EXPECT_THAT(refusal(stored.data(), {.rank = 1}), HasSubstr("rank is 1"));
  EXPECT_THAT(refusal(stored.data(), {.world_size = 0}), HasSubstr("world_size is 0"));
  EXPECT_THAT(refusal(stored.data(), {.consumed_samples = -1}), HasSubstr("consumed_samples is"));
  EXPECT_THAT(refusal(stored.data(), {.look_ahead = 0}), HasSubstr("look_ahead is 0"));
  EXPECT_THAT(refusal(stored.data(), {.seq_len = 10, .consumed_samples = 10}),
              HasSubstr("consumed_samples is 10, expected at most 9"));
}

TEST(BatchLoader, RefusesADatasetOfLessThanOneWindow) {
  EXPECT_THAT(refusal(test::stored_tokens(8).data(), {.seq_len = 8}), HasSubstr("has 8 tokens"));
  EXPECT_THAT(refusal(test::stored_tokens(0).data(), {.seq_len = 1}), HasSubstr("has 0 tokens"));
}

// Half of the sources have 16-bit tokens, and half have 32-bit tokens. All batches have 32-bit
// tokens.
TEST(BatchLoader, BlendsSourcesOfSeveralTypes) {
  const test::temp_folder folder;
  std::vector<std::uint16_t> narrow;
  std::vector<std::int32_t> wide;
  for (int i = 0; i < 200; ++i) narrow.push_back(static_cast<std::uint16_t>(i));
  for (int i = 0; i < 200; ++i) wide.push_back(100000 + i);
  test::write_dataset<std::uint16_t>(folder / "narrow", {{narrow}});
  test::write_dataset<std::int32_t>(folder / "wide", {{wide}});
  for (const bool narrow_first : {true, false}) {
    dataset::instant_options instant;
    instant.seq_len = 16;
    instant.train_samples = 40;
    instant.first_position_of = [](std::int64_t step) { return step * 2; };
    instant.segments = {{0, {{0, 1.0}, {1, 1.0}}}};
    const dataset::instant_run run({{folder / (narrow_first ? "narrow" : "wide"), "", {}, {}},
                                    {folder / (narrow_first ? "wide" : "narrow"), "", {}, {}}},
                                   instant);
    batch_loader loader(run, {.batch_size = 2});
    EXPECT_EQ(loader.layout().width(), token_width::i32);
    std::vector<int> rows(2);
    for (const auto& batch : loader) {
      for (std::size_t r = 0; r < 2; ++r) {
        const std::int64_t source = batch.sources()[r];
        ++rows[static_cast<std::size_t>(source)];
        const auto place = run.order().at(batch.positions()[r]).place;
        const std::int64_t base = (source == 0) == narrow_first ? 0 : 100000;
        for (std::size_t i = 0; i < 16; ++i) {
          const auto token = base + place.first_token + static_cast<std::int64_t>(i);
          ASSERT_EQ(batch.tokens()[16 * r + i], token);
          ASSERT_EQ(batch.labels()[16 * r + i], token + 1);
        }
      }
    }
    EXPECT_EQ(rows, (std::vector<int>{20, 20}));
  }
}

/// A run that returns more text for a row than a row can hold.
class long_rows final : public dataset::run {
 public:
  long_rows(const test::stored_tokens<>& stored, dataset::sample_text text)
      : data_(stored.data()), prefix_(data_.prefix()), text_(std::move(text)) {}

  std::int64_t end() const override { return 8; }
  std::int64_t seq_len() const override { return 16; }
  bool extra_token() const override { return false; }
  std::int64_t source_count() const override { return 1; }
  const std::filesystem::path& prefix(std::int64_t) const override { return prefix_; }
  std::vector<dataset::run_source> sources() const override {
    return {{data_.bin_path(), data_.type(), data_.bin_size_bytes()}};
  }
  dataset::source_sample at(std::int64_t position) const override { return {0, position}; }
  std::int64_t pieces(const dataset::source_sample&, std::vector<dataset::piece>&) const override {
    return 0;
  }
  void text_of(std::int64_t position, bool, dataset::sample_text& out) const override {
    out = text_;
    out.position = position;
  }
  std::vector<std::int64_t> positions_with(std::int64_t, dataset::sequence_range,
                                           std::int64_t) const override {
    return {};
  }
  std::int64_t taken(std::int64_t, std::int64_t positions) const override { return positions; }
  dataset::sample_round round_of(std::int64_t, std::int64_t) const override {
    return {0, 8, 1, ""};
  }
  std::vector<dataset::left_out> left_out_of(std::int64_t,
                                             const dataset::sample_round&) const override {
    return {};
  }
  dataset::run_state description() const override { return {}; }

 private:
  const dataset::indexed_dataset& data_;
  std::filesystem::path prefix_;
  dataset::sample_text text_;
};

TEST(BatchLoader, RefusesRowsThatAreLongerThanTheirPlace) {
  const test::stored_tokens<> stored(2000);
  const auto fault = [&](const dataset::row_part& part, std::size_t boundaries = 0) -> std::string {
    dataset::sample_text text;
    text.real = static_cast<std::int64_t>(part.from.bytes / 2);
    text.parts = {part};
    text.boundaries.resize(boundaries);
    batch_loader loader(std::make_shared<const long_rows>(stored, text), {.batch_size = 1});
    try {
      (void)loader.next();
    } catch (const format_error& e) {
      return e.what();
    }
    return "served";
  };
  EXPECT_EQ(fault({{0, 0, 32}, 0}, 17), "served");
  EXPECT_THAT(fault({{0, 0, 3800}, 0}),
              HasSubstr("tokens 0 to 1900 of a row, expected at most 16"));
  EXPECT_THAT(fault({{0, 64, 32}, 1}), HasSubstr("tokens 1 to 17 of a row, expected at most 16"));
  EXPECT_THAT(fault({{0, 0, 32}, 0}, 18), HasSubstr("18 boundaries, expected at most 17"));
}

TEST(BatchLoader, RefusesFloats) {
  EXPECT_THAT(refusal(test::stored_tokens<float>(8).data(), {.seq_len = 2}), HasSubstr("float32"));
  EXPECT_THAT(refusal(test::stored_tokens<double>(8).data(), {.seq_len = 2}), HasSubstr("float64"));
}

}  // namespace
}  // namespace millrace::loader
