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
/// only where boundaries are asked for, and once of each source, when it is first touched, to see
/// that it is the dataset that the run was set up with.
class instant_plan final : public sample_plan {
 public:
  /// @throws config_error  the sources hold floats.
  /// @throws io_error, format_error  the first source cannot be opened.
  explicit instant_plan(dataset::instant_run run) : run_(std::move(run)) {
    type_ = dataset::index_columns(run_.prefix(0), dataset::index_access::pread).type();
    for (std::int64_t s = 0; s < run_.source_count(); ++s) {
      const auto tokens = static_cast<std::uint64_t>(run_.order().windows(s).token_count());
      files_.push_back({detail::bin_of(run_.prefix(s)), tokens * item()});
    }
    touched_.resize(files_.size());
    detail::check_integers(files_.front(), type_);
  }

  std::int64_t end() const override { return run_.end(); }
  std::int64_t seq_len() const override { return run_.seq_len(); }
  bool extra_token() const override { return true; }
  std::vector<data_file> files() const override { return files_; }
  std::vector<formats::dtype> types() const override {
    return std::vector<formats::dtype>(files_.size(), type_);
  }

  void text_of(std::int64_t position, bool boundaries, sample_text& out) override {
    const dataset::instant_sample sample = run_.order().at(position);
    if (!touched_[static_cast<std::size_t>(sample.source)]) touch(sample.source);
    out.position = position;
    out.source = sample.source;
    out.real = sample.place.tokens;
    out.parts.assign(1,
                     {{sample.source, static_cast<std::uint64_t>(sample.place.first_token) * item(),
                       static_cast<std::uint64_t>(sample.place.tokens) * item()},
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

  dataset::run_state description() const override { return run_.description(); }

 private:
  std::uint64_t item() const noexcept { return formats::size_bytes(type_); }

  void touch(std::int64_t source) {
    const auto s = static_cast<std::size_t>(source);
    const dataset::index_columns columns(run_.prefix(source), dataset::index_access::pread);
    const std::int64_t expected = run_.order().windows(source).token_count();
    if (columns.token_count() != expected || columns.type() != type_) {
      throw format_error(columns.idx_path(), 0,
                         "the dataset has " + std::to_string(columns.token_count()) +
                             " tokens of " + std::string(formats::name(columns.type())) +
                             ", expected " + std::to_string(expected) + " of " +
                             std::string(formats::name(type_)) +
                             " as when the run was set up: it is another one, or was replaced");
    }
    touched_[s] = true;
  }

  dataset::instant_run run_;
  formats::dtype type_ = formats::dtype::uint16;
  std::vector<data_file> files_;
  std::vector<bool> touched_;
  std::vector<dataset::piece> pieces_;
};

}  // namespace millrace::loader
