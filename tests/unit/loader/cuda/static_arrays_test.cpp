// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/cuda/detail/static_arrays.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <millrace/loader/cuda/device_loader.hpp>

#include "support/fake_cuda/checking_consumer.hpp"
#include "support/fake_cuda/fake_cuda.hpp"
#include "support/fake_cuda/pinned_source.hpp"
#include "support/fake_cuda/static_work.hpp"
#include "support/loader_runs.hpp"
#include "support/paths.hpp"
#include "support/seed.hpp"

namespace millrace::loader::cuda {
namespace {

using namespace std::chrono_literals;
using test::fake_cuda;
using testing::IsEmpty;

constexpr std::int64_t static_rows = 2;
constexpr std::int64_t static_seq_len = 50;
constexpr std::int64_t static_entries = static_rows * static_seq_len + 1;
const batch_rules static_rules = {.eod = 7, .positions = position_rule::after_eod};

std::vector<test::random_batch> static_batches(std::size_t count, bool packed = false) {
  std::mt19937_64 random(test::seed(50));
  test::random_shape shape{.rows = static_rows, .seq_len = static_seq_len, .longest = 9};
  shape.packed = packed;
  std::vector<test::random_batch> result;
  for (std::size_t i = 0; i < count; ++i) {
    result.push_back(test::make_random_batch(random, shape, static_rules));
  }
  return result;
}

// The consumer's own arrays, on a device or on the host.
class own_arrays {
 public:
  explicit own_arrays(bool on_device, id_width ids = id_width::i64, bool padded = false)
      : on_device_(on_device) {
    to.rows = static_rows;
    to.seq_len = static_seq_len;
    to.ids = ids;
    const std::size_t elements = static_rows * static_seq_len;
    const std::size_t id_bytes = elements * static_cast<std::size_t>(ids);
    to.tokens = allocate(id_bytes);
    to.labels = allocate(id_bytes);
    to.position_ids = allocate(id_bytes);
    to.loss_mask = static_cast<float*>(allocate(4 * elements));
    to.segment_ids = static_cast<std::int32_t*>(allocate(4 * elements));
    to.cu_seqlens = static_cast<std::int32_t*>(allocate(4 * static_entries));
    if (padded) to.cu_seqlens_padded = static_cast<std::int32_t*>(allocate(4 * static_entries));
    to.cu_seqlens_size = static_entries;
  }

  batch_work work() const { return test::work_in(to, static_rows); }

  static_arrays to;

 private:
  void* allocate(std::size_t bytes) {
    if (!on_device_) {
      host_.push_back(std::make_unique<std::int64_t[]>(bytes / 8 + 1));
      return host_.back().get();
    }
    device_.push_back(allocate_device(fake_cuda::api(), bytes));
    return device_.back().get().value;
  }

