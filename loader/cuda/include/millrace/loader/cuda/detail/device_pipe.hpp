// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/loader/cuda/detail/batches_on.hpp>
#include <millrace/loader/cuda/detail/find_device.hpp>
#include <millrace/loader/cuda/detail/host_fields.hpp>
#include <millrace/loader/cuda/detail/staged_batch.hpp>
#include <millrace/loader/cuda/detail/static_arrays.hpp>
#include <millrace/loader/cuda/device_batch.hpp>
#include <millrace/loader/detail/memory/named_thread.hpp>
#include <millrace/loader/detail/telemetry/stage.hpp>
#include <millrace/loader/detail/telemetry/telemetry.hpp>

namespace millrace::loader::cuda {

/// Options of a pipe.
struct device_options {
  int device = 0;               ///< index among the devices that the process sees
  std::int64_t look_ahead = 2;  ///< batches prepared on the device in advance
  std::int64_t held = 1;        ///< as in `device_loader_options`
  no_device_rule no_device = no_device_rule::error;
  wanted_fields fields = {};
  batch_rules rules = {};
  std::int64_t rank = 0;         ///< rank for telemetry
  std::size_t trace_events = 0;  ///< events kept for a trace; 0: none
};

/// The location at which a pipe makes its batches, and its counters so far.
struct pipe_report {
  bool on_device = false;
  std::string why;  ///< the device, or the reason why there is none
  std::size_t slots = 0;
  std::int64_t batches = 0;           ///< batches submitted
  std::int64_t tokens = 0;            ///< rows * seq_len, summed over these batches
  std::uint64_t bytes_to_device = 0;  ///< bytes copied for these batches
  /// Batches destroyed while their stream was being captured into a CUDA graph. Their slots are
  /// never used again.
  std::int64_t captured = 0;

  /// The report on one line.
  std::string text() const {
    const std::string served = std::to_string(slots) + " slots, " + std::to_string(batches) +
                               " batches, " + std::to_string(tokens) + " tokens";
    if (!on_device) return "batches are made on the host (" + why + "): " + served;
    std::string text = "batches are made on " + why + ": " + served + ", " +
                       std::to_string(bytes_to_device) + " bytes copied";
    if (captured > 0) {
      text += ", " + std::to_string(captured) + " destroyed during the capture of a CUDA graph";
    }
    return text;
  }
};

/// Brings the batches of a source to a device. Each batch takes one copy of its slot, in the
/// dataset's token width, and one kernel that makes the fields. Both run on the pipe's own stream.
/// Names in parentheses are CUDA events.
///
///   source    next() ...................... released when copied
///   pipe      copy -> (copied) -> kernel -> (ready)
///                                   ^ waits for the slot's (released)
///   consumer                              next() waits on its stream for (ready)
///                                         ... uses the batch ... destroying it records (released)
///
/// The pipe's own thread does the first two lines, `look_ahead` batches in advance. On the
/// consumer's side only streams wait. The host waits only for a batch that has not been submitted
/// yet. Without a device, and if the options allow it, the same batches are made on the host
/// (`report()` says why) and streams are ignored; nothing else changes.
///
/// Use a pipe from one thread; batches may be destroyed on others. The pipe holds one slot of the
/// source at a time, until its copy is done.
class device_pipe {
 public:
  /// @param api      `runtime_api()`, or a test's replacement
  /// @param largest  no batch of the source has more rows, tokens or bytes
  /// @throws config_error  an option is out of range, or there is no device and `no_device` is
  /// `error`
  /// @throws cuda_error    the device is out of memory, broken, or not one that this build is for
  device_pipe(const cuda_api* api, const slot_layout& largest, const device_options& options,
              batch_source source);
  device_pipe(const device_pipe&) = delete;
  device_pipe& operator=(const device_pipe&) = delete;

  /// Stops the thread and waits for the operations that it submitted to the device.
  ~device_pipe() {
    state_->ring.close();
    if (source_.stop) source_.stop();
  }

