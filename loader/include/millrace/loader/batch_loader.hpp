// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/dataset/run/run.hpp>
#include <millrace/dataset/run/state.hpp>
#include <millrace/dataset/run/state_compare.hpp>
#include <millrace/export.hpp>
#include <millrace/loader/batch.hpp>
#include <millrace/loader/options.hpp>

namespace millrace::loader {

class telemetry;
struct loader_report;
enum class stall_cause : std::uint8_t;

namespace cuda {
class device_loader;
}

/// Serves one rank the micro-batches of a run, made ahead on threads of its own.
///
/// Which samples make which batch follows from the run, the options and `consumed_samples` alone.
/// So equal ones give equal batches, and a run can be taken up again from its state, with another
/// number of ranks too. Use from one thread; the destructor stops and joins the others.
///
///   millrace::dataset::indexed_dataset data("out/web_text_document");
///   millrace::loader::batch_loader loader(data, {.batch_size = 8, .seq_len = 4096});
///   for (const auto& batch : loader) train(batch.tokens(), batch.labels());
class MILLRACE_EXPORT batch_loader {
 public:
  /// One dataset in stored order, once: windows of `options.seq_len` tokens, as
  /// `dataset::token_windows`.
  ///
  /// @param data  must outlive the loader, but not the batches
  /// @throws config_error  an option is out of range; the message names it and its range. Or the
  ///                       dataset has less than one window, or holds no integers.
  /// @throws io_error, format_error  a dataset cannot be opened
  /// @throws std::system_error  no thread can be started.
  batch_loader(const dataset::indexed_dataset& data, const loader_options& options);
  batch_loader(const dataset::indexed_dataset&&, const loader_options&) = delete;

  /// A run of any order, over one dataset or a blend: a `dataset::megatron_run`, `instant_run`,
  /// `packed_run`, or a class of your own. Many loaders may share one run.
  /// @throws as above; and config_error where segments of its schedule begin with other steps than
  ///         those of `options`
  batch_loader(std::shared_ptr<const dataset::run> run, const loader_options& options);

  /// The same with a run by value.
  template <std::derived_from<dataset::run> Run>
  batch_loader(Run run, const loader_options& options)
      : batch_loader(std::make_shared<const Run>(std::move(run)), options) {}

  batch_loader(const batch_loader&) = delete;
  batch_loader& operator=(const batch_loader&) = delete;
  ~batch_loader();

  /// The next micro-batch, or nothing after the last whole one of all ranks; where `drop_last` is
  /// false, after what is left behind that, which may be no row of this rank.
  ///
  /// @throws config_error  there is one, but the caller holds every slot of the ring: one batch
  ///                       must be destroyed first. The loader goes on then.
  /// @throws error  what another thread met while it made this batch: once, the loader is
  ///                finished then. Or that the run cannot be described, as `state` says it: once,
  ///                as soon as it is known, which is mostly with the first batches.
  std::optional<batch> next();

  /// Samples served so far, over all ranks, counted from the start of the run. It counts a batch
  /// when next() gives it, not when it is destroyed, and takes every rank to be at the same
  /// micro-batch.
  std::int64_t consumed_samples() const noexcept;

  /// Micro-batches that this loader serves in all, from where it started; may be 0. 2^63 - 1 where
  /// there is no end.
  std::int64_t micro_batches() const noexcept;

  /// All that a checkpoint keeps: the same on every rank, valid at what next() has given. What it
  /// says of the datasets was found out when the loader was made; it waits while that goes on.
  ///
  /// @throws io_error, format_error, config_error  as `describe`: a dataset cannot be opened, its
  ///                                               sidecars contradict it, or tokenizers differ
  dataset::run_state state() const;

  /// Of every batch, but for the rows of a last one that is short.
  slot_layout layout() const;

  /// Goes on from a state, be it of another number of ranks. Batches that are held stay valid.
  ///
  /// @param terms  what may differ; streams of edits are filled in, where "edits" is not allowed
  /// @throws format_error, config_error  as `dataset::parse_state`; or the run is another one: the
  ///                                     first difference, as `dataset::require_same` says it. The
  ///                                     loader is as before then.
  void load_state(std::string_view json, dataset::resume_terms terms = {});
  void load_state(const dataset::run_state& saved, dataset::resume_terms terms = {});

  /// What the loader says of itself (loader_report.hpp): where its time went since it started or
  /// went on from a state, how its readers and threads run, and what checksums found.
  loader_report observe() const;

  /// The same times, for any thread: `report()` and `trace()` of it (telemetry/telemetry.hpp).
  /// Never null.
  std::shared_ptr<const telemetry> meter() const;

  /// Why next() had to wait for the batch that it gave last; nothing where that was ready, or the
  /// first one.
  std::optional<stall_cause> last_stall() const noexcept;

  // for (const auto& batch : loader): each batch is given back before the next is asked for.
  class iterator;
  iterator begin();
  static std::default_sentinel_t end() noexcept { return {}; }

 private:
  // It takes batches on a thread of its own, long before they are used.
  friend class cuda::device_loader;

  struct contents;

  /// A state that was found to be one of this run, and the slots to go on from it with.
  struct resumption;

  /// `state` as of another place. Any thread.
  dataset::run_state state_at(std::int64_t consumed_samples) const;

  /// The two halves of `load_state`: this one changes nothing, and may be called while another
  /// thread is in next().
  /// @throws as load_state
  std::shared_ptr<resumption> resumption_from(const dataset::run_state& saved,
                                              dataset::resume_terms terms) const;
  /// And this one throws only what `std::thread` does; the loader is finished then, until another
  /// state is loaded. Nobody is in next().
  /// @param from  of this loader
  void go_on(const std::shared_ptr<resumption>& from);

  std::unique_ptr<contents> contents_;
};

/// Over the batches that are left; of one pass.
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
