// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/packing/packed_rows.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/dataset/detail/packing/row_plan.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/formats/detail/crc32c.hpp>
#include <millrace/formats/rows.hpp>
#include <millrace/formats/sum.hpp>

#include "support/paths.hpp"
#include "support/seed.hpp"
#include "unit/dataset/packing/naive_packing.hpp"
#include "unit/dataset/write_dataset.hpp"

namespace millrace::dataset {
namespace {

using testing::HasSubstr;

/// Writes an index with one sequence per document. The `.bin` is a sparse file of the right size.
void write_lengths(const std::filesystem::path& prefix, const std::vector<std::int64_t>& lengths) {
  std::vector<std::int32_t> sequences;
  std::vector<std::int64_t> ends = {0};
  std::uint64_t tokens = 0;
  for (const std::int64_t length : lengths) {
    sequences.push_back(static_cast<std::int32_t>(length));
    ends.push_back(static_cast<std::int64_t>(sequences.size()));
    tokens += static_cast<std::uint64_t>(length);
  }
  test::write_bytes(test::suffixed(prefix, ".idx"),
                    formats::encode_mmidx(formats::dtype::uint16, sequences, ends));
  test::write_text(test::suffixed(prefix, ".bin"), "");
  std::filesystem::resize_file(test::suffixed(prefix, ".bin"), 2 * tokens);
}

class PackedRows : public testing::Test {
 protected:
  void SetUp() override {
    std::mt19937_64 random(test::seed(4));
    for (int d = 0; d < 9000; ++d) {  // two blocks and a short one
      lengths_.push_back(static_cast<std::int64_t>(random() % (random() % 50 == 0 ? 300 : 60)));
    }
    write_lengths(prefix_, lengths_);
  }

  static std::vector<std::vector<packed_part>> all(const packed_rows& rows) {
    std::vector<std::vector<packed_part>> found(static_cast<std::size_t>(rows.row_count()));
    for (std::size_t r = found.size(); r-- > 0;) rows.row(static_cast<std::int64_t>(r), found[r]);
    return found;
  }

  /// Writes a `.sum` next to the dataset; its checksum `crc` may be wrong.
  void write_sum(std::uint32_t crc) {
    const auto bin = std::filesystem::file_size(test::suffixed(prefix_, ".bin"));
    const auto idx = std::filesystem::file_size(test::suffixed(prefix_, ".idx"));
    test::write_bytes(
        test::suffixed(prefix_, ".sum"),
        formats::encode_sum(bin, std::vector<std::uint32_t>(formats::sum_block_count(bin), crc),
                            idx, std::vector<std::uint32_t>(formats::sum_block_count(idx), crc)));
  }

