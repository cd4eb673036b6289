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

#include <millrace/dataset/megatron/blend_plan.hpp>
#include <millrace/dataset/megatron/blend_rounding.hpp>
#include <millrace/dataset/megatron/gpt_plan.hpp>
#include <millrace/dataset/megatron/python_json.hpp>
#include <millrace/dataset/run/run.hpp>
#include <millrace/dataset/run/state.hpp>
#include <millrace/export.hpp>

namespace millrace::dataset {

struct blend_columns;

/// Where Megatron has kept the indices of a run's datasets.
struct megatron_caches {
  std::filesystem::path folder;  ///< --data-cache-path
  python_json tokenizer;         ///< the tokenizer's `unique_identifiers`
};

/// Megatron's order of one part of a run, over one dataset or a blend. Samples are of pieces from
/// anywhere in a dataset, each of which is what Megatron calls a document (megatron-core,
/// gpt_dataset.py). Copies share all. Any thread.
///
/// Of each dataset its indices stay, where they are built; a bounded number of `.idx` files, and of
/// caches where indices are taken from there, are open at once, mapped where that is possible.
class MILLRACE_EXPORT megatron_run : public run {
 public:
  /// A source, opened, and what is known of it without opening it again (megatron_sources.hpp).
  struct open_source;
  struct source_info;
  using source_pointer = std::shared_ptr<const open_source>;

  /// Builds the indices of a part in memory, as Megatron would: 4 bytes a sequence and 12 a sample
  /// of each dataset, 10 a sample of the blend.
  ///
  /// @param caches   the indices of the datasets are taken from there, and not built; that of the
  ///                 blend is built all the same, and held against the one that is kept there
  /// @param rounding  of a blend: `fused` is what Megatron has made on a machine with FMA
  /// @param plan     one dataset, or a blend
  /// @param request  of all datasets; its number of samples is not looked at
  /// @param split    as typed; nothing where the part has data of its own
  /// @throws config_error  the split gives the part nothing, the plan is of several datasets that
  ///                       are not blended, a cache is not there or damaged, a kept blend is
  ///                       another one; or as plan_gpt_index, blend_recipe
  /// @param most_open  datasets, and caches, that are kept open at once; it decides nothing else
  /// @throws io_error, format_error  a dataset cannot be read
  static megatron_run build(const part_plan& plan, gpt_request request,
                            const std::optional<std::string>& split, int threads = 1,
                            const std::optional<megatron_caches>& caches = std::nullopt,
                            blend_rounding rounding = blend_rounding::twice,
                            std::size_t most_open = 512);

  const source_info& info(std::int64_t s) const noexcept;
  const gpt_plan& plan(std::int64_t s) const noexcept;

  /// A source, opened if it is not. It lives as long as the pointer.
  /// @throws io_error, format_error, config_error  it cannot be opened, is not the one that the run
  ///                                               was built with, or its cache is gone or damaged
  source_pointer open(std::int64_t s) const;

  /// How many sources are open now.
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
  /// Reads the document index and the shuffle index of the source, and a blend's columns.
  /// @throws as `open`; format_error  the index contradicts the dataset.
  std::vector<std::int64_t> positions_with(std::int64_t source, sequence_range sequences,
                                           std::int64_t before) const override;
  /// Looks at no more than 65,536 positions of a blend.
  std::int64_t taken(std::int64_t source, std::int64_t positions) const override;
  /// All epochs of a dataset are one round: samples reach from one epoch into the next.
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
