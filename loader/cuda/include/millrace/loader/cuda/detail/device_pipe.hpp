// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <millrace/error.hpp>
#include <millrace/loader/cuda/detail/batches_on.hpp>
#include <millrace/loader/cuda/detail/find_device.hpp>
#include <millrace/loader/cuda/detail/pipe_options.hpp>
#include <millrace/loader/cuda/detail/profiler_range.hpp>
#include <millrace/loader/cuda/detail/slot_filler.hpp>
#include <millrace/loader/cuda/detail/staged_batch.hpp>
#include <millrace/loader/cuda/detail/static_arrays.hpp>
#include <millrace/loader/cuda/device_batch.hpp>
#include <millrace/loader/detail/batch/next_result.hpp>
#include <millrace/loader/detail/memory/bounded_end.hpp>
#include <millrace/loader/detail/memory/home_process.hpp>
#include <millrace/loader/detail/telemetry/stage.hpp>
#include <millrace/loader/detail/telemetry/telemetry.hpp>

namespace millrace::loader::cuda {

/// Brings the batches of a source to a device. For each batch, the pipe copies the source's slot in
/// the dataset's token width, and then runs one kernel that makes the fields. Copies and kernels
/// run on streams of the pipe. In this diagram, names in parentheses are CUDA events.
///
///   source    next() ............ released when copied
///   copies    copy -> (copied)
///   kernels            kernel waits for (copied) and the slot's (released) -> (ready)
///   consumer                                  next() waits on its stream for (ready)
///                                             ... uses the batch ... destroying it records
///                                             (released)
///
/// The pipe's own thread does the first three lines, `look_ahead` batches in advance. On the
/// consumer's side, only streams wait for the device. The consumer's thread waits only for a batch
/// that the pipe has not submitted yet. Without a device, the pipe makes the same batches on the
/// host if the options allow it (`report()` says why), and ignores streams. Nothing else changes.
///
/// Use a pipe from one thread; batches may be destroyed on other threads. The pipe holds at most
/// two slots of the source at a time, each until its copy is done. In a process forked from the one
/// that created the pipe, `next()` throws and destructors do nothing.
class device_pipe {
 public:
  /// @param api      `runtime_api()`, or a test's replacement
  /// @param largest  the upper limit: no batch of the source has more rows, tokens or bytes
  /// @throws config_error  an option is out of range, or there is no device and `no_device` is
  ///                       `no_device_rule::error`
  /// @throws cuda_error    the device is out of memory or broken, or this build has no kernels for
  ///                       it
  /// @throws std::system_error, std::bad_alloc  the thread cannot be started
  device_pipe(const cuda_api* api, const slot_layout& largest, const device_options& options,
              batch_source source);
  device_pipe(const device_pipe&) = delete;
  device_pipe& operator=(const device_pipe&) = delete;

  /// Stops the thread. Waits at most `device_options::end_within` for the thread, and at most as
  /// long again for the operations that use the memory of the slots. These may take longer, because
  /// the consumer's stream may wait for another rank. In that case, the destruction continues in
  /// the background, and `ends_of_process` reports it.
  ~device_pipe();

  /// Stops the thread and waits, without a time limit, until the pipe no longer uses the source.
  void stop();

  /// Returns the next batch, or nothing after the last one. Operations submitted to `on` after this
  /// call see filled arrays.
  ///
  /// @param on  the consumer's stream; destroying the batch records an event on it. Null means the
  ///            default stream of the pipe's device, even if the calling thread's current device is
  ///            another one.
  /// @throws config_error  the caller holds every slot and must destroy a batch first; or `on` is
  ///                       `cudaStreamPerThread`; or `on` is being captured into a CUDA graph
  /// @throws error  an error of the source, or a `cuda_error` from the pipe's thread or from
  ///                destroying a batch. Each is thrown once; the pipe is then finished.
  std::optional<device_batch> next(stream on);