  test::temp_folder folder_;
  std::filesystem::path prefix_ = folder_ / "data";
  std::vector<std::int64_t> lengths_;
};

TEST_F(PackedRows, AreThoseOfANaiveModelWhateverTheThreads) {
  const index_columns data(prefix_);
  for (const std::int64_t multiple : {1, 8}) {
    const auto expected = test::naive_rows(lengths_, 128, multiple);
    for (const int threads : {1, 2, 5}) {
      const packed_rows rows(data,
                             {.seq_len = 128, .pad_documents_to = multiple, .threads = threads});
      ASSERT_EQ(all(rows), expected);
      const auto report = rows.report();
      EXPECT_EQ(report.documents, 9000);
      std::int64_t tokens = 0;
      for (const std::int64_t length : lengths_) tokens += length;
      EXPECT_EQ(report.tokens, tokens);
      EXPECT_EQ(report.padding, 128 * static_cast<std::int64_t>(expected.size()) - tokens);
      EXPECT_LT(report.padding_share(), 0.5);
    }
  }
}

/// The rows of a plan over the shares of documents [first, last).
std::vector<std::vector<packed_part>> planned_rows(const packing_options& of,
                                                   const std::vector<std::int64_t>& lengths) {
  const std::int64_t last = of.last_document == -1 ? std::ssize(lengths) : of.last_document;
  std::vector<std::int64_t> shares;
  for (std::int64_t d = of.first_document; d < last; ++d) {
    const std::int64_t unit = of.pad_documents_to;
    shares.push_back((lengths[static_cast<std::size_t>(d)] + unit - 1) / unit * unit);
  }
  const row_plan plan({of.algorithm, of.seq_len, of.seed}, std::ssize(shares),
                      [&](std::int64_t from, std::int64_t to, std::vector<std::int64_t>& out) {
                        out.assign(shares.begin() + from, shares.begin() + to);
                      });
  std::vector<std::vector<packed_part>> rows;
  for (std::int64_t row = 0; row < plan.row_count(); ++row) {
    auto& parts = rows.emplace_back();
    for (const std::int64_t d : plan.documents_of(row)) {
      const std::int64_t document = of.first_document + d;
      parts.push_back({document, 0, lengths[static_cast<std::size_t>(document)]});
    }
  }
  return rows;
}

TEST_F(PackedRows, AreThoseOfAPlanIfDocumentsArePackedAtOnce) {
  for (const packing_algorithm algorithm :
       {packing_algorithm::first_fit_decreasing, packing_algorithm::first_fit_shuffle,
        packing_algorithm::modified_first_fit_decreasing}) {
    for (const std::int64_t multiple : {1, 8}) {
      for (const std::int64_t last : {-1, 5000}) {
        const packing_options options{.seq_len = 128,
                                      .pad_documents_to = multiple,
                                      .first_document = last == -1 ? 0 : 11,
                                      .last_document = last,
                                      .algorithm = algorithm,
                                      .seed = 3};
        const auto expected = planned_rows(options, lengths_);
        for (const index_access access : {index_access::pread, index_access::map_with_read_ahead}) {
          const index_columns data(prefix_, access);
          const packed_rows rows(data, options);
          ASSERT_EQ(all(rows), expected);
          const packed_rows shared(data, options, {}, rows.plan());
          EXPECT_EQ(all(shared), expected);
          std::int64_t tokens = 0;
          std::int64_t overlong = 0;
          const std::int64_t end = last == -1 ? 9000 : last;
          for (std::int64_t d = options.first_document; d < end; ++d) {
            const std::int64_t length = lengths_[static_cast<std::size_t>(d)];
            const bool is_long = length > 128;
            tokens += is_long ? 0 : length;
            overlong += is_long ? 1 : 0;
            const auto in = rows.rows_of(d);
            ASSERT_EQ(in.size(), is_long || length == 0 ? 0 : 1);
            if (in.empty()) continue;
            const auto& row = expected[static_cast<std::size_t>(in[0])];
            EXPECT_EQ(std::ranges::count(row, d, &packed_part::document), 1);
          }
          const auto report = rows.report();
          EXPECT_EQ(report.rows, std::ssize(expected));
          EXPECT_EQ(report.documents, end - options.first_document);
          EXPECT_EQ(report.tokens, tokens);
          EXPECT_EQ(report.padding, 128 * report.rows - tokens);
          EXPECT_EQ(report.left_out, overlong);
          EXPECT_GT(overlong, 0);
        }
      }
    }
  }
}

TEST_F(PackedRows, NoticeADatasetThatChangedUnderAPlan) {
  const packing_options options{.seq_len = 128,
                                .algorithm = packing_algorithm::modified_first_fit_decreasing};
  packed_rows::plan_pointer plan;
  {
    const index_columns data(prefix_);
    plan = packed_rows(data, options).plan();
  }
  for (auto& each : lengths_) each = 100;
  write_lengths(prefix_, lengths_);
  const index_columns data(prefix_);
  const packed_rows rows(data, options, {}, plan);
  try {
    (void)all(rows);
    ADD_FAILURE() << "not noticed";
  } catch (const format_error& e) {
    EXPECT_THAT(e.what(), HasSubstr("has 100 tokens, which do not fit into its row: the dataset "
                                    "has changed since its documents were packed"));
  }
}

// If the file system refuses mmap, the rows are the same.
TEST_F(PackedRows, AreTheSameWithoutAMap) {
  const index_columns data(prefix_, index_access::pread);
  ASSERT_FALSE(data.is_mapped());
  const auto expected = test::naive_rows(lengths_, 128, 8);
  const index_columns mapped(prefix_, index_access::map_with_read_ahead);
  for (const int threads : {1, 5}) {
    const packing_options options{.seq_len = 128, .pad_documents_to = 8, .threads = threads};
    const packed_rows rows(data, options);
    ASSERT_EQ(all(rows), expected);
    const packed_rows there(mapped, options);
    EXPECT_EQ(rows.report().tokens, there.report().tokens);
    for (std::int64_t d = 0; d < 9000; d += 100) EXPECT_EQ(rows.rows_of(d), there.rows_of(d));
  }
}

// Tables made with and without mmap are identical. Columns with mmap accept tables made without
// mmap, and vice versa, because the checksum of the lengths does not depend on how the lengths are
// read. The number of documents is so large that lengths are read in parts.
TEST_F(PackedRows, HaveTheSameTableWithoutAMap) {
  for (int i = 0; i < 300'000; ++i) lengths_.push_back(i % 7);
  write_lengths(prefix_, lengths_);
  const indexed_dataset whole(prefix_);
  const index_columns of_dataset(whole);
  const index_columns mapped(prefix_);
  const index_columns read(prefix_, index_access::pread);
  const packing_options options{.seq_len = 128};
  std::vector<std::byte> table;
  for (const index_columns* maker : {&of_dataset, &mapped, &read}) {
    const auto path = folder_ / "table";
    EXPECT_FALSE(open_row_table(*maker, options, path).was_cached);
    if (table.empty()) table = test::read_bytes(path);
    EXPECT_EQ(test::read_bytes(path), table);
    for (const index_columns* user : {&of_dataset, &mapped, &read}) {
      EXPECT_TRUE(open_row_table(*user, options, path).was_cached);
    }
    std::filesystem::remove(path);
  }
  const formats::mmidx_view& idx = whole.index();
  EXPECT_EQ(formats::parse_rows(table).header.idx_crc,
            formats::crc32c(idx.document_index.bytes(), formats::crc32c(idx.lengths.bytes())));
}

TEST_F(PackedRows, SayThatAnIndexBecameShorter) {
  const index_columns data(prefix_, index_access::pread);
  const packed_rows before(data, {.seq_len = 128});
  const auto refused = [&](auto&& work) {
    try {
      work();
      ADD_FAILURE() << "not refused";
    } catch (const format_error& e) {
      EXPECT_THAT(e.what(), HasSubstr("data.idx: the file became shorter while it was in use"));
    }
  };
  // Truncates the index so that the entries of the last documents are missing.
  std::filesystem::resize_file(test::suffixed(prefix_, ".idx"),
                               std::filesystem::file_size(test::suffixed(prefix_, ".idx")) - 100);
  EXPECT_NO_THROW((void)before.rows_of(0));
  refused([&] { (void)before.rows_of(8999); });
  for (const int threads : {1, 4}) {
    refused([&] { packed_rows(data, {.seq_len = 128, .threads = threads}); });
    refused([&] { packed_rows(data, {.seq_len = 128, .threads = threads}, folder_ / "table"); });
    EXPECT_FALSE(std::filesystem::exists(folder_ / "table"));
  }
}

TEST_F(PackedRows, OfARangeAreOfItsDocuments) {
  const index_columns data(prefix_);
  const packed_rows rows(data, {.seq_len = 64, .first_document = 100, .last_document = 4300});
  EXPECT_EQ(all(rows), test::naive_rows(lengths_, 64, 1, 100, 4300));
  EXPECT_EQ(packed_rows(data, {.seq_len = 64, .first_document = 5, .last_document = 5}).row_count(),
            0);
  const auto refused = [&](std::int64_t first, std::int64_t last) {
    EXPECT_THROW(packed_rows(data, {.seq_len = 64, .first_document = first, .last_document = last}),
                 config_error);
  };
  refused(-1, 5);
  refused(6, 5);
  refused(0, 9001);
}

TEST_F(PackedRows, KnowWhereADocumentIs) {
  const index_columns data(prefix_);
  const packed_rows rows(data, {.seq_len = 100});
  const auto expected = all(rows);
  for (std::int64_t d = 0; d < 9000; d += 7) {
    std::vector<std::int64_t> naive;
    for (std::size_t r = 0; r < expected.size(); ++r) {
      if (std::ranges::count(expected[r], d, &packed_part::document) != 0) {
        naive.push_back(static_cast<std::int64_t>(r));
      }
    }
    auto found = rows.rows_of(d);
    std::ranges::sort(found);
    ASSERT_EQ(found, naive) << d;
  }
}

TEST_F(PackedRows, AreTheSameFromManyThreads) {
  const index_columns data(prefix_);
  const packed_rows rows(data, {.seq_len = 128});
  const auto expected = test::naive_rows(lengths_, 128, 1);
  std::vector<std::jthread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      std::vector<packed_part> parts;
      for (int i = 0; i < 500; ++i) {
        const std::size_t r = random() % expected.size();
        rows.row(static_cast<std::int64_t>(r), parts);
        EXPECT_EQ(parts, expected[r]);
      }
    });
  }
}

