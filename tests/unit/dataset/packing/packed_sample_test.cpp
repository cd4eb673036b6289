// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/packing/packed_sample.hpp>

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/dataset/detail/packing/packed_rows.hpp>

#include "support/paths.hpp"
#include "support/seed.hpp"
#include "unit/dataset/write_dataset.hpp"

namespace millrace::dataset {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct packed_fields {
  std::vector<std::uint16_t> text;
  std::vector<std::int64_t> tokens, labels, position_ids;
  std::vector<float> loss_mask;
  std::vector<std::int32_t> cu_seqlens;
  cu_seqlens_size size;
};

packed_fields fields_of(const indexed_dataset& data, const std::vector<packed_part>& parts,
                        std::int64_t seq_len, std::int64_t multiple, field_options options = {}) {
  packed_fields f;
  const auto size = static_cast<std::size_t>(seq_len);
  std::vector<piece> pieces;
  f.text.assign(size, 77);
  gather_packed<std::uint16_t>(data, parts, multiple, f.text, pieces, options.pad);
  f.tokens.assign(size, -7);
  f.labels = f.position_ids = f.tokens;
  f.loss_mask.assign(size, -7);
  options.extra_token = false;
  fill_packed_fields<std::uint16_t, std::int64_t>(
      f.text, parts, multiple, options, {f.tokens, f.labels, f.loss_mask, f.position_ids});
  f.cu_seqlens.assign(size + 1, -7);
  f.size = fill_packed_cu_seqlens(parts, seq_len, multiple, f.cu_seqlens);
  return f;
}

TEST(PackedSample, PadsEachDocumentAndEndsItsLabels) {
  const test::temp_folder folder;
  test::write_dataset<std::uint16_t>(folder / "data", {{{1, 2, 3}}, {{4, 5}, {}, {6, 7, 8}}});
  const indexed_dataset data(folder / "data");
  const auto f = fields_of(data, {{0, 0, 3}, {1, 0, 5}}, 16, 4);
  EXPECT_THAT(f.text, ElementsAre(1, 2, 3, 0, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(f.tokens, ElementsAre(1, 2, 3, 0, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(f.labels, ElementsAre(2, 3, 0, 0, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(f.loss_mask, ElementsAre(1, 1, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(f.position_ids, ElementsAre(0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
  EXPECT_EQ(f.size, (cu_seqlens_size{3, 12}));
  EXPECT_THAT(std::vector<std::int32_t>(f.cu_seqlens.begin(), f.cu_seqlens.begin() + 4),
              ElementsAre(0, 4, 16, 16));
}

TEST(PackedSample, CutsAcrossSequences) {
  const test::temp_folder folder;
  test::write_dataset<std::uint16_t>(folder / "data", {{{9}}, {{1, 2, 3}, {}, {4}, {5, 6, 7}}});
  const indexed_dataset data(folder / "data");
  const index_columns columns(data);
  std::vector<piece> pieces;
  append_pieces(columns, {1, 2, 3}, pieces);
  EXPECT_THAT(pieces, ElementsAre(piece{1, 2, 1}, piece{3, 0, 1}, piece{4, 0, 1}));
  const auto f = fields_of(data, {{1, 4, 3}}, 4, 1);
  EXPECT_THAT(f.text, ElementsAre(5, 6, 7, 0));
  pieces.clear();
  try {
    append_pieces(columns, {1, 5, 4}, pieces);
    ADD_FAILURE() << "not refused";
  } catch (const format_error& e) {
    EXPECT_THAT(e.what(), HasSubstr("document 1 lacks 2 tokens, expected 4 from token 5 on"));
  }
  std::vector<std::uint16_t> text(2);
  EXPECT_THROW(
      gather_packed<std::uint16_t>(data, std::vector<packed_part>{{1, 0, 3}}, 1, text, pieces),
      config_error);
}

// Pieces are the same with and without mmap. The dataset has so many sequences that they are read
// in parts. The error for a bad length names the sequence with that length.
TEST(PackedSample, FindsPiecesWithoutAMap) {
  const test::temp_folder folder;
  test::documents_of<std::uint16_t> documents = {{{1, 2}}, {}};
  for (int i = 0; i < 5000; ++i) {
    documents[1].push_back(std::vector<std::uint16_t>(static_cast<std::size_t>(i % 4), 7));
  }
  test::write_dataset<std::uint16_t>(folder / "data", documents);
  const index_columns mapped(folder / "data");
  const index_columns read(folder / "data", index_access::pread);
  for (const packed_part part :
       {packed_part{0, 0, 2}, packed_part{0, 1, 1}, packed_part{1, 0, 7500}, packed_part{1, 0, 100},
        packed_part{1, 2900, 33}, packed_part{1, 7499, 1}}) {
    std::vector<piece> expected, found;
    append_pieces(mapped, part, expected);
    append_pieces(read, part, found);
    EXPECT_EQ(found, expected);
    EXPECT_EQ(token_count(found), part.tokens);
  }
  const auto refusal = [&](const index_columns& columns) -> std::string {
    std::vector<piece> pieces;
    try {
      append_pieces(columns, {1, 7000, 501}, pieces);
    } catch (const format_error& e) {
      return e.what();
    }
    return "none";
  };
  EXPECT_THAT(refusal(read), HasSubstr("document 1 lacks 1 tokens, expected 501 from token 7000"));
  EXPECT_EQ(refusal(read), refusal(mapped));
  auto bytes = test::read_bytes(folder / "data.idx");
  const std::int32_t negative = -3;
  std::memcpy(bytes.data() + formats::mmidx_header_bytes + 4UL * 4000, &negative, sizeof(negative));
  test::write_bytes(folder / "data.idx", bytes);
  EXPECT_THAT(refusal(index_columns(folder / "data", index_access::pread)),
              HasSubstr("length of sequence 4000 is -3, expected 0 or more"));
}

// Every token of every document is served once per epoch. Its label is the next token of the
// document if that token is in the same row.
TEST(PackedSample, ServesEveryTokenOnce) {
  std::mt19937_64 random(test::seed(5));
  for (int round = 0; round < 30; ++round) {
    const test::temp_folder folder;
    test::documents_of<std::uint16_t> documents(random() % 80);
    std::vector<std::vector<std::uint16_t>> flat;
    std::uint16_t next = 1;
    for (auto& document : documents) {
      document.resize(random() % 4);
      flat.emplace_back();
      for (auto& sequence : document) {
        sequence.resize(random() % 20);
        for (auto& token : sequence) flat.back().push_back(token = next++);
      }
    }
    test::write_dataset<std::uint16_t>(folder / "data", documents);
    const indexed_dataset data(folder / "data");
    const std::int64_t multiple = 1 + static_cast<std::int64_t>(random() % 4);
    const std::int64_t seq_len = multiple * (1 + static_cast<std::int64_t>(random() % 12));
    const index_columns columns(data);
    const packed_rows rows(columns, {.seq_len = seq_len, .pad_documents_to = multiple});
    std::vector<int> served(next);
    std::vector<packed_part> parts;
    for (std::int64_t r = 0; r < rows.row_count(); ++r) {
      rows.row(r, parts);
      const auto f = fields_of(data, parts, seq_len, multiple);
      for (std::size_t i = 0; i < f.text.size(); ++i) {
        ++served[f.text[i]];
        if (f.loss_mask[i] != 0) {
          EXPECT_EQ(f.labels[i], f.text[i] + 1);
        } else {
          EXPECT_EQ(f.labels[i], 0);
        }
      }
      for (std::size_t i = 0, at = 0; i < parts.size(); ++i) {
        EXPECT_EQ(static_cast<std::size_t>(f.cu_seqlens[i]), at);
        EXPECT_EQ(f.cu_seqlens[i] % multiple, 0);
        const auto& document = flat[static_cast<std::size_t>(parts[i].document)];
        for (std::int64_t t = 0; t < parts[i].tokens; ++t) {
          const auto k = static_cast<std::size_t>(t);
          EXPECT_EQ(f.text[at + k], document[static_cast<std::size_t>(parts[i].first + t)]);
          EXPECT_EQ(f.position_ids[at + k], t);
          EXPECT_EQ(f.loss_mask[at + k], t + 1 < parts[i].tokens ? 1 : 0);
        }
        at += static_cast<std::size_t>(share_of(parts[i], multiple));
      }
    }
    for (std::size_t token = 1; token < served.size(); ++token) ASSERT_EQ(served[token], 1);
  }
}

}  // namespace
}  // namespace millrace::dataset
