// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <millrace/dataset/run/megatron_run.hpp>
#include <millrace/loader/plan/sample_plan.hpp>
#include <millrace/loader/plan/text_of_pieces.hpp>

namespace millrace::loader {

/// Megatron's order: samples of pieces from anywhere in a dataset, each of which is what Megatron
/// calls a document (design: megatron-core, gpt_dataset.py).
class megatron_plan final : public sample_plan {
 public:
  /// @throws config_error  a dataset holds floats.
  explicit megatron_plan(dataset::megatron_run run) : run_(std::move(run)) {
    for (std::int64_t s = 0; s < run_.source_count(); ++s) {
      const auto bin = detail::bin_of(run_.prefix(s));
      const auto tokens = static_cast<std::uint64_t>(run_.info(s).tokens);
      types_.push_back(run_.info(s).type);
      files_.push_back({bin, tokens * formats::size_bytes(types_.back()), io::identity_of(bin)});
      detail::check_integers(files_.back(), types_.back());
    }
  }

  std::int64_t end() const override { return run_.end(); }
  std::int64_t seq_len() const override { return run_.seq_len(); }
  bool extra_token() const override { return run_.plan(0).extra_token != 0; }
  std::vector<data_file> files() const override { return files_; }
  std::vector<formats::dtype> types() const override { return types_; }

  void text_of(std::int64_t position, bool boundaries, sample_text& out) override {
    const dataset::source_sample sample = run_.at(position);
    const auto opened = run_.open(sample.source);
    (void)opened->order.sample(sample.k, pieces_);
    out.position = position;
    out.source = sample.source;
    out.real = 0;
    out.parts.clear();
    out.boundaries.clear();
    out.document_ends.clear();
    (void)detail::append_pieces(opened->search.columns(), pieces_, sample.source, 0, out);
    if (!boundaries) return;
    detail::set_boundaries(pieces_, seq_len(), extra_token(), dataset::pieces_apart{}, out);
  }

  std::vector<std::int64_t> positions_with(std::int64_t source,
                                           dataset::sequence_range sequences) override {
    return run_.positions_with(source, sequences, run_.end());
  }

  dataset::run_state description() const override { return run_.description(); }

 private:
  dataset::megatron_run run_;
  std::vector<data_file> files_;
  std::vector<formats::dtype> types_;
  std::vector<dataset::piece> pieces_;
};

}  // namespace millrace::loader
