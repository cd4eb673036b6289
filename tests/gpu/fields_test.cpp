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
#include "support/fake_cuda/checking_consumer.hpp"
#include "support/fake_cuda/pinned_source.hpp"
#include "support/fake_cuda/random_batch.hpp"
#include "support/seed.hpp"

namespace millrace::test {
namespace {

using loader::token_width;
using loader::cuda::batch_rules;
using loader::cuda::device_batch;
using loader::cuda::id_width;

/// Page-locked memory for the arrays of a few batches. Locking pages is slow in CUDA, so the tests
/// reuse one block.
class host_arena {
 public:
  explicit host_arena(std::size_t bytes)
      : memory_(loader::cuda::allocate_pinned(gpu_api(), bytes)), bytes_(bytes) {}
  void clear() { at_ = 0; }

  /// Enqueues a copy of an array to this memory, and returns the address of the copy.
  template <class T>
  T* bring(const T* from, std::int64_t count, loader::cuda::stream on) {
    return static_cast<T*>(bring_bytes(from, static_cast<std::size_t>(count) * sizeof(T), on));
  }
  void* bring_bytes(const void* from, std::size_t bytes, loader::cuda::stream on) {
    auto* to = static_cast<std::byte*>(memory_.get().value) + at_;
    at_ += (bytes + 255) / 256 * 256;
    expect(at_ <= bytes_, "the test's memory on the host is too small");
    must(gpu_api().copy_to_host(to, from, bytes, on), "cudaMemcpyAsync");
    return to;
  }

 private:
  loader::cuda::pinned_block memory_;
  std::size_t bytes_;
  std::size_t at_ = 0;
};

/// Copies of a batch's arrays on the host. They are complete as soon as the stream has finished its
/// work.
struct brought_back {
  brought_back(const device_batch& batch, host_arena& arena, loader::cuda::stream on)
      : entries(batch.cu_seqlens_size()), work(arrays_of(batch)) {
    const std::int64_t elements = batch.rows() * batch.seq_len();
    const auto id_bytes = static_cast<std::size_t>(elements) * static_cast<std::size_t>(work.ids);
    for (void** ids : {&work.tokens, &work.labels, &work.position_ids}) {
      *ids = arena.bring_bytes(*ids, id_bytes, on);
    }
    work.loss_mask = arena.bring(work.loss_mask, elements, on);
    work.segment_ids = arena.bring(work.segment_ids, elements, on);
    work.cu_seqlens = arena.bring(work.cu_seqlens, entries, on);
  }
  std::int64_t entries;
  loader::cuda::batch_work work;
};

void compare(std::vector<random_batch> batches, id_width ids, const batch_rules& rules,
             host_arena& arena, loader::cuda::stream on, const std::string& what) {
  loader::slot_layout largest = batches[0].layout;
  for (const random_batch& batch : batches) {
    if (batch.layout.capacity_bytes() > largest.capacity_bytes()) largest = batch.layout;
  }
  pinned_source source(&gpu_api(), std::move(batches));
  loader::cuda::device_pipe pipe(&gpu_api(), largest,
                                 {.fields = {.segment_ids = true, .ids = ids}, .rules = rules},
                                 source.source());
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

// Compares batches that the device makes with batches that the host makes. The rows are random and
// have several lengths. All rules and both token widths are tested. The ids on the device have 32
// bits for one half of the cases, and 64 bits for the other half.
void compare_all(std::mt19937_64& random, const std::vector<std::int64_t>& lengths,
                 const std::vector<random_shape>& shapes, const std::string& what) {
  const auto stream = gpu_stream();
  host_arena arena(std::size_t{32} << 20);
  auto ids = id_width::i32;
  for (const batch_rules& rules : all_rules()) {
    for (const auto width : {token_width::u16, token_width::i32}) {
      for (const std::int64_t seq_len : lengths) {
        std::vector<random_batch> batches;
        for (random_shape shape : shapes) {
          shape.seq_len = seq_len;
          shape.width = width;
          batches.push_back(make_random_batch(random, shape, rules));
        }
        compare(std::move(batches), ids, rules, arena, stream.get().value,
                what + ", seq_len " + std::to_string(seq_len) + ", " +
                    (ids == id_width::i32 ? "int32 ids, " : "int64 ids, ") + text_of(rules));
        ids = ids == id_width::i32 ? id_width::i64 : id_width::i32;
      }
    }
  }
}

}  // namespace

// The length of rows varies from one token to many tiles. A tile is the part of a row that one
// thread block of the kernel makes. There are more batches than slots on the device.
void makes_what_dataset_makes_on_the_host() {
  std::mt19937_64 random(seed(20261122));
  std::vector<random_shape> shapes;
  for (const double eods : {0.0, 0.0002, 0.1}) {
    for (const bool extra_token : {false, true}) {
      shapes.push_back({.extra_token = extra_token, .eod_share = eods});
    }
  }
  compare_all(random, {1, 31, 4096, 20001, 77}, shapes, "plain");
}

// The length of documents varies from one token to more than a tile. Some documents are padded.
void makes_packed_rows() {
  std::mt19937_64 random(seed(4));
  std::vector<random_shape> shapes;
  for (const std::int64_t padding : {1, 8}) {
    for (const std::int64_t longest : {3, 700, 15000}) {
      random_shape shape{.eod_share = 0.05};
      shape.packed = true;
      shape.longest = longest;
      shape.padding = padding;
      shapes.push_back(shape);
    }
  }
  compare_all(random, {8, 4096, 20000}, shapes, "packed");
}

}  // namespace millrace::test
