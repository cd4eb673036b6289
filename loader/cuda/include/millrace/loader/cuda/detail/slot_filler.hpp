// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/loader/cuda/detail/host_fields.hpp>
#include <millrace/loader/cuda/detail/pipe_options.hpp>
#include <millrace/loader/cuda/detail/pipe_state.hpp>
#include <millrace/loader/cuda/detail/profiler_range.hpp>
#include <millrace/loader/cuda/detail/staged_batch.hpp>
#include <millrace/loader/detail/memory/named_thread.hpp>
#include <millrace/loader/detail/telemetry/stage.hpp>
#include <millrace/loader/detail/telemetry/telemetry.hpp>

namespace millrace::loader::cuda::detail {

/// Keeps `hold`, and so the source's slot that it holds, until the process ends.
inline void keep_for_good(std::shared_ptr<const void> hold) noexcept {
  static std::mutex mutex;
  try {
    static auto& kept = *new std::vector<std::shared_ptr<const void>>;
    const std::scoped_lock lock(mutex);
    kept.push_back(hold);
  } catch (...) {  // there is no memory for the list
    union never_destroyed {
      std::shared_ptr<const void> owner;
      ~never_destroyed() {}  // NOLINT(modernize-use-equals-default): it would not compile
    };
    const never_destroyed forgotten{std::move(hold)};
  }
}

/// A pipe's thread, together with everything that the thread uses. The thread fills the slots of
/// the pipe's ring. The filler outlives the pipe if the pipe cannot wait for the thread.
///
/// For each batch, the thread submits a copy to one stream and a kernel to another. It then hands
/// the slot to the consumer at once, and submits the next copy while the current copy runs. When
/// the thread finds that a copy is done, it releases the source's slot of that copy. It waits for a
/// copy only if two copies are running.
class slot_filler {
 public:
  /// @param largest  the upper limit: no batch of the source has more rows, tokens or bytes
  /// @throws std::system_error, std::bad_alloc  the thread cannot be started
  slot_filler(std::shared_ptr<pipe_state> state, const slot_layout& largest,
              const device_options& options, batch_source source, std::shared_ptr<telemetry> meter)
      : state_(std::move(state)),
        largest_(largest),
        options_(options),
        source_(std::move(source)),
        meter_(std::move(meter)),
        thread_({.name = "mr-device", .cpus = options.cpus}, [this] { run(); }) {}
  slot_filler(const slot_filler&) = delete;
  slot_filler& operator=(const slot_filler&) = delete;
  /// Waits for the thread.
  ~slot_filler() { stop(); }

  /// Makes the thread end soon. After this call, the thread may still be waiting for a copy. May be
  /// called on any thread.
  void stop() noexcept {
    state_->ring.close();
    if (source_.stop) source_.stop();
  }

  /// Waits for the thread. After that, nothing uses the source.
  void join() {
    if (thread_.joinable()) thread_.join();
  }

  const named_thread& thread() const noexcept { return thread_; }
  /// Writes the counters into a report.
  void count(pipe_report& report) const noexcept {
    report.batches = batches_;
    report.tokens = tokens_;
    report.bytes_to_device = bytes_to_device_;
  }

 private:
  using ring_claim = slot_ring<device_slot>::claim;

  /// A copy that may still be running.
  struct flight {
    std::shared_ptr<const void> hold;  // the source's slot
    event copied = nullptr;            // null: there is no copy
    /// Completes when the copy may begin, which is when the kernel of an earlier batch is done.
    /// Null if the copy does not wait for a kernel.
    event may_begin = nullptr;
  };

  /// Times of the thread's last round.
  struct round_times {
    std::int64_t handed_over_ns = 0;
    std::int64_t began_ns = 0;  // when the copy of that batch could begin
    std::int64_t copied_ns = 0;
  };

  void run() noexcept;
  void serve(std::int64_t& next);
  void name_for_profiler() const;
  std::int64_t tell_begin(std::int64_t micro_batch, const round_times& last);
  round_times wait_for_copies();
  void wait_for_last_copy();
  void end_copies() noexcept;
  void fill(const ring_claim& claim, const staged_batch& staged);
  void send(const ring_claim& claim, const staged_batch& staged);
  void refuse_unfit(const staged_batch& staged) const;

