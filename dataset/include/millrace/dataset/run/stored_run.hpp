// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/dataset/run/run.hpp>
#include <millrace/export.hpp>

namespace millrace::dataset {

/// One dataset in stored order, once: sample k is window k of `token_windows`. Copies share their
/// contents.
///
///     const millrace::dataset::indexed_dataset data("out/web_text_document");
///     const millrace::dataset::stored_run run(data, 4096);  // seq_len
///     millrace::loader::batch_loader loader(run, {.batch_size = 8});
class MILLRACE_EXPORT stored_run : public run {
 public:
  /// @throws config_error  as token_windows
  stored_run(std::shared_ptr<const indexed_dataset> data, std::int64_t seq_len);
  /// @param data  must outlive the run
  /// @throws as above
  stored_run(const indexed_dataset& data, std::int64_t seq_len);
  stored_run(const indexed_dataset&&, std::int64_t) = delete;

  std::int64_t end() const override;
  std::int64_t seq_len() const override;
  bool extra_token() const override { return true; }
  std::int64_t source_count() const override { return 1; }
  const std::filesystem::path& prefix(std::int64_t source) const override;
  std::vector<run_source> sources() const override;
  source_sample at(std::int64_t position) const override { return {0, position}; }
  std::int64_t pieces(const source_sample& sample, std::vector<piece>& out) const override;
  void text_of(std::int64_t position, bool boundaries, sample_text& out) const override;
  std::vector<std::int64_t> positions_with(std::int64_t source, sequence_range sequences,
                                           std::int64_t before) const override;
  std::int64_t taken(std::int64_t source, std::int64_t positions) const override;
  sample_round round_of(std::int64_t source, std::int64_t k) const override;
  std::vector<left_out> left_out_of(std::int64_t source, const sample_round& round) const override;
  run_state description() const override;

 private:
  struct contents;
  std::shared_ptr<const contents> shared_;
};

}  // namespace millrace::dataset
