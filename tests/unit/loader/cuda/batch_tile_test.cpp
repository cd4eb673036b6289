// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/cuda/detail/batch_tile.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <millrace/loader/cuda/detail/host_fields.hpp>
#include <millrace/loader/cuda/detail/lone_block.hpp>
#include <millrace/loader/cuda/detail/output_layout.hpp>

#include "support/config_refusal.hpp"
#include "support/fake_cuda/checking_consumer.hpp"
#include "support/fake_cuda/cut_batch.hpp"
#include "support/fake_cuda/random_batch.hpp"
#include "support/fake_cuda/thread_block.hpp"
#include "support/seed.hpp"

namespace millrace::loader::cuda {
namespace {

// Every field that rows of this kind can have. `cu_seqlens_padded` is there in half of the packed
// batches, because it changes `cu_seqlens`.
wanted_fields fields_of(const test::random_batch& batch) {
  const bool packed = batch.layout.packed();
  return {.cu_seqlens = packed || !batch.layout.cut(),
          .cu_seqlens_padded = packed && batch.boundaries % 2 == 0,
          .segment_ids = true};
}

// The device work for a batch, and the memory that this work uses.
struct made {
  explicit made(const test::random_batch& batch) : made(batch, fields_of(batch)) {}
  made(const test::random_batch& batch, const wanted_fields& fields)
      : outputs(batch.layout, fields), memory(outputs.bytes() + 256, std::byte{0xDB}) {
    void* first = memory.data();
    std::size_t room = memory.size();
    std::align(256, outputs.bytes(), first, room);
    // Copy exactly the part of the slot that is in use, so that a sanitizer detects reads past its
    // end.
    slot.assign(batch.slot.begin(), batch.slot.end());
    work = outputs.work(static_cast<std::byte*>(first), slot.data(), batch.layout, batch.boundaries,
                        batch.rules, batch.slices);
  }
  output_layout outputs;
  std::vector<std::byte> memory;
  std::vector<std::byte> slot;
  batch_work work;
};

std::string check(const made& done, const test::random_batch& batch) {
  return test::difference(done.work, batch.boundaries - batch.layout.rows() + 1, batch.expected);
}

std::string text_of(const test::random_shape& shape, const batch_rules& rules) {
  return std::to_string(shape.rows) + " x " + std::to_string(shape.seq_len) +
         (shape.packed ? ", packed" : "") + ", documents up to " + std::to_string(shape.longest) +
         ", eods " + std::to_string(shape.eod_share) + ", positions " +
         std::to_string(static_cast<int>(rules.positions)) + ", pad " + std::to_string(rules.pad);
}

// Returns shapes with plain rows, packed rows, and rows that have more documents than a block has
// threads.
std::vector<test::random_shape> shapes_of(std::int64_t rows, std::int64_t seq_len) {
  std::vector<test::random_shape> result;
  for (const double eods : {0.0, 0.001, 0.2}) {
    for (const std::int64_t longest : {0, 3, 100}) {
      for (const bool packed : {false, true}) {
        test::random_shape shape{.rows = rows, .seq_len = seq_len, .eod_share = eods};
        shape.packed = packed;
        shape.masked = packed;
        shape.longest = longest;
        result.push_back(shape);
      }
    }
  }
  return result;
}

TEST(BatchTile, MakesWhatDatasetMakesOnTheHost) {
  std::mt19937_64 random(test::seed(20261122));
  for (const std::int64_t seq_len : {1, 37, 512, 513, 1101}) {
    for (test::random_shape shape : shapes_of(3, seq_len)) {
      for (const batch_rules& rules : test::all_rules()) {
        shape.width = random() % 2 == 0 ? token_width::u16 : token_width::i32;
        shape.extra_token = random() % 2 == 0;
        shape.masked = random() % 2 == 0;
        const auto batch = test::make_random_batch(random, shape, rules);
        wanted_fields fields = fields_of(batch);
        fields.ids = random() % 2 == 0 ? id_width::i64 : id_width::i32;
        const made done(batch, fields);
        make_batch(done.work);
        ASSERT_EQ(check(done, batch), "") << text_of(shape, rules);
        const made on_host(batch, fields);
        fill_on_host(on_host.work);
        ASSERT_EQ(check(on_host, batch), "") << "fill_on_host, " << text_of(shape, rules);
        ASSERT_EQ(longest_document(on_host.work), batch.expected.max_seqlen);
      }
    }
  }
}

// The result must not depend on the number of threads in a block. A device runs the same code on
// blocks of 256 threads. ThreadSanitizer detects a missing sync().
TEST(BatchTile, DoesNotDependOnHowManyThreadsABlockHas) {
  std::mt19937_64 random(test::seed(7));
  for (const std::int32_t threads : {1, 2, 8, 256}) {
    for (const test::random_shape& shape : shapes_of(2, 2 * tile_tokens + 77)) {
      for (const auto positions : {position_rule::after_eod, position_rule::boundaries}) {
        if (threads == 256 && random() % 4 != 0) continue;  // many threads are slow
        const std::int64_t pad = random() % 2 == 0 ? 7 : -1;
        const batch_rules rules = {
            .eod = 7, .pad = pad, .eod_mask_loss = true, .positions = positions};
        const auto batch = test::make_random_batch(random, shape, rules);
        const made done(batch);
        test::make_by_threads(done.work, threads);
        ASSERT_EQ(check(done, batch), "") << threads << " threads, " << text_of(shape, rules);
      }
    }
  }
}

wanted_fields subset(unsigned bits) {
  wanted_fields fields;
  fields.tokens = (bits & 1) != 0;
  fields.labels = (bits & 2) != 0;
  fields.position_ids = (bits & 4) != 0;
  fields.loss_mask = (bits & 8) != 0;
  fields.cu_seqlens = (bits & 16) != 0;
  fields.segment_ids = (bits & 32) != 0;
  fields.cu_seqlens_padded = (bits & 64) != 0;
  return fields;
}

unsigned arrays_in(const batch_work& work) {
  unsigned bits = 0;
  bits |= work.tokens != nullptr ? 1 : 0;
  bits |= work.labels != nullptr ? 2 : 0;
  bits |= work.position_ids != nullptr ? 4 : 0;
  bits |= work.loss_mask != nullptr ? 8 : 0;
  bits |= work.cu_seqlens != nullptr ? 16 : 0;
  bits |= work.segment_ids != nullptr ? 32 : 0;
  bits |= work.cu_seqlens_padded != nullptr ? 64 : 0;
  return bits;
}

TEST(BatchTile, MakesAnyOfTheFieldsWithoutTheOthers) {
  std::mt19937_64 random(test::seed(11));
  for (unsigned bits = 0; bits < 128; ++bits) {
    for (const auto ids : {id_width::i32, id_width::i64}) {
      for (const batch_rules& rules : test::all_rules()) {
        test::random_shape shape{.rows = 2, .seq_len = 600, .longest = 90};
        shape.packed = bits >= 64 || random() % 2 == 0;
        shape.masked = random() % 2 == 0;
        const auto batch = test::make_random_batch(random, shape, rules);
        wanted_fields fields = subset(bits);
        fields.ids = ids;
        const made done(batch, fields);
        ASSERT_EQ(arrays_in(done.work), bits);
        make_batch(done.work);
        ASSERT_EQ(check(done, batch), "") << bits << ", " << text_of(shape, rules);
        const made on_host(batch, fields);
        fill_on_host(on_host.work);
        ASSERT_EQ(check(on_host, batch), "")
            << "fill_on_host, " << bits << ", " << text_of(shape, rules);
      }
    }
  }
}

// In long rows, a block of threads cannot read back to the last eod. So the places of eods are
// marked in advance.
TEST(BatchTile, MakesLongRows) {
  std::mt19937_64 random(test::seed(128));
  const batch_rules rules = {.eod = 7, .positions = position_rule::after_eod};
  for (const std::int64_t seq_len : {8192, 8193, 131072, 1048576 + 77}) {
    for (const double eods : {0.0, 0.00002, 0.001}) {
      for (const bool packed : {false, true}) {
        if (packed && seq_len > 1000000) continue;  // too slow on one thread
        test::random_shape shape{.rows = 2, .seq_len = seq_len, .eod_share = eods};
        shape.packed = packed;
        shape.masked = packed;
        shape.longest = packed ? seq_len / 3 : 0;
        const auto batch = test::make_random_batch(random, shape, rules);
        const made done(batch);
        EXPECT_EQ(needs_marks(done.work), seq_len > 8192);
        make_batch(done.work);
        ASSERT_EQ(check(done, batch), "") << text_of(shape, rules);
        if (seq_len > 200000) continue;
        const made by_threads(batch);
        test::make_by_threads(by_threads.work, 8);
        ASSERT_EQ(check(by_threads, batch), "") << "8 threads, " << text_of(shape, rules);
      }
    }
  }
}

/// A batch of a context-parallel rank, and a description of it for messages.
struct cut_case {
  test::random_batch batch;
  std::string text;
};

cut_case make_cut(std::mt19937_64& random, std::int64_t cp, std::int64_t seq_len, double eods,
                  const batch_rules& rules) {
  test::random_shape shape{.rows = 2, .seq_len = 2 * cp * seq_len, .eod_share = eods};
  constexpr std::int64_t longest[] = {0, 30, 700};
  shape.longest = longest[random() % 3];
  shape.packed = random() % 2 == 0;
  shape.padding = 2 * cp;
  shape.extra_token = random() % 2 == 0;
  shape.masked = random() % 2 == 0;
  shape.width = random() % 2 == 0 ? token_width::u16 : token_width::i32;
  const auto rank = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(cp));
  return {
      test::cut_batch(test::make_random_batch(random, shape, rules), cp, rank),
      "rank " + std::to_string(rank) + " of " + std::to_string(cp) + ", " + text_of(shape, rules)};
}

// A context-parallel rank must get the same fields as whole rows have at the rank's places.
TEST(CutBatchTile, MakesTheRanksPartOfWholeRows) {
  std::mt19937_64 random(test::seed(41));
  for (const std::int64_t cp : {2, 3, 4}) {
    for (const std::int64_t chunk : {1, 2, 9, 150, 500}) {
      for (const double eods : {0.0, 0.01, 0.3}) {
        for (const batch_rules& rules : test::all_rules()) {
          const cut_case cut = make_cut(random, cp, chunk, eods, rules);
          wanted_fields fields = fields_of(cut.batch);
          fields.ids = random() % 2 == 0 ? id_width::i64 : id_width::i32;
          const made done(cut.batch, fields);
          make_batch(done.work);
          ASSERT_EQ(check(done, cut.batch), "") << cut.text;
          const made on_host(cut.batch, fields);
          fill_on_host(on_host.work);
          ASSERT_EQ(check(on_host, cut.batch), "") << "fill_on_host, " << cut.text;
          ASSERT_EQ(longest_document(on_host.work), cut.batch.expected.max_seqlen) << cut.text;
        }
      }
    }
  }
}

TEST(CutBatchTile, DoesNotDependOnHowManyThreadsABlockHas) {
  std::mt19937_64 random(test::seed(42));
  for (const std::int32_t threads : {2, 8, 256}) {
    for (int round = 0; round < (threads == 256 ? 8 : 40); ++round) {
      const batch_rules rules = test::all_rules()[random() % 18];
      const cut_case cut = make_cut(random, 2 + round % 3, tile_tokens / 2 + 77, 0.01, rules);
      const made done(cut.batch, fields_of(cut.batch));
      test::make_by_threads(done.work, threads);
      ASSERT_EQ(check(done, cut.batch), "") << threads << " threads, " << cut.text;
    }
  }
}

// These rows are long even after they are cut, so the places of eods are marked in advance.
TEST(CutBatchTile, MakesLongRows) {
  std::mt19937_64 random(test::seed(43));
  for (const double eods : {0.0, 0.0001, 0.01}) {
    for (int round = 0; round < 6; ++round) {
      const batch_rules rules = {.eod = 7, .positions = position_rule::after_eod};
      const cut_case cut = make_cut(random, 2 + round % 2, 6000, eods, rules);
      const made done(cut.batch, fields_of(cut.batch));
      EXPECT_TRUE(needs_marks(done.work));
      make_batch(done.work);
      ASSERT_EQ(check(done, cut.batch), "") << cut.text;
    }
  }
}

// If the pad id is `eod`, padding restarts positions. If it is another id, padding never restarts
// them, even if its stored bytes look like an eod. Both hold at any distance between the padding
// and the tile.
TEST(BatchTile, RestartsPositionsInPaddingAsDatasetDoes) {
  std::mt19937_64 random(test::seed(3));
  for (const std::int64_t seq_len : {2000, 9000}) {
    for (const std::int64_t pad : {7, 11, -1}) {
      for (const bool packed : {false, true}) {
        for (int round = 0; round < 10; ++round) {
          // The stored padding contains eods, which must not be read.
          test::random_shape shape{.rows = 3, .seq_len = seq_len, .eod_share = 0.01};
          shape.packed = packed;
          shape.masked = packed;
          const batch_rules rules = {.eod = 7, .pad = pad, .positions = position_rule::after_eod};
          const auto batch = test::make_random_batch(random, shape, rules);
          const made done(batch);
          make_batch(done.work);
          ASSERT_EQ(check(done, batch), "") << text_of(shape, rules);
        }
      }
    }
  }
}

// Consumers that need static shapes request a fixed number of boundaries.
TEST(BatchTile, RepeatsTheLastBoundaryUpToAFixedSize) {
  std::mt19937_64 random(test::seed(5));
  for (const bool packed : {false, true}) {
    for (const std::int64_t more : {0, 1, 700, 5000}) {
      test::random_shape shape{.rows = 3, .seq_len = 700, .longest = 40};
      shape.packed = packed;
      const auto batch = test::make_random_batch(random, shape, {});
      wanted_fields fields = fields_of(batch);
      fields.cu_seqlens_size = batch.boundaries - 3 + 1 + more;
      const made done(batch, fields);
      ASSERT_EQ(done.work.cu_seqlens_size, fields.cu_seqlens_size);
      make_batch(done.work);
      EXPECT_EQ(check(done, batch), "") << more << " entries more";
      const made on_host(batch, fields);
      fill_on_host(on_host.work);
      EXPECT_EQ(check(on_host, batch), "") << "fill_on_host, " << more << " entries more";
      const made by_threads(batch, fields);
      test::make_by_threads(by_threads.work, 8);
      EXPECT_EQ(check(by_threads, batch), "") << "8 threads, " << more << " entries more";
    }
  }
}

// A block whose first thread counts the rounds of searches. In each round, all threads compare one
// value each.
class counting_block : public test::thread_block {
 public:
  counting_block(std::int32_t rank, test::block_state& shared, std::int64_t& rounds)
      : thread_block(rank, shared), rounds_(&rounds) {}
  std::int32_t largest(std::int32_t value) {
    if (rank() == 0) ++*rounds_;
    return thread_block::largest(value);
  }