  bool on_device_;
  std::vector<device_memory> device_;
  std::vector<std::unique_ptr<std::int64_t[]>> host_;
};

device_options options_for(id_width ids, bool padded = false) {
  device_options options;
  options.no_device = no_device_rule::host;
  options.fields = {.cu_seqlens_padded = padded,
                    .segment_ids = true,
                    .ids = ids,
                    .cu_seqlens_size = static_entries};
  options.rules = static_rules;
  return options;
}

// Serves all batches into the same arrays while some work is late: the kernels that copy, or the
// consumer's work that reads the arrays.
void serve_all_late(test::work_kind late, id_width ids, bool packed) {
  fake_cuda cuda(9);
  cuda.delay(late, 2ms);
  test::pinned_source source(&fake_cuda::api(), static_batches(12, packed));
  const owned_stream stream = make_stream(fake_cuda::api());
  const cuda::stream on = stream.get().value;
  const own_arrays arrays(true, ids, packed);
  test::checking_consumer consumer(cuda);
  {
    device_pipe pipe(&fake_cuda::api(), source.batches()[0].layout, options_for(ids, packed),
                     source.source());
    for (std::size_t i = 0; i < 12; ++i) {
      const test::random_batch& wanted = source.batches()[i];
      const auto batch = pipe.next_into(arrays.to, on);
      ASSERT_TRUE(batch.has_value());
      EXPECT_EQ(batch->rows, static_rows);
      EXPECT_EQ(batch->number.micro_batch, static_cast<std::int64_t>(i));
      EXPECT_EQ(batch->max_seqlen, wanted.expected.max_seqlen);
      EXPECT_EQ(batch->cu_seqlens_used, std::ssize(wanted.expected.cu_seqlens));
      EXPECT_THAT(batch->positions, testing::ElementsAre(static_cast<std::int64_t>(i), 8));
      EXPECT_THAT(batch->sources, testing::ElementsAre(1, static_cast<std::int64_t>(i)));
      consumer.use(arrays.work(), batch->cu_seqlens_used, batch->number.micro_batch, wanted, on);
    }
    EXPECT_FALSE(pipe.next_into(arrays.to, on).has_value());
  }
  drain(fake_cuda::api(), on);
  EXPECT_EQ(consumer.seen(), 12);
  EXPECT_THAT(consumer.wrong(), IsEmpty());
  EXPECT_THAT(cuda.faults(), IsEmpty());
  EXPECT_EQ(cuda.calls_of("launch of copies"), 12);
}

// If a slot were released before its copy is done, it would be refilled too early.
TEST(NextInto, ReleasesASlotAfterItsCopy) {
  for (const bool packed : {false, true}) {
    for (const auto ids : {id_width::i64, id_width::i32}) {
      serve_all_late(test::work_kind::kernel, ids, packed);
    }
  }
}

// If a copy did not run on the consumer's stream, it would overwrite arrays that a slow consumer
// still reads.
TEST(NextInto, WritesAfterTheConsumersOperations) {
  for (const bool packed : {false, true}) {
    for (const auto ids : {id_width::i64, id_width::i32}) {
      serve_all_late(test::work_kind::other, ids, packed);
    }
  }
}

TEST(NextInto, WritesOnTheHostWhereThereIsNoDevice) {
  for (const auto ids : {id_width::i64, id_width::i32}) {
    fake_cuda cuda;
    test::pinned_source source(nullptr, static_batches(5));
    const own_arrays arrays(false, ids);
    device_pipe pipe(nullptr, source.batches()[0].layout, options_for(ids), source.source());
    for (const test::random_batch& wanted : source.batches()) {
      const auto batch = pipe.next_into(arrays.to, nullptr);
      ASSERT_TRUE(batch.has_value());
      EXPECT_EQ(test::difference(arrays.work(), batch->cu_seqlens_used, wanted.expected), "");
    }
    EXPECT_FALSE(pipe.next_into(arrays.to, nullptr).has_value());
  }
}

class NextIntoOfAPipe : public testing::Test {
 protected:
  std::string message_for(const static_arrays& to, stream on = nullptr) {
    try {
      (void)pipe_.next_into(to, on);
    } catch (const config_error& e) {
      return e.what();
    }
    return "nothing was thrown";
  }

