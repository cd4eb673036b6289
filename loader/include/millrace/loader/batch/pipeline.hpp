// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/loader/batch/batch_slot.hpp>
#include <millrace/loader/batch/fill_turns.hpp>
#include <millrace/loader/batch/fill_worker.hpp>
#include <millrace/loader/batch/host_fields.hpp>
#include <millrace/loader/batch/slot_layout.hpp>
#include <millrace/loader/batch/text_gather.hpp>
#include <millrace/loader/io/make_reader.hpp>
#include <millrace/loader/memory/named_thread.hpp>
#include <millrace/loader/options.hpp>
#include <millrace/loader/plan/look_ahead.hpp>
#include <millrace/loader/plan/micro_batch_sequence.hpp>
#include <millrace/loader/plan/mixture_weights.hpp>
#include <millrace/loader/plan/sample_plan.hpp>
#include <millrace/loader/slot_ring.hpp>
#include <millrace/loader/telemetry/clock.hpp>
#include <millrace/loader/telemetry/telemetry.hpp>
#include <millrace/loader/verify/data_verifier.hpp>

namespace millrace::loader::detail {

/// The threads that fill the slots of a ring with the micro-batches of a run, one behind another.
///
/// Which thread fills which batch is dealt by `fill_turns`; each then reads and fills without any
/// lock. Its destructor closes the ring and joins the threads.
class pipeline {
 public:
  using ring = slot_ring<batch_slot>;

  /// @param plan  must outlive this; its texts are asked for by nobody else once it is started
  /// @throws config_error  a batch does not fit a slot; or what the reader refuses
  pipeline(sample_plan& plan, const loader_options& options, const micro_batch_sequence& numbers);
  pipeline(const pipeline&) = delete;
  pipeline& operator=(const pipeline&) = delete;
  ~pipeline() { ring_->close(); }

  /// Starts the threads. Once.
  /// @throws std::system_error, std::bad_alloc  one cannot be started. The ring ends with that
  ///                                            too, so that nobody waits for batches.
  void start();

  /// Batches keep it, so that they may outlive this.
  const std::shared_ptr<ring>& slots() const noexcept { return ring_; }

  /// Of every slot.
  static slot_layout layout_of(const sample_plan& plan, const loader_options& options) {
    return {options.batch_size, plan.seq_len(), plan.extra_token(), width_of(plan.types()),
            plan.packed()};
  }

  /// Where the threads run, and why not where they were asked to.
  std::vector<grant> thread_grants() const {
    std::vector<grant> all;
    for (const named_thread& each : threads_) {
      all.insert(all.end(), each.grants().begin(), each.grants().end());
    }
    return all;
  }

  /// What each thread's reader was asked and does.
  std::vector<reader_report> reader_reports() const {
    std::vector<reader_report> all;
    for (const fill_worker& each : workers_) all.push_back(each.reader().report());
    return all;
  }

  /// Null where nothing is verified.
  const data_verifier* verifier() const noexcept { return verifier_.get(); }

  const std::shared_ptr<telemetry>& meter() const noexcept { return meter_; }

 private:
  /// No more than there are: each is kept in full but for its tokens.
  static std::int64_t batches_ahead(const loader_options& options, std::int64_t batches) {
    if (options.prefetch_samples == 0) return 0;
    const std::int64_t asked =
        (options.prefetch_samples + options.batch_size - 1) / options.batch_size;
    return std::min(std::max<std::int64_t>(2, asked), batches);
  }
  static std::shared_ptr<ring> make_ring(const sample_plan& plan, const loader_options& options,
                                         std::int64_t batches);
  static std::unique_ptr<data_verifier> make_verifier(const sample_plan& plan,
                                                      const loader_options& options);
  static telemetry_options meter_options(const sample_plan& plan, const loader_options& options,
                                         std::size_t slots);
  void fill_slots(std::size_t worker);