  /// Returns the next batch, or nothing after the last one. Operations submitted to `on` after this
  /// call see filled arrays.
  ///
  /// @param on  the consumer's stream; destroying the batch records an event on it. Null: the
  ///            default stream of the pipe's device, even if the thread's current device is another
  ///            one.
  /// @throws config_error  the caller holds every slot and must destroy a batch first; or `on` is
  ///                       cudaStreamPerThread, or is being captured into a CUDA graph
  /// @throws error  what the source threw, or a cuda_error from the pipe's thread or from
  ///                destroying a batch. It is thrown once; the pipe is then finished.
  std::optional<device_batch> next(stream on);

  /// Writes the next batch into arrays that the caller gives, for consumers that need the same
  /// addresses at every step, such as a CUDA graph. Returns nothing after the last batch.
  ///
  /// A kernel on `on` copies the arrays, after all operations submitted to `on` before, and the
  /// pipe's slot is released after it. The kernel that makes the fields cannot write into the
  /// arrays itself: it would have to wait until the step before has read them, so it could not run
  /// in advance. The copy is one launch, and moves 56 bytes per token with 64-bit ids,
  /// position ids and a loss mask.
  ///
  /// A batch with fewer rows leaves the other rows as they are; a batch without rows leaves
  /// cu_seqlens as it is, too. The call itself cannot be captured.
  ///
  ///   // `step` is an executable graph that reads the arrays in `inputs`.
  ///   while (pipe.next_into(inputs, stream)) cudaGraphLaunch(step, stream);
  ///
  /// @param to  arrays on the pipe's device; on the host path, in host memory
  /// @throws config_error  the arrays have another shape, type or device; no batch is lost
  /// @throws as `next`
  std::optional<static_batch> next_into(const static_arrays& to, stream on);

  /// The batches, for a consumer that works on `on`:
  ///
  ///   for (auto& batch : pipe.on(stream)) step(batch.tokens(), batch.labels());
  batches_on<device_pipe> on(stream on) { return {*this, on}; }

  /// May be called on any thread.
  pipe_report report() const;

  /// Shows where the pipe's time went: the consumer's waits in next(), the batches in flight at the
  /// time, and what delayed them. `storage` and `gather` are the pipe's waits for the source;
  /// `copy` is the copy and the operations queued after it. Time that the device waits for a batch
  /// already returned by next() is not measured. Never null; reports may be read from any thread.
  std::shared_ptr<const telemetry> meter() const noexcept { return meter_; }

 private:
  /// Times of the last batch of the filling thread, measured after it handed the batch over.
  struct round_times {
    std::int64_t handed_over_ns = 0;
    std::int64_t free_ns = 0;  // time at which the previous batch's kernel had a free slot
    std::int64_t copied_ns = 0;
  };

  using ring_claim = slot_ring<device_slot>::claim;

  void refuse_capture(stream on) const;
  void copy_into(const static_arrays& to, const batch_work& from, stream on) const;
  void raise_failure();
  void fill_slots() noexcept;
  void fill(const ring_claim& claim, const staged_batch& staged);
  std::int64_t tell_begin(std::int64_t micro_batch, const round_times& last);
  std::int64_t wait_for_copy(std::int64_t ticket, const staged_batch& staged);
  void end_copies(const staged_batch& staged) noexcept;
  void send(const ring_claim& claim, const staged_batch& staged);
  void refuse_unfit(const staged_batch& staged) const;

