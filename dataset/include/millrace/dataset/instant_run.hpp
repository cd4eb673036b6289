// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include <millrace/dataset/detail/instant/instant_options.hpp>
#include <millrace/dataset/run.hpp>
#include <millrace/dataset/state.hpp>
#include <millrace/detail/export.hpp>

// Example:
//
//     // Two datasets, mixed 7 to 3.
//     millrace::dataset::instant_options options;
//     options.seq_len = 4096;
//     options.segments = {{.first_step = 0, .sources = {{0, 0.7}, {1, 0.3}}}};
//     std::vector<millrace::dataset::instant_source> sources(2);
//     sources[0].prefix = "web_text_document";
//     sources[1].prefix = "code_text_document";
//     const millrace::dataset::instant_run run(sources, options);

namespace millrace::dataset {

class instant_order;

namespace detail {

/// Describes an order of the type `instant` in the form of a state. In each entry of `data`, only
/// the prefix, the name and the weight are filled in.
MILLRACE_EXPORT run_state describe(const std::vector<instant_source>& sources,
                                   const instant_options& options);

}  // namespace detail

/// The `instant` order over one dataset or a blend. The shuffle is computed by arithmetic, so no
/// index is built. A row is one contiguous range of one file. The header of each source's index is
/// read once, to check that the dataset is the one that the run was created with. The rest of the
/// index is read only if boundaries are requested. Copies share their contents.
///
/// Example: a blend of two datasets, 70 % and 30 %.
///
///     namespace dataset = millrace::dataset;
///     std::vector<dataset::instant_source> sources(2);
///     sources[0].prefix = "out/web_text_document";
///     sources[1].prefix = "out/code_text_document";
///     dataset::instant_options options;
///     options.seq_len = 4096;
///     options.segments = {{.first_step = 0, .sources = {{0, 0.7}, {1, 0.3}}}};
///     const dataset::instant_run run(sources, options);
class MILLRACE_EXPORT instant_run : public run {
 public:
  /// @throws as `instant_order`
  instant_run(const std::vector<instant_source>& sources, const instant_options& options);

  /// The underlying order (see `instant_order`).
  const instant_order& order() const noexcept;

  std::int64_t end() const override;
  std::int64_t seq_len() const override;
  bool extra_token() const override { return true; }
  std::int64_t source_count() const override;
  const std::filesystem::path& prefix(std::int64_t source) const override;
  std::vector<run_source> sources() const override;
  source_sample at(std::int64_t position) const override;
  std::int64_t pieces(const source_sample& sample, std::vector<piece>& out) const override;
  void text_of(std::int64_t position, bool boundaries, sample_text& out) const override;
  /// Takes O(w) time per epoch, where w is the number of windows that contain tokens of the
  /// sequences.
  std::vector<std::int64_t> positions_with(std::int64_t source, sequence_range sequences,
                                           std::int64_t before) const override;
  std::int64_t taken(std::int64_t source, std::int64_t positions) const override;
  /// A round (see `sample_round`) is one epoch.
  sample_round round_of(std::int64_t source, std::int64_t k) const override;
  std::vector<left_out> left_out_of(std::int64_t source, const sample_round& round) const override;
  void check_steps(const batch_steps& steps) const override;
  run_state description() const override;

 private:
  struct contents;
  std::shared_ptr<contents> shared_;
};

}  // namespace millrace::dataset