TEST(PackedOrder, ServesAllRowsEachEpochAndFindsThemAgain) {
  struct reversed {  // the order of each epoch is reversed, and shifted by `epoch`
    std::int64_t operator()(std::int64_t i) const { return (9 - i + epoch) % 10; }
    std::int64_t inverse(std::int64_t row) const { return ((9 - row + epoch) % 10 + 10) % 10; }
    std::int64_t epoch;
  };
  const packed_order order(10, [](std::int64_t epoch) { return reversed{epoch}; });
  EXPECT_EQ(order.samples_per_epoch(), 10);
  EXPECT_EQ(order[0], (packed_place{0, 9}));
  EXPECT_EQ(order[10], (packed_place{1, 0}));
  EXPECT_EQ(order[13], (packed_place{1, 7}));
  for (std::int64_t k = 0; k < 35; ++k) EXPECT_EQ(order.position(order[k]), k);
  EXPECT_EQ((packed_order<unshuffled>(3, {})[7]), (packed_place{2, 1}));
  EXPECT_THROW(packed_order<unshuffled>(0, {}), config_error);
}

TEST_F(PackedRows, KeepTheirTableBesideTheIndex) {
  const index_columns data(prefix_);
  const packing_options options{.seq_len = 128};
  const auto path = row_table_path(data, options);
  EXPECT_EQ(path, folder_ / "data.rows-128");
  const packed_rows first(data, options, path);
  EXPECT_FALSE(first.table().was_cached);
  EXPECT_EQ(first.table().not_written, "");
  const packed_rows second(data, options, path);
  EXPECT_TRUE(second.table().was_cached);
  EXPECT_EQ(second.table().ends, first.table().ends);
  EXPECT_EQ(second.report().tokens, first.report().tokens);
  EXPECT_EQ(all(second), all(first));
  EXPECT_EQ(row_table_path(data, {.seq_len = 128, .pad_documents_to = 16}),
            folder_ / "data.rows-128-16");
  EXPECT_EQ(row_table_path(data, {.seq_len = 128, .last_document = 7}),
            folder_ / "data.rows-128-1-0-7");
}

