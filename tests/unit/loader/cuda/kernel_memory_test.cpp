// SPDX-License-Identifier: Apache-2.0
#include "support/fake_cuda/kernel_memory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <millrace/loader/cuda/detail/handles.hpp>
#include <millrace/loader/cuda/detail/output_layout.hpp>
#include <millrace/loader/cuda/detail/stream_order.hpp>

#include "support/fake_cuda/checking_consumer.hpp"
#include "support/fake_cuda/cut_batch.hpp"
#include "support/fake_cuda/fake_cuda.hpp"
#include "support/fake_cuda/random_batch.hpp"

namespace millrace::loader::cuda {
namespace {

using test::fake_cuda;
using testing::IsEmpty;

// A batch in which each array is a block of its own. Each block is exactly as long as the kernel
// needs.
class arrays_apart {
 public:
  explicit arrays_apart(const test::random_batch& batch) {
    wanted_fields fields{.segment_ids = true, .cu_seqlens_size = 20000};
    fields.cu_seqlens = batch.layout.packed() || !batch.layout.cut();
    fields.cu_seqlens_padded = batch.layout.packed();
    const output_layout outputs(batch.layout, fields);
    std::vector<std::byte> one_block(outputs.bytes());
    work = outputs.work(one_block.data(), batch.slot.data(), batch.layout, batch.boundaries,
                        batch.rules, batch.slices);
    const auto rows = static_cast<std::size_t>(work.rows);
    const auto elements = static_cast<std::size_t>(work.rows * work.seq_len);
    const auto count = static_cast<std::size_t>(work.boundary_count);
    place("text", &batch_work::text, batch.layout.row_bytes() * rows);
    place("real", &batch_work::real, 4 * rows);
    place("boundary_begin", &batch_work::boundary_begin, 4 * (rows + 1));
    if (count > 0) place("boundaries", &batch_work::boundaries, 4 * count);
    if (work.packed()) {
      place("document_ends", &batch_work::document_ends, 4 * count);
      place("unpadded_ends", &batch_work::unpadded_ends, 4 * count);
    }
    if (work.cut()) place_slices(4 * (rows + 1), 4 * static_cast<std::size_t>(batch.slices));
    place("tokens", &batch_work::tokens, 8 * elements);
    place("labels", &batch_work::labels, 8 * elements);
    place("position_ids", &batch_work::position_ids, 8 * elements);
    place("loss_mask", &batch_work::loss_mask, 4 * elements);
    place("segment_ids", &batch_work::segment_ids, 4 * elements);
    if (fields.cu_seqlens) place("cu_seqlens", &batch_work::cu_seqlens, std::size_t{4} * 20000);
    if (fields.cu_seqlens_padded) {
      place("cu_seqlens_padded", &batch_work::cu_seqlens_padded, std::size_t{4} * 20000);
    }
    place("marks", &batch_work::marks,
          4 * rows * ((static_cast<std::size_t>(work.seq_len) + 511) / 512));
  }

  struct array {
    std::string name;
    std::function<void()> cut;   // makes the block of the array one byte too short
    std::function<void()> mend;  // restores the full block
  };
  std::deque<array> arrays;
  batch_work work;

 private:
  template <class T>
  void place(const char* name, T* batch_work::*member, std::size_t bytes) {
    place_at(name, work.*member, bytes);
  }

  void place_slices(std::size_t begin_bytes, std::size_t bytes) {
    place_at("slices.begin", work.slices.begin, begin_bytes);
    place_at("slices.ends", work.slices.ends, bytes);
    place_at("slices.real_ends", work.slices.real_ends, bytes);
    place_at("slices.next", work.slices.next, bytes);
    place_at("slices.origins", work.slices.origins, bytes);
    place_at("slices.documents", work.slices.documents, bytes);
  }

