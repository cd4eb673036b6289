// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <millrace/dataset/instant/index_columns.hpp>
#include <millrace/dataset/run/instant_run.hpp>
#include <millrace/loader/plan/sample_plan.hpp>
#include <millrace/loader/plan/text_of_pieces.hpp>

namespace millrace::loader {

/// The order `instant`: each sample is one range of one file, known without its index. That is read
/// only where boundaries are asked for, and its header: when this is made, as sources may hold
/// tokens of several types, and once of each source, when it is first touched, to see that it is
/// the dataset that the run was set up with.
class instant_plan final : public sample_plan {
 public:
  /// @throws config_error  the sources hold floats.
  /// @throws io_error, format_error  a source cannot be opened.
  explicit instant_plan(dataset::instant_run run) : run_(std::move(run)) {
    for (std::int64_t s = 0; s < run_.source_count(); ++s) {
      types_.push_back(dataset::index_columns(run_.prefix(s), dataset::index_access::pread).type());
      const auto tokens = static_cast<std::uint64_t>(run_.order().windows(s).token_count());
      files_.push_back({detail::bin_of(run_.prefix(s)), tokens * item(s)});
      detail::check_integers(files_.back(), types_.back());
    }
    touched_.resize(files_.size());
  }

  std::int64_t end() const override { return run_.end(); }
  std::int64_t seq_len() const override { return run_.seq_len(); }
  bool extra_token() const override { return true; }
  std::vector<data_file> files() const override { return files_; }
  std::vector<formats::dtype> types() const override { return types_; }

  void text_of(std::int64_t position, bool boundaries, sample_text& out) override {
    const dataset::instant_sample sample = run_.order().at(position);
    if (!touched_[static_cast<std::size_t>(sample.source)]) touch(sample.source);
    out.position = position;
    out.source = sample.source;
    out.real = sample.place.tokens;
    const std::uint64_t size = item(sample.source);
    out.parts.assign(1,
                     {{sample.source, static_cast<std::uint64_t>(sample.place.first_token) * size,
                       static_cast<std::uint64_t>(sample.place.tokens) * size},
                      0});
    out.boundaries.clear();
    out.document_ends.clear();
    if (!boundaries) return;
    pieces_.clear();
    const auto search = run_.order().open(sample.source);
    search->pieces(sample.place.first_token, sample.place.tokens, pieces_);
    detail::set_boundaries(pieces_, seq_len(), true, detail::same_searched_document{*search}, out);
  }

  std::vector<std::int64_t> positions_with(std::int64_t source,
                                           dataset::sequence_range sequences) override {
    return run_.positions_with(source, sequences, run_.end());
  }

  void check_steps(const dataset::batch_steps& steps) const override {
    detail::check_begins(run_.order().blend(), steps);
  }

  dataset::run_state description() const override { return run_.description(); }

 private:
  std::uint64_t item(std::int64_t source) const noexcept {
    return formats::size_bytes(types_[static_cast<std::size_t>(source)]);
  }

  void touch(std::int64_t source) {
    const auto s = static_cast<std::size_t>(source);
    const dataset::index_columns columns(run_.prefix(source), dataset::index_access::pread);
    const std::int64_t expected = run_.order().windows(source).token_count();
    if (columns.token_count() != expected || columns.type() != types_[s]) {
      throw format_error(columns.idx_path(), 0,
                         "the dataset has " + std::to_string(columns.token_count()) +
                             " tokens of " + std::string(formats::name(columns.type())) +
                             ", expected " + std::to_string(expected) + " of " +
                             std::string(formats::name(types_[s])) +
                             " as when the run was set up: it is another one, or was replaced");
    }
    touched_[s] = true;
  }

  dataset::instant_run run_;
  std::vector<formats::dtype> types_;
  std::vector<data_file> files_;
  std::vector<bool> touched_;
  std::vector<dataset::piece> pieces_;
};

}  // namespace millrace::loader
