// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/cuda/detail/batch_tile.hpp>

#include <gtest/gtest.h>

#include <barrier>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <millrace/dataset/detail/packing/packed_sample.hpp>
#include <millrace/loader/cuda/detail/host_fields.hpp>
#include <millrace/loader/cuda/detail/lone_block.hpp>
#include <millrace/loader/cuda/detail/output_layout.hpp>

#include "support/fake_cuda/checking_consumer.hpp"
#include "support/fake_cuda/random_batch.hpp"
#include "support/seed.hpp"

namespace millrace::loader::cuda {
namespace {

// Models a thread block on a device: its threads run the same code and meet at sync().
class thread_block {
 public:
  thread_block(std::int64_t rank, std::int64_t size, std::barrier<>& meet,
               std::vector<std::int32_t>& shared)
      : rank_(rank), size_(size), meet_(&meet), shared_(&shared) {}
  std::int64_t size() const { return size_; }
  std::int64_t rank() const { return rank_; }
  void sync() { meet_->arrive_and_wait(); }
  std::int32_t* shared() { return shared_->data(); }

 private:
  std::int64_t rank_;
  std::int64_t size_;
  std::barrier<>* meet_;
  std::vector<std::int32_t>* shared_;
};

// Makes the whole batch with blocks of `threads` threads, one block after another.
void make_by_threads(const batch_work& work, std::int64_t threads) {
  std::vector<std::int32_t> shared(static_cast<std::size_t>(shared_integers(threads)));
  std::barrier<> meet(threads);
  std::vector<std::jthread> all;
  for (std::int64_t rank = 0; rank < threads; ++rank) {
    all.emplace_back([&, rank] {
      thread_block block(rank, threads, meet, shared);
      for (std::int64_t row = 0; row < work.rows; ++row) {
        for (std::int64_t tile = 0; tile < tiles_of(work); ++tile) {
          if (work.narrow) {
            make_tile<std::uint16_t>(block, work, row, tile);
          } else {
            make_tile<std::int32_t>(block, work, row, tile);
          }
          block.sync();  // the next block reuses the memory
        }
      }
    });
  }
}

// The description of a batch's device work, and its memory.
struct made {
  explicit made(const test::random_batch& batch)
      : outputs(batch.layout, {}), memory(outputs.bytes() + 256, std::byte{0xDB}) {
    void* first = memory.data();
    std::size_t room = memory.size();
    std::align(256, outputs.bytes(), first, room);
    // The copy is exactly as long as the part in use, so that a sanitizer detects reads past its
    // end.
    slot.assign(batch.slot.begin(), batch.slot.end());
    work = outputs.work(static_cast<std::byte*>(first), slot.data(), batch.layout, batch.boundaries,
                        batch.rules);
  }
  output_layout outputs;
  std::vector<std::byte> memory;
  std::vector<std::byte> slot;
  batch_work work;
};

std::string check(const made& done, const test::random_batch& batch) {
  return test::difference(done.work, batch.boundaries - batch.layout.rows() + 1, batch.expected);
}

std::vector<test::random_shape> shapes() {
  std::vector<test::random_shape> result;
  for (const token_width width : {token_width::u16, token_width::i32}) {
    for (const bool extra : {true, false}) {
      for (const double eods : {0.0, 0.001, 0.2}) {
        result.push_back({1, 1, extra, width, eods});
        result.push_back({5, 37, extra, width, eods});
        // Three tiles, the last of which is partial.
        result.push_back({2, 2 * tile_tokens + 77, extra, width, eods});
      }
    }
  }
  return result;
}

TEST(BatchTile, MakesWhatDatasetMakesOnTheHost) {
  std::mt19937_64 random(test::seed(20261122));
  for (const test::random_shape& shape : shapes()) {
    for (const batch_rules& rules : test::all_rules()) {
      const auto batch = test::make_random_batch(random, shape, rules);
      const made done(batch);
      make_batch(done.work);
      ASSERT_EQ(check(done, batch), "")
          << shape.rows << " x " << shape.seq_len << ", positions "
          << static_cast<int>(rules.positions) << ", pad " << rules.pad;
      const made on_host(batch);
      fill_on_host(on_host.work);
      ASSERT_EQ(check(on_host, batch), "") << "fill_on_host";
      ASSERT_EQ(longest_document(on_host.work), batch.expected.max_seqlen);
    }
  }
}

// The result does not depend on the number of threads in a block. The device runs the same code on
// its threads, and ThreadSanitizer detects a missing sync().
TEST(BatchTile, DoesNotDependOnHowManyThreadsABlockHas) {
  std::mt19937_64 random(test::seed(7));
  for (const std::int64_t threads : {1, 2, 8}) {
    for (const position_rule positions : {position_rule::after_eod, position_rule::boundaries}) {
      const batch_rules rules = {.eod = 7, .eod_mask_loss = true, .positions = positions};
      for (const double eods : {0.0003, 0.1}) {
        const auto batch = test::make_random_batch(
            random, {2, 2 * tile_tokens + 77, true, token_width::u16, eods}, rules);
        const made done(batch);
        make_by_threads(done.work, threads);
        ASSERT_EQ(check(done, batch), "") << threads << " threads";
      }
    }
  }
}

// Packed rows equal those that `dataset` makes: each document is a text of its own, including its
// padding.
TEST(BatchTile, MakesPackedRowsAsDatasetDoes) {
  std::mt19937_64 random(test::seed(99));
  for (int round = 0; round < 60; ++round) {
    constexpr std::int64_t pad_to = 4;
    const std::int64_t seq_len = 4 * static_cast<std::int64_t>(1 + random() % 40);
    std::vector<dataset::packed_part> parts;
    for (std::int64_t left = seq_len; left > 0;) {
      dataset::packed_part part{};
      part.tokens = 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(left));
      left -= dataset::share_of(part, pad_to);
      parts.push_back(part);
      if (random() % 4 == 0) break;
    }
    for (const batch_rules& rules : test::all_rules()) {
      std::vector<std::uint16_t> text(static_cast<std::size_t>(seq_len));
      for (auto& token : text) token = static_cast<std::uint16_t>(random() % 3 == 0 ? 7 : random());
      std::vector<std::int32_t> joined(text.size() + 1);
      const auto size = dataset::fill_packed_cu_seqlens(parts, seq_len, pad_to, joined);
      std::vector<std::int32_t> ends = {0};
      std::int32_t at = 0;
      for (const auto& part : parts) {
        ends.push_back(at + static_cast<std::int32_t>(part.tokens));
        at += static_cast<std::int32_t>(dataset::share_of(part, pad_to));
      }
      const std::vector<std::int32_t> real = {static_cast<std::int32_t>(seq_len)};
      const std::vector<std::int32_t> begin = {0, static_cast<std::int32_t>(size.entries)};

      test::expected_fields expected;
      expected.tokens.resize(text.size());
      expected.labels.resize(text.size());
      expected.position_ids.resize(text.size());
      expected.loss_mask.resize(text.size());
      dataset::field_options options;
      options.extra_token = false;
      options.eod = rules.eod;
      options.pad = rules.pad;
      options.eod_mask_loss = rules.eod_mask_loss;
      options.reset_position_ids = rules.positions == position_rule::after_eod;
      const dataset::sample_fields<std::int64_t> fields = {
          expected.tokens, expected.labels, expected.loss_mask, expected.position_ids};
      dataset::fill_packed_fields<std::uint16_t, std::int64_t>(text, parts, pad_to, options,
                                                               fields);
      expected.cu_seqlens.assign(joined.begin(), joined.begin() + size.entries);

      for (const bool by_tile : {true, false}) {
        test::expected_fields found = expected;
        for (auto* array : {&found.tokens, &found.labels, &found.position_ids}) {
          array->assign(array->size(), -5);
        }
        found.loss_mask.assign(found.loss_mask.size(), -5.0F);
        found.cu_seqlens.assign(found.cu_seqlens.size(), -5);
        batch_work work;
        work.text = text.data();
        work.real = real.data();
        work.boundary_begin = begin.data();
        work.boundaries = joined.data();
        work.document_ends = ends.data();
        work.rows = 1;
        work.seq_len = seq_len;
        work.text_len = seq_len;
        work.rules = rules;
        work.tokens = found.tokens.data();
        work.labels = found.labels.data();
        work.position_ids = found.position_ids.data();
        work.loss_mask = found.loss_mask.data();
        work.cu_seqlens = found.cu_seqlens.data();
        by_tile ? make_batch(work) : fill_on_host(work);
        ASSERT_EQ(test::difference(work, size.entries, expected), "")
            << "by_tile " << by_tile << ", round " << round;
      }
    }
  }
}

}  // namespace
}  // namespace millrace::loader::cuda