  fake_cuda cuda_{1, 2};
  test::pinned_source source_{&fake_cuda::api(), static_batches(6)};
  own_arrays arrays_{true};
  device_pipe pipe_{&fake_cuda::api(), source_.batches()[0].layout, options_for(id_width::i64),
                    source_.source()};
};

TEST_F(NextIntoOfAPipe, RefusesArraysThatDoNotFit) {
  const auto with = [&](auto change) {
    static_arrays to = arrays_.to;
    change(to);
    return message_for(to);
  };
  EXPECT_EQ(with([](auto& to) { to.seq_len = 51; }),
            "next_into: the static arrays are [2, 51], expected [2, 50], or more rows, because "
            "batches are that large");
  EXPECT_EQ(with([](auto& to) { to.rows = 1; }),
            "next_into: the static arrays are [1, 50], expected [2, 50], or more rows, because "
            "batches are that large");
  EXPECT_EQ(with([](auto& to) { to.ids = id_width::i32; }),
            "next_into: the static arrays are for int32 ids, expected int64 as in "
            "wanted_fields::ids");
  EXPECT_EQ(with([](auto& to) { to.cu_seqlens_size = 7; }),
            "next_into: the static cu_seqlens has 7 entries and wanted_fields::cu_seqlens_size is "
            "101, expected the same number, which is not 0");
  EXPECT_EQ(with([](auto& to) { to.labels = static_cast<std::byte*>(to.labels) + 4; }),
            "next_into: the static array of labels is not aligned, expected an address that is a "
            "multiple of 8");
  const pinned_block host = allocate_pinned(fake_cuda::api(), 8 * static_rows * static_seq_len);
  EXPECT_EQ(with([&](auto& to) { to.labels = host.get().value; }),
            "next_into: the static array of labels is not on a device, expected device 0, where "
            "the batches are");
  const device_scope scope(fake_cuda::api(), 1);
  const device_memory other = allocate_device(fake_cuda::api(), 8 * static_rows * static_seq_len);
  EXPECT_EQ(with([&](auto& to) { to.tokens = other.get().value; }),
            "next_into: the static array of tokens is on device 1, expected device 0, where the "
            "batches are");
  EXPECT_EQ(pipe_.next_into(arrays_.to, nullptr)->number.micro_batch, 0) << "no batch is lost";
  EXPECT_THAT(cuda_.faults(), IsEmpty());
}

TEST(NextInto, RefusesArraysThatThePipeDoesNotMake) {
  fake_cuda cuda;
  test::pinned_source source(&fake_cuda::api(), static_batches(1));
  own_arrays arrays(true);
  device_pipe pipe(&fake_cuda::api(), source.batches()[0].layout,
                   {.fields = {.cu_seqlens_size = static_entries}}, source.source());
  try {
    (void)pipe.next_into(arrays.to, nullptr);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const config_error& e) {
    EXPECT_STREQ(e.what(),
                 "next_into: the static array of segment_ids cannot be written, because "
                 "wanted_fields excludes segment_ids");
  }
}

// next_into() writes only the requested arrays, and checks the arrays only once.
TEST_F(NextIntoOfAPipe, LeavesOutArraysThatAreNull) {
  static_arrays to = arrays_.to;
  to.labels = nullptr;
  to.cu_seqlens = nullptr;
  to.cu_seqlens_size = 0;
  std::memset(arrays_.to.labels, 0x5A, 8 * static_rows * static_seq_len);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(pipe_.next_into(to, nullptr).has_value());
  drain(fake_cuda::api(), nullptr);
  batch_work found = arrays_.work();
  found.labels = nullptr;
  found.cu_seqlens = nullptr;
  EXPECT_EQ(test::difference(found, 0, source_.batches()[2].expected), "");
  const auto* const labels = static_cast<const unsigned char*>(arrays_.to.labels);
  EXPECT_TRUE(std::all_of(labels, labels + 8 * static_rows * static_seq_len,
                          [](unsigned char byte) { return byte == 0x5A; }));
  EXPECT_EQ(cuda_.calls_of("cudaPointerGetAttributes"), 4);
}

TEST_F(NextIntoOfAPipe, CannotBeCaptured) {
  const owned_stream stream = make_stream(fake_cuda::api());
  const cuda::stream on = stream.get().value;
  ASSERT_EQ(cuda_.begin_capture(on), 0);
  EXPECT_THAT(message_for(arrays_.to, on),
              testing::HasSubstr("is being captured into a CUDA graph"));
  EXPECT_EQ(cuda_.end_capture(on), 0);
  EXPECT_EQ(pipe_.next_into(arrays_.to, on)->number.micro_batch, 0) << "no batch is lost";
}

// One pipe can serve both functions: the consumer holds a batch that next() returned while it calls
// next_into().
TEST_F(NextIntoOfAPipe, TakesTurnsWithNext) {
  const owned_stream stream = make_stream(fake_cuda::api());
  const cuda::stream on = stream.get().value;
  test::checking_consumer consumer(cuda_);
  const auto held = pipe_.next(on);
  const auto into = pipe_.next_into(arrays_.to, on);
  EXPECT_EQ(into->number.micro_batch, 1);
  consumer.use(*held, source_.batches()[0], on);
  consumer.use(arrays_.work(), into->cu_seqlens_used, 1, source_.batches()[1], on);
  drain(fake_cuda::api(), on);
  EXPECT_EQ(consumer.seen(), 2);
  EXPECT_THAT(consumer.wrong(), IsEmpty());
  EXPECT_THAT(cuda_.faults(), IsEmpty());
}

// A failed launch must throw an error and end the pipe: a later batch would follow a gap.
TEST_F(NextIntoOfAPipe, AFailedCopyIsAnError) {
  cuda_.fail_call("launch of copies", 1, fake_cuda::launch_failure);
  EXPECT_THROW((void)pipe_.next_into(arrays_.to, nullptr), cuda_error);
  EXPECT_FALSE(pipe_.next_into(arrays_.to, nullptr).has_value());
  drain(fake_cuda::api(), nullptr);
  EXPECT_THAT(cuda_.faults(), IsEmpty());
}

TEST(NextInto, OfALoaderCountsWhatItServed) {
  const test::temp_folder folder{test::quick_folder()};
  const auto run = test::run_of({.kind = test::run_kind::instant, .seq_len = 24, .samples = 60},
                                test::store_three(folder, 7));
  fake_cuda cuda;
  const auto loader = std::visit(
      [&](const auto& each) {
        return std::make_unique<device_loader>(each, loader_options{.batch_size = 3},
                                               device_loader_options{}, &fake_cuda::api());
      },
      run);
  const device_memory tokens = allocate_device(fake_cuda::api(), std::size_t{8} * 3 * 24);
  static_arrays to = {.rows = 3, .seq_len = 24};
  to.tokens = tokens.get().value;
  for (int i = 1; i <= 4; ++i) {
    const auto batch = loader->next_into(to, nullptr);
    ASSERT_TRUE(batch.has_value());
    EXPECT_EQ(batch->number.consumed, 3 * i);
    EXPECT_EQ(loader->consumed_samples(), 3 * i);
    EXPECT_EQ(loader->state().consumed_samples, 3 * i);
  }
  drain(fake_cuda::api(), nullptr);
  EXPECT_THAT(cuda.faults(), IsEmpty());
}

// Each thread of a kernel copies its share of the bytes. It copies words of 16 bytes if all
// addresses and sizes are aligned.
TEST(ArrayCopies, CopyEveryByteOnce) {
  for (const std::int64_t bytes : {4, 16, 20, 64, 4096, 4100}) {
    for (const std::size_t shift : {std::size_t{0}, std::size_t{4}, std::size_t{8}}) {
      for (const std::int64_t threads : {1, 3, 256}) {
        std::vector<std::uint32_t> from(2048);
        for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::uint32_t>(i) + 1;
        std::vector<std::uint32_t> to(2048);
        array_copies copies;
        copies.add(to.data() + shift / 4, from.data(), bytes);
        ASSERT_EQ(copies.count, 1);
        for (std::int64_t me = 0; me < threads; ++me) copy_share(copies.arrays[0], me, threads);
        for (std::size_t i = 0; i < to.size(); ++i) {
          const bool inside = i >= shift / 4 && 4 * i < shift + static_cast<std::size_t>(bytes);
          ASSERT_EQ(to[i], inside ? from[i - shift / 4] : 0) << bytes << ", " << shift;
        }
      }
    }
  }
}

}  // namespace
}  // namespace millrace::loader::cuda
