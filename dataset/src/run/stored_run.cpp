// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/run.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include <millrace/dataset/detail/instant/document_search.hpp>
#include <millrace/dataset/detail/instant/index_columns.hpp>
#include <millrace/dataset/detail/token_windows.hpp>

#include "text_of_pieces.hpp"

namespace millrace::dataset {

struct stored_run::contents {
  contents(std::shared_ptr<const indexed_dataset> of, std::int64_t seq_len)
      : data(std::move(of)),
        prefix(data->prefix()),
        file{data->bin_path(), data->type(), data->bin_size_bytes(),
             io::identity_of(data->bin_path())},
        search(index_columns(*data)),
        windows(*data, seq_len) {}

  std::shared_ptr<const indexed_dataset> data;
  std::filesystem::path prefix;
  run_source file;
  document_search search;
  token_windows windows;
};

MILLRACE_INLINE stored_run::stored_run(std::shared_ptr<const indexed_dataset> data,
                                       std::int64_t seq_len)
    : shared_(std::make_shared<const contents>(std::move(data), seq_len)) {}

MILLRACE_INLINE stored_run::stored_run(const indexed_dataset& data, std::int64_t seq_len)
    : stored_run(std::shared_ptr<const indexed_dataset>(std::shared_ptr<void>(), &data), seq_len) {}

MILLRACE_INLINE std::int64_t stored_run::end() const {
  return shared_->windows.count();
}

MILLRACE_INLINE std::int64_t stored_run::seq_len() const {
  return shared_->windows.seq_len();
}

MILLRACE_INLINE const std::filesystem::path& stored_run::prefix(std::int64_t) const {
  return shared_->prefix;
}

MILLRACE_INLINE std::vector<run_source> stored_run::sources() const {
  return {shared_->file};
}

MILLRACE_INLINE std::int64_t stored_run::pieces(const source_sample& sample,
                                                std::vector<piece>& out) const {
  out.clear();
  shared_->search.pieces(sample.k * seq_len(), seq_len() + 1, out);
  return 0;
}

MILLRACE_INLINE void stored_run::text_of(std::int64_t position, bool boundaries,
                                         sample_text& out) const {
  const std::int64_t length = shared_->windows.seq_len();
  detail::set_window(position, 0, position * length, length + 1,
                     formats::size_bytes(shared_->file.type), out);
  if (!boundaries) return;
  std::vector<piece>& pieces = detail::scratch_pieces();
  shared_->search.pieces(position * length, length + 1, pieces);
  detail::set_boundaries(pieces, length, true, detail::same_searched_document{shared_->search},
                         out);
}

MILLRACE_INLINE std::vector<std::int64_t> stored_run::positions_with(std::int64_t,
                                                                     sequence_range sequences,
                                                                     std::int64_t before) const {
  std::vector<std::int64_t> positions;
  if (sequences.size() <= 0) return positions;
  const std::int64_t first = shared_->search.first_token_of(sequences.first);
  const std::int64_t last = shared_->search.first_token_of(sequences.last - 1) +
                            shared_->data->sequence_length(sequences.last - 1);
  if (first >= last) return positions;
  // The first token of a window is also the last label of the preceding window.
  const std::int64_t most = std::min(std::min(before, end()) - 1, (last - 1) / seq_len());
  for (std::int64_t w = std::max<std::int64_t>(0, first - 1) / seq_len(); w <= most; ++w) {
    positions.push_back(w);
  }
  return positions;
}

MILLRACE_INLINE std::int64_t stored_run::taken(std::int64_t, std::int64_t positions) const {
  return std::min(positions, end());
}

MILLRACE_INLINE sample_round stored_run::round_of(std::int64_t, std::int64_t) const {
  return {0, end(), 1, "one epoch"};
}

MILLRACE_INLINE std::vector<left_out> stored_run::left_out_of(std::int64_t,
                                                              const sample_round&) const {
  return {{end() * seq_len(), shared_->data->token_count(), 1, "after the last window"}};
}

MILLRACE_INLINE run_state stored_run::description() const {
  run_state state;
  state.order = "stored";
  state.seed = 0;
  state.seq_len = seq_len();
  state.data.push_back({.prefix = shared_->prefix.string()});
  return state;
}

}  // namespace millrace::dataset