  /// Like next(), but waits no longer than `timeout`, so that a caller can check for signals.
  /// Telemetry counts several calls for one batch as one wait.
  /// @throws as next
  next_result<device_batch> next_for(stream on, std::chrono::nanoseconds timeout);

  /// Writes the next batch into the caller's arrays, for consumers that need the same addresses at
  /// every step, such as a CUDA graph. Returns nothing after the last batch.
  ///
  /// A kernel on the stream `on` copies the arrays after all earlier operations of that stream. The
  /// pipe's slot is released after this kernel. The kernel that makes the fields cannot write to
  /// the caller's arrays itself: it would have to wait until the previous step has read them, and
  /// so could not run in advance. The copy takes one launch. With 64-bit ids, position ids and a
  /// loss mask, it moves 56 bytes per token.
  ///
  /// If the batch has fewer rows than the arrays, the other rows stay unchanged. If it has no rows,
  /// cu_seqlens stays unchanged, too. A call of this function cannot be captured into a CUDA graph.
  ///
  ///   // `step` is an executable graph that reads the arrays in `inputs`.
  ///   while (pipe.next_into(inputs, stream)) cudaGraphLaunch(step, stream);
  ///
  /// @param to  arrays on the pipe's device; on the host path, in host memory
  /// @throws config_error  the arrays have the wrong shape, type or device; no batch is lost
  /// @throws cuda_error    the copy cannot be launched; the pipe is then finished
  /// @throws as `next`
  std::optional<static_batch> next_into(const static_arrays& to, stream on);

  /// Returns the remaining batches, for a consumer whose stream is `on`:
  ///
  ///   for (auto& batch : pipe.on(stream)) step(batch.tokens(), batch.labels());
  batches_on<device_pipe> on(stream on) { return {*this, on}; }

  /// May be called on any thread.
  pipe_report report() const;

  /// Shows where the pipe's time went: the consumer's waits in `next()`, their causes, and the
  /// number of batches that were ready when a wait began. `storage` and `gather` are the pipe's
  /// waits for the source. `copy` is the time of the copy and of the operations queued after it.
  /// The meter does not count the time that the device waits for a batch that `next()` has already
  /// returned. Never null; reports may be read from any thread.
  std::shared_ptr<const telemetry> meter() const noexcept { return meter_; }

 private:
  /// What is known when a wait for a batch begins.
  struct wait_begin {
    std::int64_t asked_ns = 0;
    std::int64_t ready = 0;  // batches that were ready
  };

  bool begin_wait(stream on);
  std::optional<device_batch> take(stream on);
  void refuse_capture(stream on) const;
  void copy_into(const static_arrays& to, const batch_work& from, stream on) const;
  void raise_failure();
  const profiler_marks* marks() const noexcept;

