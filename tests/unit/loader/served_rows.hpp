// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/dataset/detail/instant/instant_order.hpp>
#include <millrace/dataset/detail/packing/packed_sample.hpp>
#include <millrace/dataset/detail/run/packed_sources.hpp>
#include <millrace/dataset/detail/sample/cu_seqlens.hpp>
#include <millrace/dataset/detail/sample/fields.hpp>
#include <millrace/dataset/detail/sample/gather.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/dataset/instant_run.hpp>
#include <millrace/dataset/megatron_run.hpp>
#include <millrace/dataset/packed_run.hpp>
#include <millrace/loader/batch_loader.hpp>

/// Makes the expected rows of batches from mapped datasets, one row at a time. Uses functions of
/// `dataset` but no code of the loader.
namespace millrace::test {

/// Everything that a batch contains for one row.
struct served_row {
  std::vector<std::int64_t> text, tokens, labels, position_ids;
  std::vector<float> loss_mask;
  std::vector<std::int32_t> boundaries, document_ends;
  std::int64_t real = 0;
  std::int64_t source = 0;

  friend bool operator==(const served_row&, const served_row&) = default;
};

using any_run = std::variant<dataset::megatron_run, dataset::instant_run, dataset::packed_run>;

inline std::unique_ptr<loader::batch_loader> loader_of(const any_run& run,
                                                       const loader::loader_options& options) {
  return std::visit(
      [&](const auto& each) { return std::make_unique<loader::batch_loader>(each, options); }, run);
}
inline std::int64_t end_of(const any_run& run) {
  return std::visit([](const auto& each) { return each.end(); }, run);
}

inline served_row empty_row(std::int64_t seq_len) {
  const auto size = static_cast<std::size_t>(seq_len);
  served_row row;
  row.tokens.resize(size);
  row.labels.resize(size);
  row.position_ids.resize(size);
  row.loss_mask.resize(size);
  row.boundaries.resize(size + 1);
  return row;
}

/// Returns the expected row at a position of a run without edits.
template <class Run>
served_row row_at(const Run& run, std::int64_t position, dataset::field_options rules) {
  const dataset::source_sample sample = run.at(position);
  const dataset::indexed_dataset data(run.prefix(sample.source));
  std::vector<dataset::piece> pieces;
  (void)run.pieces(sample, pieces);
  bool extra = true;
  dataset::cu_seqlens_size size;
  served_row row = empty_row(run.seq_len());
  if constexpr (std::is_same_v<Run, dataset::megatron_run>) {
    extra = run.extra_token();
    size = dataset::fill_cu_seqlens(std::span<const dataset::piece>(pieces), run.seq_len(), extra,
                                    std::span(row.boundaries));
  } else {
    size = dataset::fill_cu_seqlens(std::span<const dataset::piece>(pieces), run.seq_len(), extra,
                                    std::span(row.boundaries), dataset::same_document(data));
  }
  row.boundaries.resize(static_cast<std::size_t>(size.entries));
  row.source = sample.source;
  row.text.resize(static_cast<std::size_t>(run.seq_len()) + (extra ? 1 : 0));
  row.real = dataset::gather<std::int64_t>(data, pieces, row.text, 0);
  rules.extra_token = extra;
  dataset::fill_fields<std::int64_t, std::int64_t>(
      row.text, row.real, run.seq_len(), rules,
      {row.tokens, row.labels, row.loss_mask, row.position_ids});
  return row;
}

inline served_row row_at(const dataset::packed_run& run, std::int64_t position,
                         dataset::field_options rules) {
  const dataset::source_sample sample = run.at(position);
  const dataset::indexed_dataset data(run.prefix(sample.source));
  std::vector<dataset::packed_part> parts;
  run.open(sample.source)->rows.row(run.place_of(sample).row, parts);
  std::vector<dataset::piece> pieces;
  served_row row = empty_row(run.seq_len());
  row.source = sample.source;
  row.text.resize(static_cast<std::size_t>(run.seq_len()));
  dataset::gather_packed<std::int64_t>(data, parts, run.pad_documents_to(), row.text, pieces, 0);
  const auto size =
      dataset::fill_packed_cu_seqlens(parts, run.seq_len(), run.pad_documents_to(), row.boundaries);
  row.boundaries.resize(static_cast<std::size_t>(size.entries));
  row.document_ends = {0};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    row.real += parts[i].tokens;
    row.document_ends.push_back(row.boundaries[i] + static_cast<std::int32_t>(parts[i].tokens));
  }
  rules.extra_token = false;
  dataset::fill_packed_fields<std::int64_t, std::int64_t>(
      row.text, parts, run.pad_documents_to(), rules,
      {row.tokens, row.labels, row.loss_mask, row.position_ids});
  return row;
}