  template <class T>
  void place_at(const char* name, T*& array, std::size_t bytes) {
    // Copy the contents, because some arrays are inputs.
    blocks_.push_back(allocate_device(fake_cuda::api(), bytes));
    blocks_.push_back(allocate_device(fake_cuda::api(), bytes - 1));
    auto* const whole = static_cast<T*>(blocks_[blocks_.size() - 2].get().value);
    auto* const cut = static_cast<T*>(blocks_.back().get().value);
    const void* const from = array;
    std::memcpy(const_cast<void*>(static_cast<const void*>(whole)), from, bytes);
    array = whole;
    arrays.push_back({name, [&array, cut] { array = cut; }, [&array, whole] { array = whole; }});
  }

  std::vector<device_memory> blocks_;
};

// A kernel uses every byte of its arrays. So if any block is too short, the access beyond its end
// must be detected.
void find_every_array(const test::random_batch& batch, std::size_t count) {
  fake_cuda cuda;
  const owned_stream stream = make_stream(fake_cuda::api());
  arrays_apart apart(batch);
  ASSERT_TRUE(needs_marks(apart.work));
  ASSERT_EQ(fake_cuda::api().launch_batch(apart.work, stream.get().value), 0);
  drain(fake_cuda::api(), stream.get().value);
  EXPECT_EQ(test::difference(apart.work, apart.work.cu_seqlens_used(), batch.expected), "");
  EXPECT_THAT(cuda.faults(), IsEmpty());
  std::size_t faults = 0;
  for (const arrays_apart::array& each : apart.arrays) {
    each.cut();
    EXPECT_EQ(fake_cuda::api().launch_batch(apart.work, stream.get().value),
              fake_cuda::illegal_address)
        << each.name;
    EXPECT_EQ(cuda.faults().size(), ++faults) << each.name;
    each.mend();
  }
  EXPECT_EQ(faults, count);
}

TEST(KernelMemory, HasEveryArrayOfABatch) {
  std::mt19937_64 random(6);
  for (const bool packed : {false, true}) {
    test::random_shape shape{.rows = 2, .seq_len = 9000, .longest = 300};
    shape.packed = packed;
    const batch_rules rules = {.eod = 7, .positions = position_rule::after_eod};
    find_every_array(test::make_random_batch(random, shape, rules), packed ? 14 : 11);
  }
}

TEST(KernelMemory, HasEveryArrayOfAContextParallelRank) {
  std::mt19937_64 random(7);
  for (const bool packed : {false, true}) {
    test::random_shape shape{.rows = 2, .seq_len = 18000, .longest = 300, .padding = 4};
    shape.packed = packed;
    const batch_rules rules = {.eod = 7, .positions = position_rule::after_eod};
    const test::random_batch whole = test::make_random_batch(random, shape, rules);
    find_every_array(test::cut_batch(whole, 2, 1), packed ? 20 : 16);
  }
}

// A kernel that still uses the table of slices must keep its memory from being freed.
TEST(KernelMemory, OfSlicesMayNotEndBeforeTheKernel) {
  std::mt19937_64 random(8);
  const test::random_batch whole =
      test::make_random_batch(random, {.rows = 2, .seq_len = 18000, .padding = 4}, {.eod = 7});
  const test::random_batch batch = test::cut_batch(whole, 2, 0);
  fake_cuda cuda;
  cuda.delay(test::work_kind::kernel, std::chrono::milliseconds(20));
  const owned_stream stream = make_stream(fake_cuda::api());
  arrays_apart apart(batch);
  device_memory origins =
      allocate_device(fake_cuda::api(), 4 * static_cast<std::size_t>(batch.slices));
  auto* const copy = static_cast<std::int32_t*>(origins.get().value);
  std::memcpy(copy, apart.work.slices.origins, 4 * static_cast<std::size_t>(batch.slices));
  apart.work.slices.origins = copy;
  ASSERT_EQ(fake_cuda::api().launch_batch(apart.work, stream.get().value), 0);
  EXPECT_THAT(cuda.faults(), IsEmpty());
  origins.reset();
  EXPECT_EQ(cuda.faults().size(), 1U);
  drain(fake_cuda::api(), stream.get().value);
}

}  // namespace
}  // namespace millrace::loader::cuda