  home_process home_;
  device_options options_;
  std::optional<std::int64_t> count_;  // number of the source's batches, if known
  device_answer answer_;
  std::size_t slots_;
  std::shared_ptr<detail::pipe_state> state_;
  std::shared_ptr<telemetry> meter_;
  std::int64_t served_ = 0;
  // set while a wait for a batch is unfinished, even after `next_for` gave up
  std::optional<wait_begin> waiting_;
  bool finished_ = false;  // the consumer has received an error, or called `stop()`
  slot_layout largest_;
  static_arrays fitting_;  // arrays that next_into has checked
  std::unique_ptr<detail::slot_filler, delete_in_time> filler_;
};

// ---------------------------------------------------------------------------------------------

namespace detail {

// The most slots that are being filled or are ready: one per batch of look-ahead, and one to fill.
inline std::int64_t ahead_of(const device_options& options) {
  return options.look_ahead + 1;
}

// The number of slots: `ahead_of(options)`, plus the slots that the consumer may hold, but no more
// than there are batches.
inline std::size_t slots_of(const device_options& options, const batch_source& source) {
  const auto check = [](const char* name, std::int64_t value) {
    if (value >= 1 && value <= 1024) return;
    throw config_error(std::string(name) + " is " + std::to_string(value) + ", expected 1 to 1024");
  };
  check("look_ahead", options.look_ahead);
  check("held", options.held);
  std::int64_t slots = ahead_of(options) + options.held;
  if (source.count) slots = std::clamp<std::int64_t>(*source.count, 1, slots);
  return static_cast<std::size_t>(slots);
}

inline std::shared_ptr<telemetry> pipe_meter(const device_options& options, std::size_t slots) {
  telemetry_options meter;
  meter.rank = options.rank;
  meter.slots = static_cast<std::int64_t>(slots);
  meter.trace_events = options.trace_events;
  return std::make_shared<telemetry>(std::move(meter));
}

// Makes a part of a pipe, and a deleter for it. If deleting the part takes longer than the time
// limit, the deleter reports its name. The deleter is made first, because without memory for the
// name, the part would never be deleted.
template <class Part, class... Arguments>
std::unique_ptr<Part, delete_in_time> make_part(const device_options& options, const char* name,
                                                Arguments&&... arguments) {
  delete_in_time end(options.end_within, "the " + std::string(name) + " of rank " +
                                             std::to_string(options.rank) + " on device " +
                                             std::to_string(options.device));
  return {new Part(std::forward<Arguments>(arguments)...), std::move(end)};
}

// Checks that this build can do what the options ask for.
inline const device_options& checked(const device_options& options, const device_answer& answer,
                                     const cuda_api* api) {
  if (!options.profile || !answer.usable || api->marks != nullptr) return options;
  throw config_error(
      "profile is set, but this build has no NVTX: build millrace with a CUDA toolkit that has the "
      "header nvtx3/nvToolsExtCudaRt.h, or leave profile off");
}

}  // namespace detail

inline device_pipe::device_pipe(const cuda_api* api, const slot_layout& largest,
                                const device_options& options, batch_source source)
    : options_(options),
      count_(source.count),
      answer_(find_device(api, options.device, options.no_device)),
      slots_(detail::slots_of(detail::checked(options_, answer_, api), source)),
      state_(detail::make_part<detail::pipe_state>(
          options_, "memory of the device pipe", slots_, detail::ahead_of(options_),
          answer_.usable ? api : nullptr, options_.device, largest, options_.fields)),
      meter_(detail::pipe_meter(options_, slots_)),
      largest_(largest),
      filler_(detail::make_part<detail::slot_filler>(options_, "device pipe", state_, largest,
                                                     options_, std::move(source), meter_)) {}

inline device_pipe::~device_pipe() {
  if (home_.is_here()) filler_->stop();
}

inline void device_pipe::stop() {
  home_.require_here("device_pipe");
  finished_ = true;
  filler_->stop();
  filler_->join();
}

inline bool device_pipe::begin_wait(stream on) {
  home_.require_here("device_pipe");
  detail::refuse_per_thread(on);
  if (finished_) return false;
  raise_failure();
  // This check comes before the check for held slots, because in a short run the caller may hold
  // all slots at the end.
  if (count_ && served_ == *count_) return false;
  if (state_->ring.all_held()) {
    throw config_error(
        "all " + std::to_string(slots_) + " slots of the device ring are still held (held is " +
        std::to_string(options_.held) + ", look_ahead is " + std::to_string(options_.look_ahead) +
        "): destroy a batch, and the tensors made from it, before calling next(), "
        "or raise held");
  }
  if (state_->store.on_device()) refuse_capture(on);
  if (!waiting_) waiting_ = {now_ns(), static_cast<std::int64_t>(state_->ring.ready())};
  return true;
}

inline std::optional<device_batch> device_pipe::next(stream on) {
  const profiler_range range(marks(), "next batch", served_);
  if (!begin_wait(on)) return std::nullopt;
  return take(on);
}

inline next_result<device_batch> device_pipe::next_for(stream on,
                                                       std::chrono::nanoseconds timeout) {
  const profiler_range range(marks(), "next batch", served_);
  if (!begin_wait(on)) return {};
  if (!state_->ring.wait_until(loader::detail::deadline_in(timeout))) return {std::nullopt, true};
  return {take(on)};
}

inline std::optional<device_batch> device_pipe::take(stream on) {
  // The holder is made before a slot is taken, because a slot without a holder would be lost.
  const auto held = std::make_shared<detail::held_slot>(state_, on);
  const wait_begin began = *std::exchange(waiting_, std::nullopt);
  device_slot* slot = state_->ring.take();
  if (slot == nullptr) {
    raise_failure();
    return std::nullopt;
  }
  held->hold(slot);
  meter_->wait(served_, began.asked_ns, now_ns(), began.ready);
  try {
    held->wait_on(on);
  } catch (...) {
    finished_ = true;  // this batch is lost, so the pipe must not serve later batches
    throw;
  }
  ++served_;
  return device_batch(held, answer_.usable ? options_.device : 0);
}

inline const profiler_marks* device_pipe::marks() const noexcept {
  return options_.profile && answer_.usable ? state_->store.api().marks : nullptr;
}

inline void device_pipe::refuse_capture(stream on) const {
  const device_scope scope(state_->store.api(), options_.device);
  if (!is_captured(state_->store.api(), on)) return;
  throw config_error(
      "the consumer's stream is being captured into a CUDA graph, expected a stream that runs its "
      "operations: a graph would read the same batch at every launch. Call next_into() before each "
      "launch, outside of the capture: it writes the batch into arrays of the graph");
}

inline std::optional<static_batch> device_pipe::next_into(const static_arrays& to, stream on) {
  if (to != fitting_) {
    detail::refuse_misfit(to, largest_, options_.fields);
    if (state_->store.on_device()) {
      const device_scope scope(state_->store.api(), options_.device);
      detail::refuse_elsewhere(state_->store.api(), to, options_.fields, options_.device);
    }
    fitting_ = to;
  }
  // Allocates the result before a batch is taken. Without memory, the batch would be lost.
  static_batch result;
  result.positions.reserve(static_cast<std::size_t>(largest_.rows()));
  result.sources.reserve(static_cast<std::size_t>(largest_.rows()));
  const std::optional<device_batch> batch = next(on);  // its slot is released after the copy
  if (!batch) return std::nullopt;
  const device_slot& slot = batch->slot();
  try {
    copy_into(to, batch->work(), on);
    result.positions = slot.positions;
    result.sources = slot.sources;
  } catch (...) {
    finished_ = true;  // as in `take`
    throw;
  }
  result.rows = batch->rows();
  result.cu_seqlens_used = batch->cu_seqlens_used();
  result.max_seqlen = slot.max_seqlen;
  result.number = slot.number;
  return result;
}

inline void device_pipe::copy_into(const static_arrays& to, const batch_work& from,
                                   stream on) const {
  if (from.rows > 0 && from.seq_len != to.seq_len) {
    throw config_error("next_into: a batch has rows of " + std::to_string(from.seq_len) +
                       " tokens, expected " + std::to_string(to.seq_len) +
                       " as in the static arrays");
  }
  const array_copies copies = detail::copies_of(from, to);
  if (state_->store.on_device()) {
    const device_scope scope(state_->store.api(), options_.device);
    check(state_->store.api(), state_->store.api().launch_copies(copies, on), "kernel launch");
    return;
  }
  for (int i = 0; i < copies.count; ++i) {
    const array_copy& each = copies.arrays[i];
    std::memcpy(each.to, each.from, static_cast<std::size_t>(each.bytes));
  }
}

inline void device_pipe::raise_failure() {
  const std::exception_ptr failure = state_->why_failed();
  if (failure == nullptr) return;
  finished_ = true;
  std::rethrow_exception(failure);
}

inline pipe_report device_pipe::report() const {
  pipe_report report{.on_device = answer_.usable, .why = answer_.why, .slots = slots_};
  report.captured = state_->captured;
  filler_->count(report);
  report.threads = filler_->thread().grants();
  return report;
}

}  // namespace millrace::loader::cuda