  device_options options_;
  slot_layout largest_;
  batch_source source_;
  device_answer answer_;
  std::size_t slots_;
  std::shared_ptr<detail::pipe_state> state_;
  std::shared_ptr<telemetry> meter_;
  std::int64_t served_ = 0;
  bool finished_ = false;  // a failure on the consumer's side was thrown to the consumer
  static_arrays fitting_;  // arrays that next_into has checked
  std::atomic<std::int64_t> batches_{0};
  std::atomic<std::int64_t> tokens_{0};
  std::atomic<std::uint64_t> bytes_to_device_{0};
  named_thread filler_;  // last, so that it is joined before anything it uses is destroyed
};

// ---------------------------------------------------------------------------------------------

namespace detail {

// The most slots that are being filled or ready: one per batch of look-ahead, and one to fill.
inline std::int64_t ahead_of(const device_options& options) {
  return options.look_ahead + 1;
}

// The number of slots: those ahead, and those that the consumer holds; but no more than there are
// batches.
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

// Rejects cudaStreamPerThread, because this handle means a different stream on each thread. A batch
// may be destroyed on another thread, e.g. by a tensor's deleter. Its event would then not be
// ordered after the operations that used the batch.
inline void refuse_per_thread(stream on) {
  constexpr std::uintptr_t per_thread = 2;  // cudaStreamPerThread
  if (reinterpret_cast<std::uintptr_t>(on) != per_thread) return;
  throw config_error(
      "the consumer's stream is cudaStreamPerThread (handle 2), expected a stream that is the same "
      "on every thread, because batches may be destroyed on another thread: pass a stream of "
      "cudaStreamCreateWithFlags, or null for the default stream");
}

// Keeps what a batch of the source holds until the process ends.
inline void keep_for_good(std::shared_ptr<const void> hold) {
  static std::mutex mutex;
  static auto& kept = *new std::vector<std::shared_ptr<const void>>;
  const std::scoped_lock lock(mutex);
  kept.push_back(std::move(hold));
}

inline std::shared_ptr<telemetry> pipe_meter(const device_options& options, std::size_t slots) {
  telemetry_options meter;
  meter.rank = options.rank;
  meter.slots = static_cast<std::int64_t>(slots);
  meter.trace_events = options.trace_events;
  return std::make_shared<telemetry>(std::move(meter));
}

}  // namespace detail

inline device_pipe::device_pipe(const cuda_api* api, const slot_layout& largest,
                                const device_options& options, batch_source source)
    : options_(options),
      largest_(largest),
      source_(std::move(source)),
      answer_(find_device(api, options.device, options.no_device)),
      slots_(detail::slots_of(options_, source_)),
      state_(std::make_shared<detail::pipe_state>(slots_, detail::ahead_of(options_),
                                                  answer_.usable ? api : nullptr, options_.device,
                                                  largest_, options_.fields)),
      meter_(detail::pipe_meter(options_, slots_)),
      filler_({.name = "mr-device"}, [this] { fill_slots(); }) {}

inline std::optional<device_batch> device_pipe::next(stream on) {
  detail::refuse_per_thread(on);
  if (finished_) return std::nullopt;
  raise_failure();
  // This check comes before the one for held slots: in a short run the caller may hold all of them.
  if (source_.count && served_ == *source_.count) return std::nullopt;
  if (state_->ring.all_held()) {
    throw config_error(
        "all " + std::to_string(slots_) + " slots of the device ring are still held (held is " +
        std::to_string(options_.held) + ", look_ahead is " + std::to_string(options_.look_ahead) +
        "): destroy a batch, and the tensors made from it, before calling next(), "
        "or raise held");
  }
  if (state_->store.on_device()) refuse_capture(on);
  const std::int64_t asked_ns = now_ns();
  std::size_t ready = 0;
  device_slot* slot = state_->ring.take(&ready);
  if (slot == nullptr) {
    raise_failure();
    return std::nullopt;
  }
  meter_->wait(served_, asked_ns, now_ns(), static_cast<std::int64_t>(ready));
  const auto held = std::make_shared<const detail::held_slot>(state_, slot, on);
  if (state_->store.on_device()) {
    // A null stream is the default stream of the current device.
    const device_scope scope(state_->store.api(), options_.device);
    wait(state_->store.api(), on, slot->ready);
  }
  ++served_;
  return device_batch(held, answer_.usable ? options_.device : 0);
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
  const std::optional<device_batch> batch = next(on);  // released after the copy
  if (!batch) return std::nullopt;
  copy_into(to, batch->work(), on);
  const device_slot& slot = batch->slot();
  return static_batch{batch->rows(), batch->cu_seqlens_used(), slot.max_seqlen,
                      slot.number,   slot.positions,           slot.sources};
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

inline void device_pipe::fill_slots() noexcept {
  auto& ring = state_->ring;
  std::int64_t next = 0;  // ticket
  std::exception_ptr failure;
  std::optional<outside_captures> unforbidden;
  try {
    if (answer_.usable) {
      const cuda_api& api = state_->store.api();
      check(api, api.use_device(options_.device), "cudaSetDevice");  // the thread is the pipe's own
      unforbidden.emplace(api);
    }
    round_times last;
    last.handed_over_ns = last.free_ns = last.copied_ns = now_ns();
    producer_log& log = meter_->producer();
    for (;;) {
      const auto claim = ring.acquire_free();
      if (claim.slot == nullptr) return;
      const std::int64_t began_ns = tell_begin(claim.ticket, last);
      const std::optional<staged_batch> staged = source_.next();
      if (!staged) break;
      const std::int64_t staged_ns = now_ns();
      const bool from_storage = staged->kept_by == stall_cause::storage;
      log.stage(from_storage ? loader_stage::storage : loader_stage::gather, claim.ticket, began_ns,
                staged_ns);
      fill(claim, *staged);
      last.handed_over_ns = now_ns();
      log.stage(loader_stage::copy, claim.ticket, staged_ns, last.handed_over_ns);
      ring.publish(claim);
      next = claim.ticket + 1;
      // The source's slot is released at the end of this round and may then be refilled.
      last.free_ns = last.handed_over_ns;
      if (answer_.usable) last.free_ns = wait_for_copy(claim.ticket, *staged);
      last.copied_ns = now_ns();
    }
  } catch (...) {
    failure = std::current_exception();
  }
  ring.finish(next, std::move(failure));
}

// Records what delayed the start of a micro-batch, after its slot became free. Usually this is the
// copy of the previous batch. But if that copy spent more time waiting for a kernel than copying,
// because the kernel waited for the consumer's stream, the delay counts as a wait for a slot that
// the consumer holds.
inline std::int64_t device_pipe::tell_begin(std::int64_t micro_batch, const round_times& last) {
  const std::int64_t now = now_ns();
  producer_log& log = meter_->producer();
  const bool held = last.free_ns - last.handed_over_ns > last.copied_ns - last.free_ns;
  log.slot_wait(micro_batch, held ? last.handed_over_ns : last.copied_ns, now);
  if (micro_batch > 0 && answer_.usable && !held) {
    log.stage(loader_stage::copy, micro_batch, last.free_ns, last.copied_ns);
  }
  return now;
}

// Waits for the previous kernel's slot before it waits for the copy, so that the two waits are
// measured separately. Returns the time at which that kernel had its slot.
inline std::int64_t device_pipe::wait_for_copy(std::int64_t ticket, const staged_batch& staged) {
  const slot_store& store = state_->store;
  try {
    if (ticket > 0) wait_on_host(store.api(), store.free(ticket - 1));
    const std::int64_t free_ns = now_ns();
    wait_on_host(store.api(), store.copied());
    return free_ns;
  } catch (...) {
    end_copies(staged);
    throw;
  }
}

// After a failure, a copy may still be running, and the source's slot is about to be released. If
// the pipe cannot wait for the copy, it never releases the slot: the slot would be filled again
// under a copy, and a batch that was already handed over would be wrong.
inline void device_pipe::end_copies(const staged_batch& staged) noexcept {
  try {
    drain(state_->store.api(), state_->store.copies());
  } catch (...) {  // the first error is the one to report
    detail::keep_for_good(staged.hold);
  }
}

inline void device_pipe::fill(const ring_claim& claim, const staged_batch& staged) {
  refuse_unfit(staged);
  device_slot& slot = *claim.slot;
  const output_layout& outputs = state_->store.outputs();
  slot.work = outputs.work(slot.memory, staged.slot, staged.layout, staged.boundaries,
                           options_.rules, staged.slices);
  slot.max_seqlen = longest_document(slot.work);
  slot.number = staged.number;
  slot.positions.assign(staged.positions.begin(), staged.positions.end());
  slot.sources.assign(staged.sources.begin(), staged.sources.end());
  if (answer_.usable) {
    try {
      send(claim, staged);
    } catch (...) {
      end_copies(staged);
      throw;
    }
  } else {
    fill_on_host(slot.work);
  }
  batches_ += 1;
  tokens_ += staged.layout.rows() * staged.layout.seq_len();
}

inline void device_pipe::send(const ring_claim& claim, const staged_batch& staged) {
  device_slot& slot = *claim.slot;
  const slot_store& store = state_->store;
  const cuda_api& api = store.api();
  const std::size_t bytes = staged.layout.used_bytes(staged.boundaries, staged.slices);
  check(api, api.copy_to_device(store.raw(), staged.slot, bytes, store.copies()),
        "cudaMemcpyAsync");
  record(api, store.copied(), store.copies());
  wait(api, store.copies(), slot.released);
  record(api, store.free(claim.ticket), store.copies());
  const batch_work work = store.outputs().work(slot.memory, store.raw(), staged.layout,
                                               staged.boundaries, options_.rules, staged.slices);
  // A batch without rows launches nothing: CUDA rejects an empty grid.
  if (work.rows > 0) check(api, api.launch_batch(work, store.copies()), "kernel launch");
  record(api, slot.ready, store.copies());
  bytes_to_device_ += bytes;
}

inline void device_pipe::refuse_unfit(const staged_batch& staged) const {
  const slot_layout& layout = staged.layout;
  if (staged.boundaries == 0 && layout.rows() > 0 &&
      options_.rules.positions == position_rule::boundaries) {
    throw config_error(
        "position ids must restart at boundaries, but a batch has no boundaries: make the source "
        "fill in boundaries");
  }
  if (staged.boundaries == 0 && layout.rows() > 0 &&
      (options_.fields.segment_ids || layout.packed())) {
    throw config_error(std::string(layout.packed() ? "rows are packed" : "segment_ids are wanted") +
                       ", but a batch has no boundaries: make the source fill in boundaries");
  }
  const std::int64_t entries = staged.boundaries - layout.rows() + 1;
  const std::int64_t size = options_.fields.cu_seqlens_size;
  if (options_.fields.cu_seqlens && size != 0 && entries > size) {
    throw config_error("a batch has " + std::to_string(entries) +
                       " entries of cu_seqlens, expected at most cu_seqlens_size = " +
                       std::to_string(size) + ": raise cu_seqlens_size");
  }
  if (layout.context_parallel() != largest_.context_parallel()) {
    throw config_error("a batch has a part of each row for a context parallelism of " +
                       std::to_string(layout.context_parallel()) + ", expected " +
                       std::to_string(largest_.context_parallel()) +
                       " as in the layout that the device pipe was created with");
  }
  const std::int64_t most = largest_.rows() * largest_.seq_len();
  if (layout.rows() * layout.seq_len() <= most &&
      layout.capacity_bytes() <= largest_.capacity_bytes()) {
    return;
  }
  throw config_error("a micro-batch of " + std::to_string(layout.rows()) + " rows of " +
                     std::to_string(layout.seq_len()) +
                     " tokens arrived at a device pipe that was created for " +
                     std::to_string(largest_.rows()) + " rows of " +
                     std::to_string(largest_.seq_len()) + ": create it for the largest batch");
}

inline pipe_report device_pipe::report() const {
  return {answer_.usable, answer_.why,      slots_,          batches_,
          tokens_,        bytes_to_device_, state_->captured};
}

}  // namespace millrace::loader::cuda
