// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <millrace/dataset/detail/megatron/blend_plan.hpp>
#include <millrace/dataset/detail/megatron/blend_rounding.hpp>
#include <millrace/dataset/detail/megatron/gpt_plan.hpp>
#include <millrace/dataset/detail/megatron/python_json.hpp>
#include <millrace/dataset/run.hpp>
#include <millrace/dataset/state.hpp>
#include <millrace/detail/export.hpp>

// Example:
//
//     // The training samples that Megatron serves for these flags:
//     // --data-path 0.7 web_text_document 0.3 code_text_document
//     // --split 99,1,0 --train-samples 1000000
//     using namespace millrace::dataset;
//     data_flags flags;
//     flags.data_path = {"0.7", "web_text_document", "0.3", "code_text_document"};
//     flags.split = "99,1,0";
//     const data_plan plan = plan_data(resolve_data_flags(flags), {1000000, 0, 0});
//     const auto run = megatron_run::build(*plan[0], {.sequence_length = 4096}, flags.split);

namespace millrace::dataset {

struct blend_columns;

/// Megatron's index caches for the datasets of a run.
struct megatron_caches {
  std::filesystem::path folder;  ///< --data-cache-path
  python_json tokenizer;         ///< the tokenizer's `unique_identifiers`
};

/// Megatron's order of one part of a run (train, valid or test), over one dataset or a blend. The
/// pieces of a sample can be anywhere in a dataset. Each piece is part of one sequence of the
/// `.idx`; Megatron calls a sequence a document (megatron-core, gpt_dataset.py). Copies share their
/// contents. Thread-safe.
///
/// Indices that `build` computes stay in memory. A bounded number of `.idx` files and caches is
/// open at any time; these files are mapped if possible.
///
/// Example: the training part of `--data-path 0.7 out/web 0.3 out/code --split 969,30,1`.
///
///     namespace dataset = millrace::dataset;
///     dataset::megatron_run train(const dataset::part_plan& plan) {
///       dataset::gpt_request request;
///       request.sequence_length = 4096;
///       return dataset::megatron_run::build(plan, request, "969,30,1");
///     }
class MILLRACE_EXPORT megatron_run : public run {
 public:
  /// `open_source` is a source that is open. `source_info` has the facts about a source that are
  /// known without opening it. Both are defined in megatron_sources.hpp.
  struct open_source;
  struct source_info;
  using source_pointer = std::shared_ptr<const open_source>;

  /// Builds the indices of a part in memory, as Megatron does. Each dataset takes 4 bytes per
  /// sequence and 12 bytes per sample. The blend takes another 10 bytes per sample.
  ///
  /// @param plan      one dataset, or a blend
  /// @param request   applies to all datasets; its number of samples is ignored
  /// @param split     `--split` as typed; empty if the part has its own data
  /// @param caches    if given, the indices of the datasets are read from these caches instead of
  ///                  being built. The blend is always built, and compared with the cached blend
  /// @param rounding  how the arithmetic of a blend is rounded; `fused` gives the same blend as
  ///                  Megatron compiled for ARM
  /// @param most_open  maximum number of open datasets and caches; does not affect the order
  /// @throws config_error  the split gives the part no data; the plan has several datasets that are
  ///                       not blended; a cache is missing or damaged; the cached blend differs; or
  ///                       as `plan_gpt_index` and `blend_recipe`
  /// @throws io_error, format_error  a dataset cannot be read
  static megatron_run build(const part_plan& plan, gpt_request request,
                            const std::optional<std::string>& split, int threads = 1,
                            const std::optional<megatron_caches>& caches = std::nullopt,
                            blend_rounding rounding = blend_rounding::twice,
                            std::size_t most_open = 512);

  const source_info& info(std::int64_t s) const noexcept;
  const gpt_plan& plan(std::int64_t s) const noexcept;

  /// Returns a source, after opening it if necessary. The source stays open as long as the pointer
  /// exists.
  /// @throws io_error, format_error, config_error  the source cannot be opened, is not the one that
  ///                                               the run was built with, or its cache is missing
  ///                                               or damaged
  source_pointer open(std::int64_t s) const;

  /// Number of sources that are open now.
  std::size_t open_count() const;

  std::int64_t end() const override;
  std::int64_t seq_len() const override;
  bool extra_token() const override;
  std::int64_t source_count() const override;
  const std::filesystem::path& prefix(std::int64_t source) const override;
  std::vector<run_source> sources() const override;
  source_sample at(std::int64_t position) const override;
  /// @throws as `open`; format_error  the index contradicts the dataset.
  std::int64_t pieces(const source_sample& sample, std::vector<piece>& out) const override;
  void text_of(std::int64_t position, bool boundaries, sample_text& out) const override;
  /// Reads the document index and the shuffle index of the source, and the columns of a blend.
  /// @throws as `open`; format_error  the index contradicts the dataset.
  std::vector<std::int64_t> positions_with(std::int64_t source, sequence_range sequences,
                                           std::int64_t before) const override;
  /// Reads at most 65,536 positions of a blend.
  std::int64_t taken(std::int64_t source, std::int64_t positions) const override;
  /// All epochs of a dataset are one round (see `sample_round`), because samples extend from one
  /// epoch into the next.
  sample_round round_of(std::int64_t source, std::int64_t k) const override;
  /// @throws as `open`; format_error  the index contradicts the dataset.
  std::vector<left_out> left_out_of(std::int64_t source, const sample_round& round) const override;
  run_state description() const override;

 private:
  struct contents;

  explicit megatron_run(std::shared_ptr<contents> all) : shared_(std::move(all)) {}

  const blend_columns& blend() const noexcept;
  bool is_blend() const noexcept;

  static source_info build_source(const planned_dataset& planned, gpt_request request,
                                  const std::optional<std::string>& split, int threads,
                                  const std::optional<megatron_caches>& caches);
  static std::vector<std::int64_t> counts_of(const blend_columns& blend, std::size_t sources);
  static run_state describe(const std::vector<source_info>& sources, const part_plan& plan,
                            const gpt_request& request, const std::optional<std::string>& split,
                            blend_rounding rounding);

  std::shared_ptr<contents> shared_;
};

}  // namespace millrace::dataset