 private:
  std::int64_t* rounds_;
};

// Makes the first row with blocks of 256 threads, as on a device. Returns the rounds of searches of
// each tile.
std::vector<std::int64_t> rounds_of_tiles(const batch_work& work) {
  constexpr std::int32_t threads = 256;
  std::vector<std::int64_t> rounds(static_cast<std::size_t>(tiles_of(work)));
  test::block_state shared(threads);
  std::vector<std::jthread> all;
  for (std::int32_t rank = 0; rank < threads; ++rank) {
    all.emplace_back([&, rank] {
      for (std::int32_t tile = 0; tile < tiles_of(work); ++tile) {
        counting_block block(rank, shared, rounds[static_cast<std::size_t>(tile)]);
        make_tile<std::uint16_t, std::int64_t>(block, work, 0, tile);
        block.sync();  // the next tile uses the same memory
      }
    });
  }
  all.clear();  // waits for the threads
  return rounds;
}

// Fewer blocks would leave most multiprocessors idle, and more would repeat more work. An H100 has
// 132 multiprocessors.
TEST(BatchTile, TakesABlockPerTileAndOneLaunchForUsualRows) {
  std::mt19937_64 random(test::seed(61));
  const batch_rules rules = {.eod = 7, .positions = position_rule::after_eod};
  const made done(test::make_random_batch(random, {.rows = 8, .seq_len = 4096}, rules));
  const std::int64_t blocks = done.work.rows * tiles_of(done.work);
  EXPECT_GE(blocks, 64);
  EXPECT_LE(blocks, 128);
  EXPECT_FALSE(needs_marks(done.work)) << "that would be a second launch";
}

// A block looks for its first document once per tile, not once per token. 256 threads find it in
// one round among up to 65,536 documents. Then it may look back for the last eod, in at most two
// rounds in a row of 4,096 tokens.
TEST(BatchTile, SearchesOncePerTile) {
  std::mt19937_64 random(test::seed(62));
  for (const bool packed : {false, true}) {
    for (const auto positions : {position_rule::boundaries, position_rule::after_eod}) {
      const batch_rules rules = {.eod = 7, .positions = positions};
      test::random_shape shape{.rows = 1, .seq_len = 4096, .eod_share = 0, .short_rows = false};
      shape.packed = packed;
      shape.longest = 5;
      shape.padding = 1;
      const auto batch = test::make_random_batch(random, shape, rules);
      ASSERT_GT(batch.boundaries, 1000) << "many documents per tile";
      const made done(batch);
      const std::vector<std::int64_t> rounds = rounds_of_tiles(done.work);
      EXPECT_EQ(check(done, batch), "") << text_of(shape, rules);
      const std::int64_t most = positions == position_rule::after_eod ? 3 : 1;
      EXPECT_THAT(rounds, testing::Each(testing::AllOf(testing::Ge(1), testing::Le(most))))
          << text_of(shape, rules);
    }
  }
}

// These expected values were written by hand, so that they do not depend on code of this project.
TEST(BatchTile, NumbersDocumentsFromOneAndPaddingZero) {
  const std::vector<std::uint16_t> text = {5, 6, 7, 0, 8, 9, 0, 0};
  const std::vector<std::int32_t> real = {8};
  const std::vector<std::int32_t> begin = {0, 3};
  const std::vector<std::int32_t> boundaries = {0, 4, 8};
  const std::vector<std::int32_t> ends = {0, 3, 6};
  std::vector<std::int32_t> found(8, -5);
  std::vector<std::int32_t> tokens(8, -5);
  std::vector<std::int32_t> cu_seqlens(5, -5);
  batch_work work;
  work.text = text.data();
  work.real = real.data();
  work.boundary_begin = begin.data();
  work.boundaries = boundaries.data();
  work.document_ends = ends.data();
  work.rows = 1;
  work.seq_len = work.text_len = 8;
  work.boundary_count = 3;
  work.ids = id_width::i32;
  work.tokens = tokens.data();
  work.segment_ids = found.data();
  work.cu_seqlens = cu_seqlens.data();
  work.cu_seqlens_size = 5;
  for (const bool by_tile : {true, false}) {
    for (auto* array : {&found, &tokens, &cu_seqlens}) array->assign(array->size(), -5);
    by_tile ? make_batch(work) : fill_on_host(work);
    EXPECT_EQ(found, (std::vector<std::int32_t>{1, 1, 1, 0, 2, 2, 0, 0}));
    EXPECT_EQ(tokens, (std::vector<std::int32_t>{5, 6, 7, 0, 8, 9, 0, 0}));
    EXPECT_EQ(cu_seqlens, (std::vector<std::int32_t>{0, 4, 8, 8, 8}));
  }
}

// Attention kernels need documents that can be divided among all context-parallel ranks.
TEST(OutputLayout, RefusesBoundariesOfRowsThatAreCutAndNotPacked) {
  const slot_layout cut(1, 8, false, token_width::u16, false, 2);
  EXPECT_NO_THROW(output_layout(cut, {.cu_seqlens = false}));
  EXPECT_NO_THROW(output_layout(slot_layout(1, 8, false, token_width::u16, true, 2), {}));
  EXPECT_THAT(test::config_refusal([&] { output_layout(cut, {}); }),
              testing::StartsWith("fields.cu_seqlens is true with a context_parallel of 2, but the "
                                  "rows are not packed"));
  const slot_layout whole(1, 8, false, token_width::u16);
  EXPECT_THAT(test::config_refusal([&] { output_layout(whole, {.cu_seqlens_padded = true}); }),
              testing::StartsWith("fields.cu_seqlens_padded is true, but the rows are not packed"));
}

TEST(OutputLayout, RefusesASizeThatNoBoundariesHave) {
  const slot_layout largest(1, 8, true, token_width::u16);
  EXPECT_NO_THROW(output_layout(largest, {.cu_seqlens_size = 2}));
  try {
    (void)output_layout(largest, {.cu_seqlens_size = 1});
    ADD_FAILURE() << "nothing was thrown";
  } catch (const config_error& e) {
    EXPECT_STREQ(e.what(), "cu_seqlens_size is 1, expected 0 or 2 to 2147483648");
  }
}

}  // namespace
}  // namespace millrace::loader::cuda