inline served_row row_at(const any_run& run, std::int64_t position,
                         const dataset::field_options& rules) {
  return std::visit([&](const auto& each) { return row_at(each, position, rules); }, run);
}

template <class To, class From>
std::vector<To> slice(std::span<const From> all, std::size_t first, std::size_t count) {
  const auto part = all.subspan(first, count);
  return {part.begin(), part.end()};
}

/// Returns row `r` of a batch that was made with all fields.
inline served_row row_of(const loader::batch& batch, std::int64_t r) {
  const auto i = static_cast<std::size_t>(r);
  const loader::slot_layout& layout = batch.layout();
  const auto length = static_cast<std::size_t>(layout.seq_len());
  const auto text = static_cast<std::size_t>(layout.text_len());
  served_row row;
  row.text = layout.width() == loader::token_width::u16
                 ? slice<std::int64_t>(batch.text<std::uint16_t>(), i * text, text)
                 : slice<std::int64_t>(batch.text<std::int32_t>(), i * text, text);
  row.tokens = slice<std::int64_t>(batch.tokens(), i * length, length);
  row.labels = slice<std::int64_t>(batch.labels(), i * length, length);
  row.position_ids = slice<std::int64_t>(batch.position_ids(), i * length, length);
  row.loss_mask = slice<float>(batch.loss_mask(), i * length, length);
  row.real = batch.real()[i];
  row.source = batch.sources()[i];
  const auto begin = static_cast<std::size_t>(batch.boundary_begin()[i]);
  const auto count = static_cast<std::size_t>(batch.boundary_begin()[i + 1]) - begin;
  row.boundaries = slice<std::int32_t>(batch.boundaries(), begin, count);
  if (layout.packed()) {
    row.document_ends = slice<std::int32_t>(batch.document_ends(), begin, count);
  }
  return row;
}

/// All host fields.
inline constexpr loader::host_fields all_fields = {true, true, true, true, true, false};

/// Fails the test if the batch does not match its positions, or if its fields contradict each
/// other.
inline void expect_rows(const any_run& run, const loader::batch& batch,
                        const dataset::field_options& rules) {
  std::vector<std::int32_t> joined = {0};
  std::vector<std::int32_t> unpadded;  // for each boundary, tokens before it that are not padding
  std::int32_t tokens = 0;
  std::int32_t longest = 0;
  for (std::int64_t r = 0; r < batch.layout().rows(); ++r) {
    const std::int64_t position = batch.positions()[static_cast<std::size_t>(r)];
    SCOPED_TRACE(testing::Message() << "row " << r << ", position " << position);
    const served_row expected = row_at(run, position, rules);
    const served_row found = row_of(batch, r);
    EXPECT_EQ(found.text, expected.text);
    EXPECT_EQ(found.tokens, expected.tokens);
    EXPECT_EQ(found.labels, expected.labels);
    EXPECT_EQ(found.position_ids, expected.position_ids);
    EXPECT_EQ(found.loss_mask, expected.loss_mask);
    EXPECT_EQ(found.boundaries, expected.boundaries);
    EXPECT_EQ(found.document_ends, expected.document_ends);
    EXPECT_EQ(found.real, expected.real);
    EXPECT_EQ(found.source, expected.source);
    const auto offset = static_cast<std::int32_t>(r * batch.layout().seq_len());
    for (std::size_t i = 1; i < expected.boundaries.size(); ++i) {
      joined.push_back(offset + expected.boundaries[i]);
      longest = std::max(longest, expected.boundaries[i] - expected.boundaries[i - 1]);
    }
    if (!batch.layout().packed()) continue;
    unpadded.push_back(tokens);
    for (std::size_t i = 1; i < expected.boundaries.size(); ++i) {
      tokens += expected.document_ends[i] - expected.boundaries[i - 1];
      unpadded.push_back(tokens);
    }
  }
  EXPECT_THAT(batch.unpadded_ends(), testing::ElementsAreArray(unpadded));
  EXPECT_EQ(std::vector(batch.cu_seqlens().begin(), batch.cu_seqlens().end()), joined);
  EXPECT_EQ(batch.max_seqlen(), longest);
}

}  // namespace millrace::test