TEST_F(PackedRows, NeverTrustATableThatDoesNotFit) {
  const packing_options options{.seq_len = 128};
  const auto table = folder_ / "table";
  std::string why;
  const auto was_cached = [&](const packing_options& asked) {
    const index_columns data(prefix_);
    const packed_rows rows(data, asked, table);
    why = rows.table().not_used;
    EXPECT_EQ(rows.table().was_cached && !why.empty(), false);
    return rows.table().was_cached;
  };
  EXPECT_FALSE(was_cached(options));
  EXPECT_EQ(why, "") << "there was no table";
  EXPECT_TRUE(was_cached(options));
  EXPECT_FALSE(was_cached({.seq_len = 64}));
  EXPECT_EQ(why, table.string() + ": seq_len is 128, expected 64 (at byte 16)");
  EXPECT_FALSE(was_cached({.seq_len = 64, .pad_documents_to = 2}));
  EXPECT_FALSE(was_cached({.seq_len = 64, .pad_documents_to = 2, .last_document = 10}));
  EXPECT_FALSE(was_cached(options));

  // The total size is the same, but lengths differ.
  std::swap(lengths_[10], lengths_[8000]);
  ASSERT_NE(lengths_[10], lengths_[8000]);
  write_lengths(prefix_, lengths_);
  EXPECT_FALSE(was_cached(options));
  EXPECT_TRUE(was_cached(options));

  // The table file is damaged.
  auto bytes = test::read_bytes(table);
  bytes[120] ^= std::byte{1};
  test::write_bytes(table, bytes);
  EXPECT_FALSE(was_cached(options));
  EXPECT_TRUE(was_cached(options));

  // A .sum with another checksum means another dataset. A .sum with other sizes is ignored.
  write_sum(1);
  std::filesystem::remove(table);
  EXPECT_FALSE(was_cached(options));
  EXPECT_TRUE(was_cached(options));
  write_sum(2);
  EXPECT_FALSE(was_cached(options));
  EXPECT_TRUE(was_cached(options));
  test::write_bytes(test::suffixed(prefix_, ".sum"), formats::encode_sum(0, {}, 0, {}));
  EXPECT_TRUE(was_cached(options)) << "the lengths still say what it is of";
}

