// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/pipeline.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <millrace/loader/detail/batch/batch_slot.hpp>
#include <millrace/loader/detail/batch/fill_turns.hpp>
#include <millrace/loader/detail/batch/fill_worker.hpp>
#include <millrace/loader/detail/batch/host_fields.hpp>
#include <millrace/loader/detail/batch/slot_layout.hpp>
#include <millrace/loader/detail/io/make_reader.hpp>
#include <millrace/loader/detail/memory/home_process.hpp>
#include <millrace/loader/detail/memory/named_thread.hpp>
#include <millrace/loader/detail/plan/look_ahead.hpp>
#include <millrace/loader/detail/plan/mixture_weights.hpp>
#include <millrace/loader/detail/telemetry/stage.hpp>
#include <millrace/loader/detail/telemetry/telemetry.hpp>
#include <millrace/loader/detail/verify/data_verifier.hpp>
#include <millrace/loader/options.hpp>

namespace millrace::loader::detail {

MILLRACE_INLINE pipeline::pipeline(const dataset::run& run, const loader_options& options,
                                   const dataset::sampler& sampler)
    : options_(options),
      ring_(make_ring(run, options, sampler.count())),
      turns_(*ring_,
             look_ahead(run, sampler, options.rank, batches_ahead(options, sampler.count()),
                        options.boundaries || options.fields.cu_seqlens),
             static_cast<std::size_t>(options.threads)),
      meter_(std::make_shared<telemetry>(meter_options(run, options, ring_->size()))),
      verifier_(make_verifier(run, options)) {
  const std::vector<dataset::run_source> sources = run.sources();
  const std::vector<data_file> files = files_of(sources);
  const std::vector<formats::dtype> types = types_of(sources);
  io_options io = options.io;
  if (io.request_bytes == 0) {  // the usual request size, which decides which back end is best
    const auto row = static_cast<std::uint64_t>(run.seq_len() + (run.extra_token() ? 1 : 0));
    io.request_bytes = row * formats::size_bytes(types.front());
  }
  const fill_options fill{options.fields, options.field_rules, options.prefetch_samples > 0};
  for (std::size_t i = 0; i < static_cast<std::size_t>(options.threads); ++i) {
    auto reader = options.reader ? options.reader(files) : make_reader(files, io);
    workers_.emplace_back(fill, files, types, std::move(reader), verifier_.get(),
                          meter_->producer(i));
  }
}

MILLRACE_INLINE std::unique_ptr<data_verifier> pipeline::make_verifier(
    const dataset::run& run, const loader_options& options) {
  const verify_options& verify = options.verify;
  if (verify.mode == verify_mode::off && verify.vocab_size == 0) return nullptr;
  std::vector<verified_file> files;
  const std::vector<dataset::run_source> sources = run.sources();
  for (const data_file& file : files_of(sources)) {
    files.push_back({file, sources[files.size()].type});
  }
  return std::make_unique<data_verifier>(files, verify, options.io.reader.files);
}

// Omits the mixture if there is only one source, or if there are no weights to compare with.
MILLRACE_INLINE telemetry_options pipeline::meter_options(const dataset::run& run,
                                                          const loader_options& options,
                                                          std::size_t slots) {
  telemetry_options meter;
  meter.rank = options.rank;
  meter.slots = static_cast<std::int64_t>(slots);
  meter.producers = static_cast<std::size_t>(options.threads);
  meter.trace_events = options.trace_events;
  const dataset::run_state described = run.description();
  const std::vector<double> weights = weights_at(described, 0);
  for (std::size_t s = 0; s < weights.size(); ++s) {
    const dataset::state_source& source = described.data[s];
    meter.mixture.push_back({source.name.empty() ? source.prefix : source.name, weights[s]});
  }
  return meter;
}

MILLRACE_INLINE void pipeline::start() try {
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    thread_setup setup{.name = "mr-fill-" + std::to_string(i)};
    setup.cpus = options_.near_cpus;
    if (!options_.cpus.empty()) setup.cpus = {options_.cpus[i % options_.cpus.size()]};
    threads_.emplace_back(std::move(setup), [this, i] { fill_slots(i); });
  }
} catch (...) {
  ring_->finish(0, std::current_exception());
  throw;
}

// There are look_ahead slots, those that the caller holds, and one per thread. There are at most as
// many slots as micro-batches, so that no option allocates more memory than the run needs.
MILLRACE_INLINE std::shared_ptr<pipeline::ring> pipeline::make_ring(const dataset::run& run,
                                                                    const loader_options& options,
                                                                    std::int64_t batches) {
  const std::int64_t ahead = options.look_ahead + options.threads;
  const std::int64_t slots = std::min(ahead + options.held, batches);
  if (slots == 0) {
    return share_at_home<ring>(std::size_t{0}, [](std::size_t) -> batch_slot { throw 0; });
  }
  const slot_layout layout = layout_of(run, options);
  const auto count = static_cast<std::size_t>(slots);
  const std::vector<memory_block> blocks = options.memory
                                               ? options.memory(count, layout.capacity_bytes())
                                               : plain_memory(count, layout.capacity_bytes());
  const std::vector<memory_block> host_blocks = host_memory(options.fields, layout, count);
  const auto make = [&](std::size_t i) {
    batch_slot slot(layout, blocks.at(i));
    place_host_fields(options.fields, host_blocks[i], slot);
    return slot;
  };
  return share_at_home<ring>(count, make, slot_reuse::newest, ahead);
}

MILLRACE_INLINE void pipeline::fill_slots(std::size_t worker) {
  fill_worker& with = workers_[worker];
  fill_turn turn;
  for (;;) {
    const std::int64_t asked_ns = now_ns();
    if (!turns_.take(worker, turn)) return;
    // Another worker may have acquired the slot long before this turn.
    const std::int64_t begin_ns = std::max(asked_ns, turn.got_ns);
    std::exception_ptr failure;
    try {
      with.log().slot_wait(turn.claim.ticket, asked_ns, begin_ns);
      with.fill(turn.claim.ticket, turn.batch, turn.ahead, begin_ns, *turn.claim.slot);
    } catch (...) {
      failure = std::current_exception();
    }
    // This is after the exception handler, which shares ownership of the exception. So the consumer
    // is its only owner.
    if (failure) return ring_->finish(turn.claim.ticket, std::move(failure));
    ring_->publish(turn.claim);
  }
}

}  // namespace millrace::loader::detail