  bool on_device() const noexcept { return state_->store.on_device(); }
  const cuda_api& api() const noexcept { return state_->store.api(); }
  const profiler_marks* marks() const noexcept {
    return options_.profile && on_device() ? api().marks : nullptr;
  }

  const std::shared_ptr<pipe_state> state_;
  const slot_layout largest_;
  const device_options options_;
  const batch_source source_;
  const std::shared_ptr<telemetry> meter_;
  std::atomic<std::int64_t> batches_{0};
  std::atomic<std::int64_t> tokens_{0};
  std::atomic<std::uint64_t> bytes_to_device_{0};

  // Only the thread uses these members.
  std::array<raw_block, slot_store::raw_blocks> raw_;
  flight last_;     // the previous batch, once the current one is sent
  flight current_;  // the batch that is being sent

  // the last member, so that the thread is joined before the members it uses are destroyed
  named_thread thread_;
};

// ---------------------------------------------------------------------------------------------

inline void slot_filler::run() noexcept {
  std::int64_t next = 0;  // the first ticket whose slot is not filled
  std::exception_ptr failure;
  std::optional<outside_captures> unforbidden;
  try {
    if (on_device()) {
      // permanent, because the pipe owns this thread
      check(api(), api().use_device(options_.device), "cudaSetDevice");
      unforbidden.emplace(api());
      for (std::size_t i = 0; i < raw_.size(); ++i) raw_[i] = state_->store.raw(i);
      name_for_profiler();
    }
    serve(next);
    wait_for_last_copy();
  } catch (...) {
    failure = std::current_exception();
    end_copies();
  }
  last_ = current_ = {};
  state_->ring.finish(next, std::move(failure));
}

inline void slot_filler::serve(std::int64_t& next) {
  auto& ring = state_->ring;
  producer_log& log = meter_->producer();
  round_times last;
  last.handed_over_ns = last.began_ns = last.copied_ns = now_ns();
  for (;;) {
    const auto claim = ring.acquire_free();
    if (claim.slot == nullptr) return;
    const std::int64_t began_ns = tell_begin(claim.ticket, last);
    // Releases the slot of a finished copy now, because the source may be waiting for that slot.
    if (last_.copied != nullptr && is_done(api(), last_.copied)) last_ = {};
    const profiler_range range(marks(), "fill batch", claim.ticket);
    const std::optional<staged_batch> staged = source_.next();
    if (!staged) return;
    const std::int64_t staged_ns = now_ns();
    const bool from_storage = staged->kept_by == stall_cause::storage;
    log.stage(from_storage ? loader_stage::storage : loader_stage::gather, claim.ticket, began_ns,
              staged_ns);
    fill(claim, *staged);
    const std::int64_t handed_over_ns = now_ns();
    log.stage(loader_stage::copy, claim.ticket, staged_ns, handed_over_ns);
    ring.publish(claim);
    next = claim.ticket + 1;
    last = wait_for_copies();
    last.handed_over_ns = handed_over_ns;
  }
}

inline void slot_filler::name_for_profiler() const {
  if (marks() == nullptr) return;
  marks()->name_thread("mr-device");
  marks()->name_stream(state_->store.copies(), "millrace copies");
  marks()->name_stream(state_->store.kernels(), "millrace kernels");
}

// Records what delayed the start of a micro-batch after its slot became free. Usually the delay is
// the wait for earlier copies. But a copy may have waited for a kernel longer than it copied,
// because that kernel waited for the consumer's stream. The delay then counts as a wait for a slot
// that the consumer holds.
inline std::int64_t slot_filler::tell_begin(std::int64_t micro_batch, const round_times& last) {
  const std::int64_t now = now_ns();
  producer_log& log = meter_->producer();
  const bool held = last.began_ns - last.handed_over_ns > last.copied_ns - last.began_ns;
  log.slot_wait(micro_batch, held ? last.handed_over_ns : last.copied_ns, now);
  if (micro_batch > 0 && on_device() && !held) {
    log.stage(loader_stage::copy, micro_batch, last.began_ns, last.copied_ns);
  }
  return now;
}

// Waits until no copy is running except the one just sent. Usually this takes no time.
//
// If the copy just sent must wait for a kernel, this function waits for that kernel first, so that
// the two waits are measured separately. The first wait costs nothing. Either the kernel is done
// before the earlier copy, or the consumer's stream is late and there is no hurry.
inline slot_filler::round_times slot_filler::wait_for_copies() {
  round_times times;
  if (current_.may_begin != nullptr) wait_on_host(api(), current_.may_begin);
  times.began_ns = now_ns();
  if (last_.copied != nullptr) wait_on_host(api(), last_.copied);
  times.copied_ns = now_ns();
  last_ = std::exchange(current_, {});  // releases the source's slot
  return times;
}

inline void slot_filler::wait_for_last_copy() {
  if (last_.copied != nullptr) wait_on_host(api(), last_.copied);
}

// After a failure, copies may still be running, and the thread is about to release the source's
// slots. If it cannot wait for the copies, it never releases these slots. Otherwise the source
// would refill them during a copy and spoil a batch that was already handed over.
inline void slot_filler::end_copies() noexcept {
  if (last_.copied == nullptr && current_.copied == nullptr) return;
  try {
    drain(api(), state_->store.copies());
  } catch (...) {  // the first error is the one to report
    state_->store.keep_memory();
    for (flight* each : {&last_, &current_}) keep_for_good(std::move(each->hold));
  }
}

inline void slot_filler::fill(const ring_claim& claim, const staged_batch& staged) {
  refuse_unfit(staged);
  device_slot& slot = *claim.slot;
  const output_layout& outputs = state_->store.outputs();
  slot.work = outputs.work(slot.memory, staged.slot, staged.layout, staged.boundaries,
                           options_.rules, staged.slices);
  slot.max_seqlen = longest_document(slot.work);
  slot.number = staged.number;
  slot.positions.assign(staged.positions.begin(), staged.positions.end());
  slot.sources.assign(staged.sources.begin(), staged.sources.end());
  if (on_device()) {
    send(claim, staged);
  } else {
    fill_on_host(slot.work);
  }
  batches_ += 1;
  tokens_ += staged.layout.rows() * staged.layout.seq_len();
}

inline void slot_filler::send(const ring_claim& claim, const staged_batch& staged) {
  device_slot& slot = *claim.slot;
  const slot_store& store = state_->store;
  raw_block& raw = raw_[static_cast<std::size_t>(claim.ticket) % raw_.size()];
  const std::size_t bytes = staged.layout.used_bytes(staged.boundaries, staged.slices);
  current_ = {staged.hold, raw.copied, nullptr};
  if (raw.read != nullptr && !is_done(api(), raw.read)) {
    wait(api(), store.copies(), raw.read);
    current_.may_begin = raw.read;
  }
  check(api(), api().copy_to_device(raw.memory, staged.slot, bytes, store.copies()),
        "cudaMemcpyAsync");
  record(api(), raw.copied, store.copies());
  wait(api(), store.kernels(), raw.copied);
  state_->wait_for_users(slot, store.kernels());
  const batch_work work = store.outputs().work(slot.memory, raw.memory, staged.layout,
                                               staged.boundaries, options_.rules, staged.slices);
  // A batch without rows launches nothing: CUDA rejects an empty grid.
  if (work.rows > 0) check(api(), api().launch_batch(work, store.kernels()), "kernel launch");
  record(api(), slot.ready, store.kernels());
  raw.read = slot.ready;
  bytes_to_device_ += bytes;
}

inline void slot_filler::refuse_unfit(const staged_batch& staged) const {
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
  const bool has_cu_seqlens = options_.fields.cu_seqlens || options_.fields.cu_seqlens_padded;
  if (has_cu_seqlens && size != 0 && entries > size) {
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

}  // namespace millrace::loader::cuda::detail
