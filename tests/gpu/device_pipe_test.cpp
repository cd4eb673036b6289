// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/cuda/detail/device_pipe.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <iostream>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <millrace/loader/cuda/detail/dlpack_tensor.hpp>

#include "support/fake_cuda/checking_consumer.hpp"
#include "support/fake_cuda/pinned_source.hpp"
#include "support/fake_cuda/random_batch.hpp"
#include "support/seed.hpp"

namespace millrace::loader::cuda {
namespace {

const cuda_api& api() {
  return *runtime_api();
}

// Copies the arrays of a batch to the host. The copies are on the consumer's stream, so they run
// after the kernel.
struct brought_back {
  explicit brought_back(const device_batch& batch, stream on)
      : work(test::arrays_of(batch)), entries(batch.cu_seqlens_used()) {
    const auto elements = static_cast<std::size_t>(work.rows * work.seq_len);
    const std::size_t id_bytes = elements * static_cast<std::size_t>(work.ids);
    take(work.tokens, id_bytes, on);
    take(work.labels, id_bytes, on);
    take(work.position_ids, id_bytes, on);
    take(work.loss_mask, 4 * elements, on);
    take(work.segment_ids, 4 * elements, on);
    take(work.cu_seqlens, 4 * static_cast<std::size_t>(work.cu_seqlens_size), on);
  }

  template <class T>
  void take(T*& array, std::size_t bytes, stream on) {
    memory.push_back(allocate_pinned(api(), bytes));
    void* const to = memory.back().get().value;
    check(api(), api().copy_to_host(to, array, bytes, on), "cudaMemcpyAsync");
    array = static_cast<T*>(to);
  }

  batch_work work;
  std::int64_t entries;
  std::vector<pinned_block> memory;
};

// Tests all rules for the fields, both widths of tokens and of ids, plain and packed rows from one
// token to many tiles (a thread block of the kernel makes one tile of a row), rows of more
// documents than a block has threads, and more batches than slots for them on the device.
TEST(DevicePipeOnGpu, MakesWhatDatasetMakesOnTheHost) {
  std::mt19937_64 random(test::seed(20261122));
  const owned_stream stream = make_stream(api());
  const cuda::stream on = stream.get().value;
  for (const batch_rules& rules : test::all_rules()) {
    for (const auto width : {token_width::u16, token_width::i32}) {
      for (const std::int64_t seq_len : {1, 31, 4096, 20001}) {
        for (const double eods : {0.0, 0.0002, 0.1}) {
          std::vector<test::random_batch> batches;
          batches.reserve(6);
          for (int i = 0; i < 6; ++i) {
            test::random_shape shape{3, seq_len, random() % 2 == 0, width, eods};
            shape.packed = i % 2 == 1;
            shape.longest = static_cast<std::int64_t>(random() % 3) * 20;
            batches.push_back(test::make_random_batch(random, shape, rules));
          }
          wanted_fields fields = {.segment_ids = true};
          fields.ids = random() % 2 == 0 ? id_width::i32 : id_width::i64;
          if (random() % 2 == 0) fields.cu_seqlens_size = 3 * seq_len + 1;
          slot_layout largest = batches[0].layout;
          for (const auto& batch : batches) {
            if (batch.layout.capacity_bytes() > largest.capacity_bytes()) largest = batch.layout;
          }
          test::pinned_source source(&api(), std::move(batches));
          device_pipe pipe(&api(), largest, {.fields = fields, .rules = rules}, source.source());
          std::vector<brought_back> results;
          for (const device_batch& batch : pipe.on(on)) {
            ASSERT_TRUE(batch.on_device());
            results.emplace_back(batch, on);
          }
          drain(api(), on);
          ASSERT_EQ(results.size(), 6U);
          for (std::size_t i = 0; i < results.size(); ++i) {
            ASSERT_EQ(
                test::difference(results[i].work, results[i].entries, source.batches()[i].expected),
                "")
                << "batch " << i << ", seq_len " << seq_len << ", pad " << rules.pad
                << ", positions " << static_cast<int>(rules.positions);
          }
        }
      }
    }
  }
}

TEST(DevicePipeOnGpu, ATensorOutlivesThePipe) {
  std::mt19937_64 random(test::seed(1));
  const owned_stream stream = make_stream(api());
  std::vector<test::random_batch> batches;
  batches.push_back(test::make_random_batch(random, {2, 100}, {}));
  test::pinned_source source(&api(), std::move(batches));
  dlpack_tensor tokens;
  {
    device_pipe pipe(&api(), source.batches()[0].layout, {}, source.source());
    tokens = to_dlpack(*pipe.next(stream.get().value), batch_field::tokens);
  }
  const pinned_block memory = allocate_pinned(api(), 1600);
  check(api(),
        api().copy_to_host(memory.get().value, tokens->tensor.data, 1600, stream.get().value),
        "cudaMemcpyAsync");
  tokens.reset();
  drain(api(), stream.get().value);
  EXPECT_EQ(std::memcmp(memory.get().value, source.batches()[0].expected.tokens.data(), 1600), 0);
}

}  // namespace
}  // namespace millrace::loader::cuda

// NOLINTNEXTLINE(bugprone-exception-escape): what escapes is told, and fails the test
int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  const auto answer = millrace::loader::cuda::find_device(millrace::loader::cuda::runtime_api(), 0);
  if (!answer.usable) {
    std::cout << "skipped: no GPU to test on: " << answer.why << '\n';
    return 77;
  }
  return RUN_ALL_TESTS();
}
