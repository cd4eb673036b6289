// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/packing/packed_rows.hpp>

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <millrace/dataset/detail/instant/index_columns.hpp>
#include <millrace/dataset/detail/packing/block_layout.hpp>
#include <millrace/dataset/detail/packing/document_lengths.hpp>
#include <millrace/dataset/detail/packing/packed_sample.hpp>
#include <millrace/dataset/detail/packing/row_plan.hpp>
#include <millrace/dataset/detail/packing/row_table.hpp>
#include <millrace/error.hpp>

namespace millrace::dataset {

namespace detail {

MILLRACE_INLINE row_table empty_table(const index_columns& columns,
                                      const packing_options& options) {
  row_table table;
  table.header = row_table_header(columns, options);
  return table;
}

MILLRACE_INLINE packed_rows::plan_pointer make_plan(const index_columns& columns,
                                                    const packing_options& options,
                                                    const formats::rows_header& of) {
  const std::int64_t multiple = of.pad_documents_to;
  const auto shares = [&](std::int64_t first, std::int64_t last, std::vector<std::int64_t>& out) {
    document_lengths(columns, of.first_document + first, of.first_document + last, out);
    if (multiple == 1 && !options.last_token_as_label) return;
    for (std::int64_t& each : out) {
      each = each == 0 ? 0 : share_of({0, 0, each}, multiple, options.last_token_as_label);
    }
  };
  return std::make_shared<const row_plan>(
      row_plan_options{options.algorithm, options.seq_len, options.seed},
      of.last_document - of.first_document, shares);
}

}  // namespace detail

MILLRACE_INLINE packed_rows::packed_rows(const index_columns& columns, packing_options options,
                                         const std::filesystem::path& table_path, plan_pointer plan)
    : columns_(&columns),
      options_(options),
      table_(options.algorithm == packing_algorithm::best_fit
                 ? open_row_table(columns, options, table_path)
                 : detail::empty_table(columns, options)),
      plan_(std::move(plan)) {
  if (options.algorithm == packing_algorithm::best_fit || plan_) return;
  plan_ = detail::make_plan(columns, options, table_.header);
}

MILLRACE_INLINE packing_report packed_rows::report() const {
  const formats::rows_header& h = table_.header;
  packing_report all{row_count(), h.last_document - h.first_document, h.tokens, 0, 0};
  std::int64_t only_labels = 0;
  if (plan_) {
    constexpr std::int64_t at_once = 1 << 14;
    std::vector<std::int64_t> lengths;
    for (std::int64_t first = h.first_document; first < h.last_document; first += at_once) {
      document_lengths(*columns_, first, std::min(h.last_document, first + at_once), lengths);
      for (std::size_t i = 0; i < lengths.size(); ++i) {
        const std::int64_t document = first - h.first_document + static_cast<std::int64_t>(i);
        if (plan_->row_of(document) == row_plan::no_row) continue;
        all.tokens += lengths[i];
        only_labels += options_.last_token_as_label ? 1 : 0;
      }
    }
    all.left_out = plan_->overlong();
  }
  all.padding = all.rows * h.seq_len - (all.tokens - only_labels);
  return all;
}

MILLRACE_INLINE void packed_rows::row(std::int64_t r, std::vector<packed_part>& parts) const {
  assert(0 <= r && r < row_count());
  parts.clear();
  if (plan_) return planned_row(r, parts);
  const auto block = std::ranges::upper_bound(table_.ends, r) - table_.ends.begin();
  layout_of(block)->append_row(r - first_row(block), parts);
}

MILLRACE_INLINE void packed_rows::planned_row(std::int64_t r,
                                              std::vector<packed_part>& parts) const {
  thread_local std::vector<std::int64_t> length;
  std::int64_t used = 0;
  for (const std::uint32_t each : plan_->documents_of(r)) {
    const std::int64_t document = table_.header.first_document + each;
    document_lengths(*columns_, document, document + 1, length);
    parts.push_back({document, 0, length[0]});
    used += share_of(parts.back(), table_.header.pad_documents_to, options_.last_token_as_label);
    if (length[0] > (options_.last_token_as_label ? 1 : 0) && used <= table_.header.seq_len)
      continue;
    throw format_error(columns_->idx_path(), columns_->document_offset(document),
                       "document " + std::to_string(document) + " has " +
                           std::to_string(length[0]) +
                           " tokens, which do not fit into its row: the dataset has changed since "
                           "its documents were packed");
  }
}

MILLRACE_INLINE std::vector<std::int64_t> packed_rows::rows_of(std::int64_t document) const {
  assert(table_.header.first_document <= document && document < table_.header.last_document);
  std::vector<std::int64_t> rows;
  if (plan_) {
    const std::uint32_t row = plan_->row_of(document - table_.header.first_document);
    if (row != row_plan::no_row) rows.push_back(row);
    return rows;
  }
  const std::int64_t block = (document - table_.header.first_document) / packing_block;
  layout_of(block)->append_rows_of(document, rows);
  for (std::int64_t& r : rows) r += first_row(block);
  return rows;
}

MILLRACE_INLINE packed_rows::layout_pointer packed_rows::layout_of(std::int64_t block) const {
  slot& s = (*slots_)[static_cast<std::size_t>(block) % slots_->size()];
  {
    const std::lock_guard lock(s.mutex);
    if (s.block == block) return s.layout;
  }
  // No lock is held here: two threads may build the same layout, but no thread waits.
  auto layout = make_layout(block);
  const std::lock_guard lock(s.mutex);
  s.block = block;
  s.layout = layout;
  return layout;
}

MILLRACE_INLINE packed_rows::layout_pointer packed_rows::make_layout(std::int64_t block) const {
  const formats::rows_header& h = table_.header;
  const std::int64_t first = h.first_document + block * packing_block;
  const std::int64_t last = std::min(h.last_document, first + packing_block);
  // One packer per thread, so that its memory is allocated only once. A packer depends only on the
  // options.
  thread_local std::unique_ptr<best_fit> packer;
  if (!packer || packer->options().seq_len != h.seq_len ||
      packer->options().pad_documents_to != h.pad_documents_to) {
    packer = std::make_unique<best_fit>(best_fit_options{h.seq_len, h.pad_documents_to});
  }
  std::vector<std::int64_t> lengths;
  document_lengths(*columns_, first, last, lengths);
  auto layout = std::make_shared<const block_layout>(*packer, lengths, first);
  const std::int64_t expected = table_.ends[static_cast<std::size_t>(block)] - first_row(block);
  if (layout->row_count() != expected) {
    throw format_error(columns_->idx_path(), columns_->document_offset(0),
                       "documents " + std::to_string(first) + " up to " + std::to_string(last) +
                           " make " + std::to_string(layout->row_count()) + " rows, expected the " +
                           std::to_string(expected) +
                           " of the row table: the dataset has changed since; remove " +
                           row_table_path(*columns_, options_).string());
  }
  return layout;
}

}  // namespace millrace::dataset
