// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include <millrace/dataset/run.hpp>
#include <millrace/dataset/sampler.hpp>
#include <millrace/dataset/state.hpp>
#include <millrace/detail/export.hpp>
#include <millrace/loader/detail/batch/batch_slot.hpp>
#include <millrace/loader/detail/batch/fill_turns.hpp>
#include <millrace/loader/detail/batch/fill_worker.hpp>
#include <millrace/loader/detail/batch/slot_layout.hpp>
#include <millrace/loader/detail/batch/slot_ring.hpp>
#include <millrace/loader/detail/batch/text_gather.hpp>
#include <millrace/loader/detail/memory/named_thread.hpp>
#include <millrace/loader/detail/plan/context_plan.hpp>
#include <millrace/loader/detail/telemetry/telemetry.hpp>
#include <millrace/loader/detail/verify/data_verifier.hpp>
#include <millrace/loader/options.hpp>

namespace millrace::loader::detail {

/// The `.bin` file of each source of a run, indexed by source.
inline std::vector<data_file> files_of(const std::vector<dataset::run_source>& sources) {
  std::vector<data_file> files;
  files.reserve(sources.size());
  for (const dataset::run_source& each : sources) {
    files.push_back({each.bin, each.bin_bytes, each.identity});
  }
  return files;
}

/// The token type of each source.
inline std::vector<formats::dtype> types_of(const std::vector<dataset::run_source>& sources) {
  std::vector<formats::dtype> types;
  types.reserve(sources.size());
  for (const dataset::run_source& each : sources) types.push_back(each.type);
  return types;
}

/// Checks that options and a run fit together.
/// @return `options`, but `mask_bits` is set if batches have them, and then also `boundaries`
/// @throws config_error  they do not, an option is out of range, or the tokens are not integers
MILLRACE_EXPORT loader_options checked(loader_options options, const dataset::run& run);

/// The stream of a run with these edits; null if there are none.
/// @throws as `dataset::edited_positions`
MILLRACE_EXPORT std::shared_ptr<const dataset::edited_stream> stream_of(
    const dataset::run& run, const loader_options& options,
    const std::vector<dataset::edit>& edits);

/// A ring of slots, and the threads that fill the slots with the micro-batches of a run, in order.
///
/// `fill_turns` assigns batches to threads. Each thread then reads and fills its batches without a
/// lock. The destructor closes the ring and joins the threads.
class MILLRACE_EXPORT pipeline {
 public:
  using ring = slot_ring<batch_slot>;

  /// @param run  must outlive the pipeline
  /// @throws config_error  a batch does not fit in a slot, or the reader rejects its options
  pipeline(const dataset::run& run, const loader_options& options, const dataset::sampler& sampler);
  pipeline(const pipeline&) = delete;
  pipeline& operator=(const pipeline&) = delete;
  ~pipeline() { stop(); }

  /// Makes the threads stop before they begin another batch. The consumer still gets the batches
  /// that are ready, then none. May be called on any thread.
  void stop() const noexcept { ring_->close(); }

  /// Starts the threads. Call it once.
  /// @throws std::system_error, std::bad_alloc  a thread cannot be started. The consumer of the
  ///                                            ring gets the same error instead of a batch.
  void start();

  /// The ring. Batches share ownership of the ring, so they may outlive the pipeline.
  const std::shared_ptr<ring>& slots() const noexcept { return ring_; }

  /// The layout of every slot.
  static slot_layout layout_of(const dataset::run& run, const loader_options& options);

  /// What plans the rows of a micro-batch, apart from the run: whether boundaries are needed, and
  /// the parts of each row that the rank reads.
  static bool needs_boundaries(const loader_options& options) {
    return options.boundaries || options.fields.has_cu_seqlens() || options.positions_at_boundaries;
  }
  static context_plan context_plan_of(const dataset::run& run, const loader_options& options) {
    return {context_of(run, options), types_of(run.sources())};
  }
  /// What cuts the parts that the rank serves out of whole rows.
  static context_cut context_cut_of(const dataset::run& run, const loader_options& options);
  /// Makes a worker with its own reader. It reports to `log`.
  /// @param verifier  as for `fill_worker`
  /// @throws config_error  the reader rejects its options
  static fill_worker make_worker(const dataset::run& run, const loader_options& options,
                                 data_verifier* verifier, producer_log& log);
  /// Makes a slot of plain memory, with the requested host fields.
  static batch_slot make_slot(const slot_layout& layout, const host_fields& wanted);

  /// The CPUs that the threads run on, and the reason if these are not the requested CPUs.
  std::vector<grant> thread_grants() const {
    std::vector<grant> all;
    for (const named_thread& each : threads_) {
      all.insert(all.end(), each.grants().begin(), each.grants().end());
    }
    return all;
  }

  /// The report of each thread's reader.
  std::vector<reader_report> reader_reports() const {
    std::vector<reader_report> all;
    for (const fill_worker& each : workers_) all.push_back(each.reader().report());
    return all;
  }

  /// The verifier; null if nothing is verified.
  const data_verifier* verifier() const noexcept { return verifier_.get(); }

  const std::shared_ptr<telemetry>& meter() const noexcept { return meter_; }

 private:
  static context_rules context_of(const dataset::run& run, const loader_options& options);
  /// Number of batches to plan ahead, at most `batches`, the number of batches in the run. A larger
  /// number would waste memory: each planned batch takes memory for everything except its tokens.
  static std::int64_t batches_ahead(const loader_options& options, std::int64_t batches) {
    if (options.prefetch_samples == 0) return 0;
    const std::int64_t asked =
        (options.prefetch_samples + options.batch_size - 1) / options.batch_size;
    return std::min(std::max<std::int64_t>(2, asked), batches);
  }
  static std::shared_ptr<ring> make_ring(const dataset::run& run, const loader_options& options,
                                         std::int64_t batches);
  static std::unique_ptr<data_verifier> make_verifier(const dataset::run& run,
                                                      const loader_options& options);
  static telemetry_options meter_options(const dataset::run& run, const loader_options& options,
                                         std::size_t slots);
  void fill_slots(std::size_t worker);

  loader_options options_;
  std::shared_ptr<ring> ring_;
  fill_turns turns_;
  std::shared_ptr<telemetry> meter_;
  std::unique_ptr<data_verifier> verifier_;
  std::deque<fill_worker> workers_;    // a deque, because its elements never move
  std::vector<named_thread> threads_;  // last member, so destroyed first: threads use the others
};

}  // namespace millrace::loader::detail