TEST_F(PackedRows, DoWithoutATableThatCannotBeKept) {
  const index_columns data(prefix_);
  const packed_rows rows(data, {.seq_len = 128}, folder_ / "no/such/folder/table");
  EXPECT_THAT(rows.table().not_written, HasSubstr("No such file or directory"));
  EXPECT_EQ(all(rows), test::naive_rows(lengths_, 128, 1));
}

TEST_F(PackedRows, NameABlockThatIsNotTheTables) {
  const packing_options options{.seq_len = 128};
  const auto table = folder_ / "table";
  write_sum(1);
  {
    const index_columns data(prefix_);
    (void)packed_rows(data, options, table);
  }
  // The .sum is unchanged. But the lengths in the second block have changed: 500 of them are
  // swapped with lengths in the third block.
  for (std::size_t d = 5000; d < 5500; ++d) std::swap(lengths_[d], lengths_[d + 3500]);
  write_lengths(prefix_, lengths_);
  const index_columns data(prefix_);
  const packed_rows rows(data, options, table);
  ASSERT_TRUE(rows.table().was_cached);
  try {
    (void)rows.rows_of(5000);
    ADD_FAILURE() << "not refused";
  } catch (const format_error& e) {
    EXPECT_THAT(e.what(), HasSubstr("data.idx: documents 4096 up to 8192 make "));
    EXPECT_THAT(e.what(), HasSubstr("remove "));
  }
  EXPECT_NO_THROW((void)rows.rows_of(0));
}

TEST_F(PackedRows, ReportABrokenIndexFromAnyThread) {
  auto idx = test::read_bytes(test::suffixed(prefix_, ".idx"));
  const std::int32_t negative = -1;
  std::memcpy(idx.data() + 34 + 4L * 7000, &negative, 4);
  test::write_bytes(test::suffixed(prefix_, ".idx"), idx);
  for (const auto access : {index_access::map_if_possible, index_access::pread}) {
    const index_columns data(prefix_, access);
    for (const int threads : {1, 4}) {
      try {
        (void)packed_rows(data, {.seq_len = 128, .threads = threads});
        ADD_FAILURE() << "not refused";
      } catch (const format_error& e) {
        EXPECT_THAT(e.what(), HasSubstr("length of sequence 7000 is -1, expected 0 or more"));
      }
    }
  }
}

}  // namespace
}  // namespace millrace::dataset
