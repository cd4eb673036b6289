// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <millrace/loader/cuda/detail/device_pipe.hpp>

#include "gpu/device_sums.hpp"
#include "gpu/harness.hpp"
#include "gpu/host_arena.hpp"
#include "support/fake_cuda/checking_consumer.hpp"
#include "support/fake_cuda/cut_batch.hpp"
#include "support/fake_cuda/pinned_source.hpp"
#include "support/fake_cuda/random_batch.hpp"
#include "support/seed.hpp"

namespace millrace::test {
namespace {

using loader::token_width;
using loader::cuda::batch_rules;
using loader::cuda::device_batch;
using loader::cuda::id_width;
using loader::cuda::wanted_fields;

void compare(std::vector<random_batch> batches, const wanted_fields& fields,
             const batch_rules& rules, host_arena& arena, loader::cuda::stream on,
             const std::string& what) {
  loader::slot_layout largest = batches[0].layout;
  for (const random_batch& batch : batches) {
    if (batch.layout.capacity_bytes() > largest.capacity_bytes()) largest = batch.layout;
  }
  pinned_source source(&gpu_api(), std::move(batches));
  loader::cuda::device_pipe pipe(&gpu_api(), largest, {.fields = fields, .rules = rules},
                                 source.source());
  arena.clear();
  std::vector<brought_back> results;
  for (const device_batch& batch : pipe.on(on)) {
    expect(batch.on_device(), "a batch is not on the device");
    results.emplace_back(arrays_of(batch), batch.cu_seqlens_used(), arena, on);
  }
  loader::cuda::drain(gpu_api(), on);
  expect_equal(results.size(), source.batches().size(), "number of batches, " + what);
  for (std::size_t i = 0; i < results.size(); ++i) {
    expect_same(results[i], source.batches()[i], "batch " + std::to_string(i) + ", " + what);
  }
}

std::string text_of(const batch_rules& rules) {
  return "pad " + std::to_string(rules.pad) + ", eod_mask_loss " +
         std::to_string(static_cast<int>(rules.eod_mask_loss)) + ", positions " +
         std::to_string(static_cast<int>(rules.positions));
}

// Makes the batches of one comparison.
using make_batches =
    std::function<std::vector<random_batch>(std::int64_t seq_len, token_width, const batch_rules&)>;

// Compares batches that the device makes with batches that the host makes. The rows are random and
// have several lengths. All rules and both token widths are tested. The ids on the device have 32
// bits for one half of the cases, and 64 bits for the other half. In half of both, `cu_seqlens` has
// a fixed length. Batches that have no `cu_seqlens` are made without it.
void compare_all(const std::vector<std::int64_t>& lengths, const make_batches& make,
                 const std::string& what) {
  const auto stream = gpu_stream();
  host_arena arena(std::size_t{32} << 20);
  unsigned number = 0;
  for (const batch_rules& rules : all_rules()) {
    for (const auto width : {token_width::u16, token_width::i32}) {
      for (const std::int64_t seq_len : lengths) {
        std::vector<random_batch> batches = make(seq_len, width, rules);
        const loader::slot_layout& layout = batches[0].layout;
        wanted_fields fields{.segment_ids = true};
        fields.cu_seqlens = layout.packed() || !layout.cut();
        fields.ids = number % 2 == 0 ? id_width::i32 : id_width::i64;
        if (number / 2 % 2 != 0) fields.cu_seqlens_size = layout.rows() * seq_len + 10;
        ++number;
        compare(std::move(batches), fields, rules, arena, stream.get().value,
                what + ", seq_len " + std::to_string(seq_len) + ", " +
                    (fields.ids == id_width::i32 ? "int32 ids, " : "int64 ids, ") +
                    "cu_seqlens_size " + std::to_string(fields.cu_seqlens_size) + ", " +
                    text_of(rules));
      }
    }
  }
}

make_batches batches_of(std::mt19937_64& random, std::vector<random_shape> shapes) {
  return [&random, shapes = std::move(shapes)](std::int64_t seq_len, token_width width,
                                               const batch_rules& rules) {
    std::vector<random_batch> batches;
    for (random_shape shape : shapes) {
      shape.seq_len = seq_len;
      shape.width = width;
      shape.masked = random() % 2 == 0;
      batches.push_back(make_random_batch(random, shape, rules));
    }
    return batches;
  };
}

// The parts of the same batches that each rank gets if `cp` ranks share each row.
make_batches parts_of(make_batches whole, std::int64_t cp) {
  return [whole = std::move(whole), cp](std::int64_t seq_len, token_width width,
                                        const batch_rules& rules) {
    std::vector<random_batch> parts;
    for (const random_batch& batch : whole(seq_len, width, rules)) {
      for (std::int64_t rank = 0; rank < cp; ++rank) parts.push_back(cut_batch(batch, cp, rank));
    }
    return parts;
  };
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
  compare_all({1, 31, 4096, 20001, 77}, batches_of(random, std::move(shapes)), "plain");
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
  compare_all({8, 4096, 20000}, batches_of(random, std::move(shapes)), "packed");
}

// Each row, or each document of a packed row, is cut into two chunks per rank.
void makes_the_parts_of_context_parallel_ranks() {
  std::mt19937_64 random(seed(6));
  for (const bool packed : {false, true}) {
    for (const std::int64_t cp : {2, 4}) {
      random_shape shape{.rows = 2, .longest = 500};
      shape.packed = packed;
      shape.padding = 2 * cp;
      compare_all({8, 4096, 20000}, parts_of(batches_of(random, {shape}), cp),
                  std::string(packed ? "packed, " : "plain, ") + std::to_string(cp) + " ranks");
    }
  }
}

}  // namespace millrace::test
