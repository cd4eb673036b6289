// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/dataset/run.hpp>
#include <millrace/dataset/sampler.hpp>
#include <millrace/dataset/state.hpp>
#include <millrace/detail/export.hpp>
#include <millrace/loader/batch.hpp>
#include <millrace/loader/detail/batch/next_result.hpp>
#include <millrace/loader/options.hpp>

// Example:
//
//     const millrace::dataset::indexed_dataset data("web_text_document");
//     millrace::loader::batch_loader loader(
//         data, {.batch_size = 8, .seq_len = 4096, .rank = 0, .world_size = 2});
//     for (const auto& batch : loader) {
//       const std::span<const std::int64_t> tokens = batch.tokens();  // [8, 4096], row-major
//     }
//     const std::string checkpoint = write_state(loader.state());
//
//     // What did rank 1 get in step 10?
//     millrace::loader::batch_reader reader(
//         std::make_shared<const millrace::dataset::stored_run>(data, 4096),
//         {.batch_size = 8, .world_size = 2});
//     std::cout << reader.at({.step = 10, .rank = 1}).tokens()[0] << '\n';

namespace millrace::loader {

class telemetry;
struct loader_report;
enum class stall_cause : std::uint8_t;

namespace cuda {
class device_loader;
}

/// Serves the micro-batches of a run to one rank. The loader's own threads prepare the
/// micro-batches in advance.
///
/// The batches depend only on the run, the options and `consumed_samples`. So a run can be resumed
/// from its state, even with a different number of ranks. Use a loader from one thread.
///
/// The destructor stops the loader's threads and waits for them, at most for
/// `loader_options::end_within`. In a child process that was forked after the loader was created,
/// `next()`, `next_for()`, `state()` and `load_state()` throw an `error`, and the destructor does
/// nothing.
class MILLRACE_EXPORT batch_loader {
 public:
  /// Serves one dataset once, in stored order, in windows of `options.seq_len` tokens (see
  /// `dataset::token_windows`).
  ///
  /// @param data  must outlive the loader, but may be destroyed before the batches
  /// @throws config_error  an option is out of range (the message names the option and its range),
  ///                       the dataset is shorter than one window, or its tokens are not integers
  /// @throws io_error, format_error  a dataset cannot be opened
  /// @throws std::system_error  a thread cannot be started
  batch_loader(const dataset::indexed_dataset& data, const loader_options& options);
  batch_loader(const dataset::indexed_dataset&&, const loader_options&) = delete;

  /// Serves a run. A run defines the order of the samples of one dataset or of a blend. Pass a
  /// `dataset::megatron_run`, `dataset::instant_run` or `dataset::packed_run`, or an object of your
  /// own class. Several loaders may share one run.
  /// @throws config_error  the steps of the run's schedule do not match `options`
  /// @throws as the constructor above
  batch_loader(std::shared_ptr<const dataset::run> run, const loader_options& options);

  /// Like the constructor above, but takes the run by value.
  template <std::derived_from<dataset::run> Run>
  batch_loader(Run run, const loader_options& options)
      : batch_loader(std::make_shared<const Run>(std::move(run)), options) {}

  batch_loader(const batch_loader&) = delete;
  batch_loader& operator=(const batch_loader&) = delete;
  ~batch_loader();

  /// Returns the next micro-batch, or nothing after the last micro-batch. With `drop_last`, the
  /// last micro-batch is complete on all ranks. Without `drop_last`, the last micro-batch may have
  /// fewer rows on this rank, or no rows.
  ///
  /// @throws config_error  the caller already holds every slot. Destroy a batch before calling
  ///                       `next()` again, or raise `loader_options::held`.
  /// @throws error  a thread of the loader failed to prepare this batch. Thrown once; no batches
  ///                follow.
  /// @throws error  `state()` would fail, e.g. because the datasets have different tokenizers.
  /// Thrown
  ///                once, usually by one of the first calls.
  std::optional<batch> next();

  /// Like `next()`, but waits no longer than `timeout`, so that a caller can check for signals. If
  /// several calls wait for the same batch, telemetry counts them as one wait.
  /// @throws as `next()`
  next_result<batch> next_for(std::chrono::nanoseconds timeout);

  /// Number of samples that all ranks together have served since the start of the run. A batch
  /// counts when `next()` returns it, not when it is destroyed. Assumes that all ranks are at the
  /// same micro-batch.
  std::int64_t consumed_samples() const noexcept;

  /// Number of micro-batches from the start of this loader, or from the state that it last resumed
  /// from, to the end of the run. May be 0. 2^63 - 1 if the run has no end.
  std::int64_t micro_batches() const noexcept;

  /// The state to save with a checkpoint. It is the same on every rank, and describes the run after
  /// the batches that `next()` has returned. A new loader starts to read facts about its datasets
  /// in the background. This function waits until these facts have been read.
  ///
  /// @throws io_error, format_error, config_error  as `describe`: a dataset cannot be opened, a
  ///                                               `.sum` or `.meta` file contradicts its dataset,
  ///                                               or datasets have different tokenizers
  dataset::run_state state() const;

  /// Layout of every batch, except that a short last batch has fewer rows.
  slot_layout layout() const;

