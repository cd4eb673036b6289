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
#include <vector>

#include <millrace/dataset/detail/instant/index_columns.hpp>
#include <millrace/dataset/detail/packing/block_layout.hpp>
#include <millrace/dataset/detail/packing/document_lengths.hpp>
#include <millrace/dataset/detail/packing/row_table.hpp>
#include <millrace/error.hpp>

namespace millrace::dataset {

MILLRACE_INLINE packed_rows::packed_rows(const index_columns& columns, packing_options options,
                                         const std::filesystem::path& table_path)
    : columns_(&columns), options_(options), table_(open_row_table(columns, options, table_path)) {}

MILLRACE_INLINE packing_report packed_rows::report() const noexcept {
  const formats::rows_header& h = table_.header;
  return {row_count(), h.last_document - h.first_document, h.tokens,
          row_count() * h.seq_len - h.tokens};
}

MILLRACE_INLINE void packed_rows::row(std::int64_t r, std::vector<packed_part>& parts) const {
  assert(0 <= r && r < row_count());
  const auto block = std::ranges::upper_bound(table_.ends, r) - table_.ends.begin();
  parts.clear();
  layout_of(block)->append_row(r - first_row(block), parts);
}

MILLRACE_INLINE std::vector<std::int64_t> packed_rows::rows_of(std::int64_t document) const {
  assert(table_.header.first_document <= document && document < table_.header.last_document);
  const std::int64_t block = (document - table_.header.first_document) / packing_block;
  std::vector<std::int64_t> rows;
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
