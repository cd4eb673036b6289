// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include <millrace/dataset/detail/run/sample_text.hpp>
#include <millrace/loader/detail/batch/batch_slot.hpp>
#include <millrace/loader/detail/batch/context_cut.hpp>
#include <millrace/loader/detail/batch/slot_memory.hpp>

#include "support/context_places.hpp"
#include "support/fake_cuda/random_batch.hpp"

namespace millrace::test {

/// Returns the part of a batch that a context-parallel rank gets. Cuts the slot with the loader's
/// code, and the expected arrays with a naive loop (`places_of_rank`).
///
/// @pre `seq_len` is a multiple of 2 * cp; if rows are packed, so is the length of each document
inline random_batch cut_batch(const random_batch& whole, std::int64_t cp, std::int64_t rank) {
  using loader::cuda::position_rule;
  const loader::slot_layout& layout = whole.layout;
  loader::detail::batch_slot from(layout, loader::plain_memory(1, layout.capacity_bytes()).front());
  std::memcpy(from.block.get(), whole.slot.data(), whole.slot.size());
  from.boundaries = whole.boundaries;

  loader::detail::context_rules rules;
  rules.context_parallel = cp;
  rules.cp_rank = rank;
  rules.seq_len = layout.seq_len();
  rules.packed = layout.packed();
  rules.positions_at_boundaries = whole.rules.positions == position_rule::boundaries;
  if (whole.rules.positions == position_rule::after_eod) rules.eod = whole.rules.eod;
  rules.pad = whole.rules.pad;

  random_batch part{loader::slot_layout(layout.rows(), layout.seq_len() / cp, false, layout.width(),
                                        layout.packed(), cp, layout.masked()),
                    {},
                    0,
                    whole.rules,
                    {}};
  std::vector<dataset::sample_text> rows(static_cast<std::size_t>(layout.rows()));
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const auto first = static_cast<std::size_t>(from.boundary_begin()[r]);
    const auto count = static_cast<std::size_t>(from.boundary_begin()[r + 1]) - first;
    const auto entries = [&](std::span<const std::int32_t> all) {
      const auto row = all.subspan(first, count);
      return std::vector(row.begin(), row.end());
    };
    rows[r].real = from.real()[r];
    rows[r].boundaries = entries(from.all_boundaries());
    std::vector<std::int64_t> ends = {layout.seq_len()};
    if (layout.packed()) {
      rows[r].document_ends = entries(from.document_ends());
      ends.assign(rows[r].boundaries.begin() + 1, rows[r].boundaries.end());
    }
    const auto row = static_cast<std::int64_t>(r) * layout.seq_len();
    for (const std::int64_t place : places_of_rank(ends, cp, rank)) {
      const auto at = static_cast<std::size_t>(row + place);
      part.expected.tokens.push_back(whole.expected.tokens[at]);
      part.expected.labels.push_back(whole.expected.labels[at]);
      part.expected.position_ids.push_back(whole.expected.position_ids[at]);
      part.expected.loss_mask.push_back(whole.expected.loss_mask[at]);
      part.expected.segment_ids.push_back(whole.expected.segment_ids[at]);
    }
  }
  part.expected.cu_seqlens = whole.expected.cu_seqlens;
  part.expected.unpadded = whole.expected.unpadded;
  part.expected.max_seqlen = whole.expected.max_seqlen;

  loader::detail::batch_slot to(part.layout,
                                loader::plain_memory(1, part.layout.capacity_bytes()).front());
  loader::detail::context_cut(rules, layout).fill(rows, from, to);
  part.boundaries = to.boundaries;
  part.slices = to.slices;
  const std::size_t used = part.layout.used_bytes(to.boundaries, to.slices);
  part.slot.assign(to.block.get(), to.block.get() + used);
  return part;
}

}  // namespace millrace::test
