// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <millrace/loader/cuda/detail/device_pipe.hpp>

#include "gpu/device_sums.hpp"
#include "gpu/harness.hpp"
#include "gpu/packed_batch.hpp"
#include "support/fake_cuda/checking_consumer.hpp"
#include "support/fake_cuda/pinned_source.hpp"
#include "support/fake_cuda/random_batch.hpp"
#include "support/seed.hpp"

namespace millrace::test {
namespace {

using loader::token_width;
using loader::cuda::batch_rules;
using loader::cuda::device_batch;

/// Page-locked memory for the arrays of a few batches. Locking pages takes CUDA a long time, so one
/// block is reused.
class host_arena {
 public:
  explicit host_arena(std::size_t bytes)
      : memory_(loader::cuda::allocate_pinned(gpu_api(), bytes)), bytes_(bytes) {}
  void clear() { at_ = 0; }

  template <class T>
  T* bring(const T* from, std::int64_t count, loader::cuda::stream on) {
    const auto bytes = static_cast<std::size_t>(count) * sizeof(T);
    auto* to = static_cast<std::byte*>(memory_.get().value) + at_;
    at_ += (bytes + 255) / 256 * 256;
    expect(at_ <= bytes_, "the test's memory on the host is too small");
    must(gpu_api().copy_to_host(to, from, bytes, on), "cudaMemcpyAsync");
    return reinterpret_cast<T*>(to);
  }

 private:
  loader::cuda::pinned_block memory_;
  std::size_t bytes_;
  std::size_t at_ = 0;
};

/// Copies of a batch's arrays on the host. They are complete once the stream is done.
struct brought_back {
  brought_back(const device_batch& batch, host_arena& arena, loader::cuda::stream on)
      : entries(batch.cu_seqlens_size()) {
    const std::int64_t elements = batch.rows() * batch.seq_len();
    work.tokens = arena.bring(batch.tokens(), elements, on);
    work.labels = arena.bring(batch.labels(), elements, on);
    work.position_ids = arena.bring(batch.position_ids(), elements, on);
    work.loss_mask = arena.bring(batch.loss_mask(), elements, on);
    work.cu_seqlens = arena.bring(batch.cu_seqlens(), entries, on);
  }
  std::int64_t entries;
  loader::cuda::batch_work work;
};

void compare(std::vector<random_batch> batches, const batch_rules& rules, host_arena& arena,
             loader::cuda::stream on, const std::string& what) {
  loader::slot_layout largest = batches[0].layout;
  for (const random_batch& batch : batches) {
    if (batch.layout.capacity_bytes() > largest.capacity_bytes()) largest = batch.layout;
  }
  pinned_source source(&gpu_api(), std::move(batches));
  loader::cuda::device_pipe pipe(&gpu_api(), largest, {.rules = rules}, source.source());
  arena.clear();
  std::vector<brought_back> results;
  for (const device_batch& batch : pipe.on(on)) {
    expect(batch.on_device(), "a batch is not on the device");
    results.emplace_back(batch, arena, on);
  }
  loader::cuda::drain(gpu_api(), on);
  expect_equal(results.size(), source.batches().size(), "number of batches, " + what);
  for (std::size_t i = 0; i < results.size(); ++i) {
    std::string wrong =
        difference(results[i].work, results[i].entries, source.batches()[i].expected);
    if (wrong.empty()) continue;
    wrong += " of batch ";
    wrong += std::to_string(i);
    throw gpu_failure(wrong += " differ from the host's, " + what);
  }
}

std::string text_of(const batch_rules& rules) {
  return "pad " + std::to_string(rules.pad) + ", eod_mask_loss " +
         std::to_string(static_cast<int>(rules.eod_mask_loss)) + ", positions " +
         std::to_string(static_cast<int>(rules.positions));
}

}  // namespace

// Tries all rules for the fields and both token widths. Rows have from one token to many tiles (a
// thread block of the kernel makes one tile of a row). There are more batches than slots on the
// device.
void makes_what_dataset_makes_on_the_host() {
  std::mt19937_64 random(seed(20261122));
  const auto stream = gpu_stream();
  host_arena arena(std::size_t{32} << 20);
  for (const batch_rules& rules : all_rules()) {
    for (const auto width : {token_width::u16, token_width::i32}) {
      for (const std::int64_t seq_len : {1, 31, 4096, 20001}) {
        std::vector<random_batch> batches;
        for (const double eods : {0.0, 0.0002, 0.1}) {
          for (const bool extra_token : {false, true}) {
            batches.push_back(
                make_random_batch(random, {3, seq_len, extra_token, width, eods}, rules));
          }
        }
        compare(std::move(batches), rules, arena, stream.get().value,
                "seq_len " + std::to_string(seq_len) + ", " + text_of(rules));
      }
    }
  }
}

// Tries documents from one token to more than a tile, with and without padding after each document.
void makes_packed_rows() {
  std::mt19937_64 random(seed(4));
  const auto stream = gpu_stream();
  host_arena arena(std::size_t{32} << 20);
  for (const batch_rules& rules : all_rules()) {
    for (const auto width : {token_width::u16, token_width::i32}) {
      for (const std::int64_t seq_len : {8, 4096, 20000}) {
        std::vector<random_batch> batches;
        for (const std::int64_t pad_to : {1, 8}) {
          for (const std::int64_t most : {3, 700, 15000}) {
            batches.push_back(
                make_packed_batch(random, {3, seq_len, width, pad_to, most, 0.05}, rules));
          }
        }
        compare(std::move(batches), rules, arena, stream.get().value,
                "packed, seq_len " + std::to_string(seq_len) + ", " + text_of(rules));
      }
    }
  }
}

}  // namespace millrace::test