  /// Resumes from a state, even if it was saved with a different number of ranks. Batches that the
  /// caller holds remain valid. If the state is rejected, the loader is unchanged.
  ///
  /// @param terms  allowed differences. Callers leave `saved_stream` and `new_stream` unset,
  /// because
  ///               this function sets them where it needs them.
  /// @throws format_error  as `dataset::parse_state`
  /// @throws config_error  the state belongs to another run; the message gives the first difference
  ///                       (`dataset::require_same`)
  void load_state(std::string_view json, dataset::resume_terms terms = {});
  void load_state(const dataset::run_state& saved, dataset::resume_terms terms = {});

  /// Reports how time was spent since the loader started or resumed, how its readers and threads
  /// run, and what the checksums found (`loader_report.hpp`).
  loader_report observe() const;

  /// The telemetry from which `observe` takes its timings. Any thread may call its `report()` and
  /// `trace()` (`telemetry/telemetry.hpp`). Never null.
  std::shared_ptr<const telemetry> meter() const;

  /// The reason why the last `next()` had to wait. Empty if the batch was ready, or was the first
  /// batch.
  std::optional<stall_cause> last_stall() const noexcept;

  // Supports `for (const auto& batch : loader)`. The loop releases each batch before it requests
  // the next one.
  class iterator;
  iterator begin();
  static std::default_sentinel_t end() noexcept { return {}; }

 private:
  // A device loader takes batches on its own thread, long before they are used.
  friend class cuda::device_loader;

  struct contents;

  /// Stops the preparation of batches. A `next()` that waits on another thread then returns soon.
  /// When the batches that are ready have been served, `next()` returns nothing until `go_on`
  /// resumes.
  void stop() const noexcept;

  /// What `go_on` needs to resume: the options, the sampler and the pipeline.
  struct resumption;

  /// Like `state`, but for a given value of `consumed_samples`. Thread-safe.
  dataset::run_state state_at(std::int64_t consumed_samples) const;

  /// First half of `load_state`: validates the state and changes nothing. Another thread may call
  /// `next()` at the same time.
  /// @throws as `load_state`
  std::shared_ptr<resumption> resumption_from(const dataset::run_state& saved,
                                              dataset::resume_terms terms) const;
  /// Second half of `load_state`: resumes. Throws only if a thread cannot be started. The loader
  /// then serves no batches until another state is loaded.
  /// @pre no thread is in `next()`
  /// @param from  made by this loader
  void go_on(const std::shared_ptr<resumption>& from);

  std::unique_ptr<contents> contents_;
};

/// Identifies a micro-batch of a rank.
struct batch_place {
  std::int64_t step = 0;
  std::int64_t rank = 0;         ///< data-parallel rank
  std::int64_t micro_batch = 0;  ///< index in the step
};

/// Reads any micro-batches of a run, in any order: to look at what a rank got in a step. The
/// micro-batches equal those that `batch_loader` serves with the same run and options. The same
/// code makes them, but the calling thread runs it, and nothing is prepared in advance.
///
/// Use a reader from one thread. Each batch has its own memory and may outlive the reader.
class MILLRACE_EXPORT batch_reader {
 public:
  /// @param options  as for `batch_loader`. Not used: `rank`, which `at` takes instead, and the
  ///                 options about threads, look-ahead and verification
  /// @throws as the constructor of `batch_loader`
  batch_reader(std::shared_ptr<const dataset::run> run, const loader_options& options);
  batch_reader(batch_reader&&) noexcept;
  batch_reader& operator=(batch_reader&&) noexcept;
  ~batch_reader();

  /// Maps steps and ranks to positions, as for the loader.
  const dataset::sampler& ranks() const noexcept;

  /// Reads a micro-batch. Without `drop_last`, the last one may have fewer rows, or none.
  ///
  /// @throws config_error  the step, rank or micro-batch does not exist, or is not served
  /// @throws io_error, format_error  a dataset cannot be read
  batch at(const batch_place& place);

  /// Reads the samples at these positions of the run, one per row.
  ///
  /// @param number  the result's step and so on, which do not affect its rows
  /// @param positions  at most `batch_size` positions, each from 0 to `run::end()` - 1
  /// @throws config_error  there are too many positions, or one is out of range
  /// @throws io_error, format_error  a dataset cannot be read
  batch read(std::span<const std::int64_t> positions, const dataset::batch_number& number = {});

 private:
  struct contents;
  std::unique_ptr<contents> contents_;
};

/// A single-pass iterator over the remaining batches.
class MILLRACE_EXPORT batch_loader::iterator {
 public:
  using value_type = batch;
  using difference_type = std::ptrdiff_t;

  explicit iterator(batch_loader& loader) : loader_(&loader), batch_(loader.next()) {}

  batch& operator*() const noexcept { return *batch_; }
  batch* operator->() const noexcept { return &*batch_; }
  iterator& operator++() {
    batch_.reset();
    batch_ = loader_->next();
    return *this;
  }
  void operator++(int) { ++*this; }
  bool operator==(std::default_sentinel_t) const noexcept { return !batch_.has_value(); }

 private:
  batch_loader* loader_;
  mutable std::optional<batch> batch_;
};

inline batch_loader::iterator batch_loader::begin() {
  return iterator(*this);
}

}  // namespace millrace::loader