  loader_options options_;
  std::shared_ptr<ring> ring_;
  fill_turns turns_;
  std::shared_ptr<telemetry> meter_;
  std::unique_ptr<data_verifier> verifier_;
  std::deque<fill_worker> workers_;    // a deque, since its elements stay where they are
  std::vector<named_thread> threads_;  // last: joined before anything that they use goes
};

// ---------------------------------------------------------------------------------------------

inline pipeline::pipeline(sample_plan& plan, const loader_options& options,
                          const micro_batch_sequence& numbers)
    : options_(options),
      ring_(make_ring(plan, options, numbers.count())),
      turns_(*ring_,
             look_ahead(plan, numbers, batches_ahead(options, numbers.count()),
                        options.boundaries || options.fields.cu_seqlens),
             static_cast<std::size_t>(options.threads)),
      meter_(std::make_shared<telemetry>(meter_options(plan, options, ring_->size()))),
      verifier_(make_verifier(plan, options)) {
  const std::vector<data_file> files = plan.files();
  io_options io = options.io;
  if (io.request_bytes == 0) {  // what is asked for at a time, which decides what reads best
    const auto row = static_cast<std::uint64_t>(plan.seq_len() + (plan.extra_token() ? 1 : 0));
    io.request_bytes = row * formats::size_bytes(plan.types().front());
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(options.threads); ++i) {
    auto reader = options.reader ? options.reader(files) : make_reader(files, io);
    workers_.emplace_back(options_, files, plan.types(), std::move(reader), verifier_.get(),
                          meter_->producer(i));
  }
}

inline std::unique_ptr<data_verifier> pipeline::make_verifier(const sample_plan& plan,
                                                              const loader_options& options) {
  const verify_options& verify = options.verify;
  if (verify.mode == verify_mode::off && verify.vocab_size == 0) return nullptr;
  std::vector<verified_file> files;
  const std::vector<formats::dtype> types = plan.types();
  for (const data_file& file : plan.files()) files.push_back({file, types[files.size()]});
  return std::make_unique<data_verifier>(files, verify, options.io.reader.files);
}

// One source is no mixture, and without weights there is nothing that it was to be.
inline telemetry_options pipeline::meter_options(const sample_plan& plan,
                                                 const loader_options& options, std::size_t slots) {
  telemetry_options meter;
  meter.rank = options.rank;
  meter.slots = static_cast<std::int64_t>(slots);
  meter.producers = static_cast<std::size_t>(options.threads);
  meter.trace_events = options.trace_events;
  const dataset::run_state run = plan.description();
  const std::vector<double> weights = weights_at(run, 0);
  for (std::size_t s = 0; s < weights.size(); ++s) {
    const dataset::state_source& source = run.data[s];
    meter.mixture.push_back({source.name.empty() ? source.prefix : source.name, weights[s]});
  }
  return meter;
}

inline void pipeline::start() try {
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    thread_setup setup{.name = "mr-fill-" + std::to_string(i)};
    if (!options_.cpus.empty()) setup.cpus = {options_.cpus[i % options_.cpus.size()]};
    threads_.emplace_back(std::move(setup), [this, i] { fill_slots(i); });
  }
} catch (...) {
  ring_->finish(0, std::current_exception());
  throw;
}

// Beside those that are looked ahead, a slot for the caller and one for each thread to work on. No
// more than there are micro-batches, so that no option asks for more memory than the run takes.
inline std::shared_ptr<pipeline::ring> pipeline::make_ring(const sample_plan& plan,
                                                           const loader_options& options,
                                                           std::int64_t batches) {
  const std::int64_t slots = std::min(options.look_ahead + 1 + options.threads, batches);
  if (slots == 0) return std::make_shared<ring>(0, [](std::size_t) -> batch_slot { throw 0; });
  const slot_layout layout = layout_of(plan, options);
  const auto count = static_cast<std::size_t>(slots);
  const std::vector<memory_block> blocks = options.memory
                                               ? options.memory(count, layout.capacity_bytes())
                                               : plain_memory(count, layout.capacity_bytes());
  const std::vector<memory_block> host_blocks = host_memory(options.fields, layout, count);
  return std::make_shared<ring>(count, [&](std::size_t i) {
    batch_slot slot(layout, blocks.at(i));
    place_host_fields(options.fields, host_blocks[i], slot);
    return slot;
  });
}

inline void pipeline::fill_slots(std::size_t worker) {
  fill_worker& with = workers_[worker];
  fill_turn turn;
  for (;;) {
    const std::int64_t asked_ns = now_ns();
    if (!turns_.take(worker, turn)) return;
    // Another worker may have got the slot long before.
    const std::int64_t begin_ns = std::max(asked_ns, turn.got_ns);
    std::exception_ptr failure;
    try {
      with.log().slot_wait(turn.claim.ticket, asked_ns, begin_ns);
      with.fill(turn.claim.ticket, turn.batch, turn.ahead, begin_ns, *turn.claim.slot);
    } catch (...) {
      failure = std::current_exception();
    }
    // Not from the handler, which has a share in the exception: so the consumer is its one owner.
    if (failure) return ring_->finish(turn.claim.ticket, std::move(failure));
    ring_->publish(turn.claim);
  }
}

}  // namespace millrace::loader::detail
