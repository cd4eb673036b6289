// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/dataset/instant/document_search.hpp>
#include <millrace/dataset/token_windows.hpp>
#include <millrace/loader/plan/sample_plan.hpp>
#include <millrace/loader/plan/text_of_pieces.hpp>

namespace millrace::loader {

/// One dataset in stored order, once: sample k is window k of `dataset::token_windows`.
class stored_plan final : public sample_plan {
 public:
  /// @param data  must outlive the plan
  /// @throws config_error  as `dataset::token_windows`
  stored_plan(const dataset::indexed_dataset& data, std::int64_t seq_len)
      : data_(data),
        file_(detail::bin_file_of(data)),
        search_(dataset::index_columns(data)),
        windows_(data, seq_len) {}

  std::int64_t end() const override { return windows_.count(); }
  std::int64_t seq_len() const override { return windows_.seq_len(); }
  bool extra_token() const override { return true; }
  std::vector<data_file> files() const override { return {file_}; }
  std::vector<formats::dtype> types() const override { return {data_.type()}; }

  void text_of(std::int64_t position, bool boundaries, sample_text& out) override {
    const std::uint64_t item = formats::size_bytes(data_.type());
    const std::int64_t first = position * seq_len();
    out.position = position;
    out.source = 0;
    out.real = seq_len() + 1;
    out.parts.assign(1, {{0, static_cast<std::uint64_t>(first) * item,
                          static_cast<std::uint64_t>(seq_len() + 1) * item},
                         0});
    out.boundaries.clear();
    out.document_ends.clear();
    if (!boundaries) return;
    pieces_.clear();
    search_.pieces(first, seq_len() + 1, pieces_);
    detail::set_boundaries(pieces_, seq_len(), true, detail::same_searched_document{search_}, out);
  }

  std::vector<std::int64_t> positions_with(std::int64_t,
                                           dataset::sequence_range sequences) override {
    std::vector<std::int64_t> positions;
    if (sequences.size() <= 0) return positions;
    const std::int64_t first = search_.first_token_of(sequences.first);
    const std::int64_t last =
        search_.first_token_of(sequences.last - 1) + data_.sequence_length(sequences.last - 1);
    if (first >= last) return positions;
    // A token that begins a window is also the last label of the one before.
    const std::int64_t most = std::min(end() - 1, (last - 1) / seq_len());
    for (std::int64_t w = std::max<std::int64_t>(0, first - 1) / seq_len(); w <= most; ++w) {
      positions.push_back(w);
    }
    return positions;
  }

  dataset::run_state description() const override {
    dataset::run_state state;
    state.order = "stored";
    state.seed = 0;
    state.seq_len = seq_len();
    state.data.push_back({.prefix = data_.prefix().string()});
    return state;
  }

 private:
  const dataset::indexed_dataset& data_;
  data_file file_;
  dataset::document_search search_;
  dataset::token_windows windows_;
  std::vector<dataset::piece> pieces_;
};

}  // namespace millrace::loader
