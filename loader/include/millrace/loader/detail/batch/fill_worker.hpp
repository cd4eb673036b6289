// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <millrace/loader/detail/batch/batch_slot.hpp>
#include <millrace/loader/detail/batch/context_cut.hpp>
#include <millrace/loader/detail/batch/host_fields.hpp>
#include <millrace/loader/detail/batch/row_masks.hpp>
#include <millrace/loader/detail/batch/text_gather.hpp>
#include <millrace/loader/detail/batch/wanted_fields.hpp>
#include <millrace/loader/detail/io/range_reader.hpp>
#include <millrace/loader/detail/plan/look_ahead.hpp>
#include <millrace/loader/detail/telemetry/stage.hpp>
#include <millrace/loader/detail/telemetry/telemetry.hpp>
#include <millrace/loader/detail/verify/data_verifier.hpp>

namespace millrace::loader::detail {

/// Options of a filling thread.
struct fill_options {
  host_fields fields;            ///< the arrays to make on the host
  host_field_rules field_rules;  ///< rules for making these arrays
  bool prefetches = true;        ///< whether to announce later reads to the reader
};

/// Does the work of one filling thread for a planned batch: prefetches newly planned ranges, reads
/// the batch, verifies the data, and makes the host arrays. Reports each stage to telemetry; each
/// stage begins when the previous stage ends.
class fill_worker {
 public:
  /// @param verifier  may be null; then nothing is verified
  /// @param masks     if the host's loss mask follows the masks of datasets
  /// @param cut       cuts this rank's part out of each row
  fill_worker(const fill_options& options, std::vector<data_file> files,
              std::vector<formats::dtype> types, std::unique_ptr<range_reader> reader,
              data_verifier* verifier, producer_log& log, std::optional<row_masks> masks = {},
              context_cut cut = {})
      : options_(options),
        gather_(std::move(files), std::move(types)),
        reader_(std::move(reader)),
        verifier_(verifier),
        log_(log),
        masks_(std::move(masks)),
        cut_(std::move(cut)) {
    const slot_layout& whole = cut_.whole();
    if (cut_.cuts()) whole_.emplace(whole, plain_memory(1, whole.capacity_bytes()).front());
  }

  /// Fills the slot of the micro-batch with the number `ticket`.
  ///
  /// @param batch     the planned batch; if planning failed, its `failure` is moved out and thrown
  /// @param ahead     the ranges to prefetch: those planned since the last call
  /// @param begin_ns  time at which work on this batch began
  /// @throws io_error, format_error  the batch cannot be planned or read, or its data is corrupt
  void fill(std::int64_t ticket, planned_batch& batch, std::span<const file_range> ahead,
            std::int64_t begin_ns, batch_slot& slot) {
    if (options_.prefetches && !ahead.empty()) reader_->prefetch(ahead);
    if (verifier_ != nullptr) verifier_->touch(ahead);
    if (batch.failure) std::rethrow_exception(std::exchange(batch.failure, nullptr));
    slot.set_rows(static_cast<std::int64_t>(batch.rows.size()));
    slot.number = batch.number;
    slot.positions.assign(batch.positions.begin(), batch.positions.end());
    slot.sources.clear();
    for (const dataset::sample_text& row : batch.rows) slot.sources.push_back(row.source);
    const std::int64_t planned_ns = now_ns();
    log_.stage(loader_stage::plan, ticket, begin_ns, planned_ns);

    const std::int64_t bytes = gather(batch.rows, slot);
    const std::int64_t gathered_ns = now_ns();
    log_.read(ticket, planned_ns, gathered_ns, bytes);

    if (verifier_ != nullptr) verify(batch.rows);
    if (!options_.fields.any()) return;
    fill_host_fields(options_.fields, options_.field_rules, slot);
    log_.stage(loader_stage::copy, ticket, gathered_ns, now_ns());
  }

  producer_log& log() noexcept { return log_; }
  const range_reader& reader() const noexcept { return *reader_; }

 private:
  std::int64_t gather(std::span<const dataset::sample_text> rows, batch_slot& slot) {
    batch_slot& into = whole_ ? *whole_ : slot;
    if (whole_) whole_->set_rows(slot.layout.rows());
    const std::int64_t bytes = gather_.fill(rows, *reader_, into);
    if (masks_) masks_->fill(rows, into);
    if (whole_) cut_.fill(rows, *whole_, slot);
    return bytes;
  }

  void verify(std::span<const dataset::sample_text> rows) {
    std::span<const read_request> requests = gather_.requests();
    for (const dataset::sample_text& row : rows) {
      verifier_->check(requests.first(row.parts.size()), row.position);
      requests = requests.subspan(row.parts.size());
    }
  }

  fill_options options_;
  text_gather gather_;
  std::unique_ptr<range_reader> reader_;
  data_verifier* verifier_;
  producer_log& log_;
  std::optional<row_masks> masks_;
  context_cut cut_;
  std::optional<batch_slot> whole_;  // buffer for whole rows; empty if rows are not cut
};

}  // namespace millrace::loader::detail
