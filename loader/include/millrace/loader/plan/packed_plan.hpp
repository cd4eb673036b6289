// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <millrace/dataset/instant/index_columns.hpp>
#include <millrace/dataset/packing/packed_sample.hpp>
#include <millrace/dataset/run/packed_run.hpp>
#include <millrace/loader/plan/sample_plan.hpp>
#include <millrace/loader/plan/text_of_pieces.hpp>

namespace millrace::loader {

/// Rows of whole documents, packed by best fit. Boundaries are those of the documents' shares.
class packed_plan final : public sample_plan {
 public:
  /// @throws config_error  a source holds floats.
  explicit packed_plan(dataset::packed_run run) : run_(std::move(run)) {
    for (std::int64_t s = 0; s < run_.source_count(); ++s) {
      const dataset::packed_run::source_info& source = run_.info(s);
      files_.push_back({detail::bin_of(run_.prefix(s)), source.bin_bytes});
      types_.push_back(source.type);
      detail::check_integers(files_.back(), source.type);
    }
  }

  std::int64_t end() const override { return run_.end(); }
  std::int64_t seq_len() const override { return run_.seq_len(); }
  bool extra_token() const override { return false; }
  bool packed() const override { return true; }
  std::vector<data_file> files() const override { return files_; }
  std::vector<formats::dtype> types() const override { return types_; }

  void text_of(std::int64_t position, bool, sample_text& out) override {
    const dataset::source_sample sample = run_.at(position);
    const auto source = run_.open(sample.source);
    const dataset::index_columns& columns = source->columns();
    source->rows.row(run_.place_of(sample).row, parts_);
    out.position = position;
    out.source = sample.source;
    out.real = 0;
    out.parts.clear();
    out.boundaries.assign(1, 0);
    out.document_ends.assign(1, 0);
    std::int64_t at = 0;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      pieces_.clear();
      dataset::append_pieces(columns, parts_[i], pieces_);
      const std::int64_t end = detail::append_pieces(columns, pieces_, sample.source, at, out);
      at += dataset::share_of(parts_[i], run_.pad_documents_to());
      // Padding at the end of the row is the last document's.
      const std::int64_t boundary = i + 1 < parts_.size() ? at : seq_len();
      out.boundaries.push_back(static_cast<std::int32_t>(boundary));
      out.document_ends.push_back(static_cast<std::int32_t>(end));
    }
  }

  std::vector<std::int64_t> positions_with(std::int64_t source,
                                           dataset::sequence_range sequences) override {
    return run_.positions_with(source, sequences, run_.end());
  }

  void check_steps(const dataset::batch_steps& steps) const override {
    detail::check_begins(run_.blend(), steps);
  }

  dataset::run_state description() const override { return run_.description(); }

 private:
  dataset::packed_run run_;
  std::vector<data_file> files_;
  std::vector<formats::dtype> types_;
  std::vector<dataset::packed_part> parts_;
  std::vector<dataset::piece> pieces_;
};

}  // namespace millrace::loader
