// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/cuda/detail/dlpack_tensor.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <millrace/loader/cuda/detail/device_pipe.hpp>

#include "support/fake_cuda/checking_consumer.hpp"
#include "support/fake_cuda/fake_cuda.hpp"
#include "support/fake_cuda/pinned_source.hpp"

namespace millrace::loader::cuda {
namespace {

using namespace std::chrono_literals;
using test::fake_cuda;
using testing::IsEmpty;

std::vector<test::random_batch> batches_of(std::size_t count) {
  std::mt19937_64 random(17);
  std::vector<test::random_batch> result;
  for (std::size_t i = 0; i < count; ++i) {
    result.push_back(test::make_random_batch(random, {.rows = 3, .seq_len = 24}, {}));
  }
  return result;
}

class DlpackTensor : public testing::Test {
 protected:
  fake_cuda cuda_;
  test::pinned_source source_{&fake_cuda::api(), batches_of(6)};
  owned_stream stream_ = make_stream(fake_cuda::api());
  stream on_ = stream_.get().value;
  device_pipe pipe_{
      &fake_cuda::api(), source_.batches()[0].layout, {.look_ahead = 1}, source_.source()};
};

TEST_F(DlpackTensor, DescribesTheArraysOfABatch) {
  const auto batch = pipe_.next(on_);
  const dlpack_tensor tokens = to_dlpack(*batch, batch_field::tokens);
  EXPECT_EQ(tokens->tensor.data, batch->tokens());
  EXPECT_EQ(tokens->tensor.device.type, 2);  // kDLCUDA
  EXPECT_EQ(tokens->tensor.device.id, 0);
  EXPECT_EQ(tokens->tensor.ndim, 2);
  EXPECT_EQ(tokens->tensor.shape[0], 3);
  EXPECT_EQ(tokens->tensor.shape[1], 24);
  EXPECT_EQ(tokens->tensor.strides[0], 24);
  EXPECT_EQ(tokens->tensor.strides[1], 1);
  EXPECT_EQ(tokens->tensor.byte_offset, 0U);
  EXPECT_EQ(tokens->tensor.dtype.code, 0);  // kDLInt
  EXPECT_EQ(tokens->tensor.dtype.bits, 64);
  EXPECT_EQ(tokens->tensor.dtype.lanes, 1);

  const dlpack_versioned_tensor mask = to_dlpack_versioned(*batch, batch_field::loss_mask);
  EXPECT_EQ(mask->version.major, 1U);
  EXPECT_EQ(mask->flags, 0U);
  EXPECT_EQ(mask->tensor.data, batch->loss_mask());
  EXPECT_EQ(mask->tensor.dtype.code, 2);  // kDLFloat
  EXPECT_EQ(mask->tensor.dtype.bits, 32);

  const dlpack_tensor ends = to_dlpack(*batch, batch_field::cu_seqlens);
  EXPECT_EQ(ends->tensor.data, batch->cu_seqlens());
  EXPECT_EQ(ends->tensor.ndim, 1);
  EXPECT_EQ(ends->tensor.shape[0], batch->cu_seqlens_size());
  EXPECT_EQ(ends->tensor.strides[0], 1);
  EXPECT_EQ(ends->tensor.dtype.bits, 32);
  EXPECT_EQ(ends->tensor.dtype.code, 0);
  EXPECT_EQ(to_dlpack(*batch, batch_field::labels)->tensor.data, batch->labels());
  EXPECT_EQ(to_dlpack(*batch, batch_field::position_ids)->tensor.data, batch->position_ids());
}

// Requests the types and shapes that JAX and static graphs need.
TEST_F(DlpackTensor, HasTheTypesAndTheShapeThatWereAskedFor) {
  for (const cuda_api* api : {&fake_cuda::api(), static_cast<const cuda_api*>(nullptr)}) {
    test::pinned_source source(api, batches_of(1));
    device_options options;
    options.fields = {.segment_ids = true, .ids = id_width::i32, .cu_seqlens_size = 100};
    options.no_device = no_device_rule::host;
    device_pipe pipe(api, source.batches()[0].layout, options, source.source());
    const auto batch = pipe.next(on_);
    EXPECT_EQ(batch->tokens(), nullptr) << "they are not of 64 bits";
    const std::pair<batch_field, const void*> fields[] = {
        {batch_field::tokens, batch->tokens<std::int32_t>()},
        {batch_field::labels, batch->labels<std::int32_t>()},
        {batch_field::position_ids, batch->position_ids<std::int32_t>()},
        {batch_field::segment_ids, batch->segment_ids()},
        {batch_field::cu_seqlens, batch->cu_seqlens()},
    };
    for (const auto& [field, array] : fields) {
      SCOPED_TRACE(static_cast<int>(field));
      const dlpack_tensor tensor = to_dlpack(*batch, field);
      ASSERT_NE(array, nullptr);
      EXPECT_EQ(tensor->tensor.data, array);
      EXPECT_EQ(tensor->tensor.dtype.code, 0);  // kDLInt
      EXPECT_EQ(tensor->tensor.dtype.bits, 32);
      const bool of_boundaries = field == batch_field::cu_seqlens;
      EXPECT_EQ(tensor->tensor.ndim, of_boundaries ? 1 : 2);
      EXPECT_EQ(tensor->tensor.shape[0], of_boundaries ? 100 : 3);
      if (!of_boundaries) {
        EXPECT_EQ(tensor->tensor.shape[1], 24);
      }
    }
    EXPECT_EQ(batch->cu_seqlens_size(), 100);
    EXPECT_EQ(batch->cu_seqlens_used(), std::ssize(source.batches()[0].expected.cu_seqlens));
  }
}

// Checks the published memory layout at fixed offsets, as a foreign library reads it.
TEST_F(DlpackTensor, LiesInMemoryAsItsAbiSays) {
  const auto batch = pipe_.next(on_);
  const dlpack_tensor tensor = to_dlpack(*batch, batch_field::labels);
  const dlpack_versioned_tensor versioned = to_dlpack_versioned(*batch, batch_field::labels);
  const auto at = [](const void* begin, std::size_t offset, auto value) {
    std::memcpy(&value, static_cast<const std::byte*>(begin) + offset, sizeof value);
    return value;
  };
  for (const auto& [begin, first] :
       {std::pair<const void*, std::size_t>{tensor.get(), 0}, {versioned.get(), 32}}) {
    EXPECT_EQ(at(begin, first, static_cast<const void*>(nullptr)), batch->labels());  // data
    EXPECT_EQ(at(begin, first + 8, std::int32_t{}), 2);                               // device_type
    EXPECT_EQ(at(begin, first + 12, std::int32_t{}), 0);                              // device_id
    EXPECT_EQ(at(begin, first + 16, std::int32_t{}), 2);                              // ndim
    EXPECT_EQ(at(begin, first + 20, std::uint32_t{}), 0x00014000U);  // code 0, bits 64, lanes 1
    EXPECT_EQ(at(begin, first + 40, std::uint64_t{}), 0U);           // byte_offset
  }
  EXPECT_EQ(at(versioned.get(), 0, std::uint32_t{}), 1U);   // version.major
  EXPECT_EQ(at(versioned.get(), 24, std::uint64_t{}), 0U);  // flags
}

// The batch is released before its tensors. The slot may be refilled only after the last tensor is
// released, in the order of the consumer's stream.
TEST_F(DlpackTensor, KeepsTheSlotUntilItsDeleterRecordsTheRelease) {
  cuda_.delay(test::work_kind::other, 2ms);
  test::checking_consumer consumer(cuda_);
  for (std::size_t i = 0; i < 6; ++i) {
    auto batch = pipe_.next(on_);
    ASSERT_TRUE(batch.has_value());
    dlpack_tensor tokens = to_dlpack(*batch, batch_field::tokens);
    dlpack_versioned_tensor labels = to_dlpack_versioned(*batch, batch_field::labels);
    consumer.use(*batch, source_.batches()[i], on_);
    const auto recorded = [&] {
      std::int64_t count = 0;
      for (const auto& call : cuda_.calls()) {
        count += call.name == "cudaEventRecord" && call.thread == std::this_thread::get_id();
      }
      return count;
    };
    batch.reset();
    EXPECT_EQ(recorded(), static_cast<std::int64_t>(i));
    tokens.reset();
    EXPECT_EQ(recorded(), static_cast<std::int64_t>(i));
    labels.reset();
    EXPECT_EQ(recorded(), static_cast<std::int64_t>(i + 1));
  }
  drain(fake_cuda::api(), on_);
  EXPECT_EQ(consumer.seen(), 6);
  EXPECT_THAT(consumer.wrong(), IsEmpty());
  EXPECT_THAT(cuda_.faults(), IsEmpty());
}

// The owner of a capsule has a bare pointer and a deleter. It calls the deleter once, on any
// thread.
TEST_F(DlpackTensor, MayEndOnAnotherThreadAfterThePipe) {
  dlpack::managed_tensor* handed_on = nullptr;
  {
    test::pinned_source source(&fake_cuda::api(), batches_of(2));
    device_pipe pipe(&fake_cuda::api(), source.batches()[0].layout, {}, source.source());
    handed_on = to_dlpack(*pipe.next(on_), batch_field::tokens).release();
  }
  std::jthread([&] { handed_on->deleter(handed_on); }).join();
  drain(fake_cuda::api(), on_);
  EXPECT_THAT(cuda_.faults(), IsEmpty());
}

TEST_F(DlpackTensor, OfTheHostPathIsOfTheProcessor) {
  test::pinned_source source(nullptr, batches_of(1));
  device_pipe pipe(nullptr, source.batches()[0].layout, {.no_device = no_device_rule::host},
                   source.source());
  const dlpack_tensor tokens = to_dlpack(*pipe.next(nullptr), batch_field::tokens);
  EXPECT_EQ(tokens->tensor.device.type, 1);  // kDLCPU
  EXPECT_EQ(std::memcmp(tokens->tensor.data, source.batches()[0].expected.tokens.data(),
                        std::size_t{3} * 24 * 8),
            0);
}

TEST_F(DlpackTensor, RefusesWhatTheBatchDoesNotHave) {
  test::pinned_source source(nullptr, batches_of(1));
  device_options options;
  options.fields.loss_mask = false;
  options.no_device = no_device_rule::host;
  device_pipe pipe(nullptr, source.batches()[0].layout, options, source.source());
  const auto batch = pipe.next(nullptr);
  try {
    (void)to_dlpack(*batch, batch_field::loss_mask);
    ADD_FAILURE() << "accepted";
  } catch (const config_error& e) {
    EXPECT_STREQ(e.what(), "a tensor of loss_mask was requested, but wanted_fields excludes it");
  }
  EXPECT_THROW((void)to_dlpack(*batch, batch_field::segment_ids), config_error);
}

}  // namespace
}  // namespace millrace::loader::cuda
