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

#include <millrace/dataset/detail/packing/context_parallel.hpp>
#include <millrace/dataset/detail/run/edited_stream.hpp>
#include <millrace/error.hpp>
#include <millrace/loader/detail/batch/batch_slot.hpp>
#include <millrace/loader/detail/batch/context_cut.hpp>
#include <millrace/loader/detail/batch/fill_turns.hpp>
#include <millrace/loader/detail/batch/fill_worker.hpp>
#include <millrace/loader/detail/batch/host_fields.hpp>
#include <millrace/loader/detail/batch/row_masks.hpp>
#include <millrace/loader/detail/batch/slot_layout.hpp>
#include <millrace/loader/detail/io/make_reader.hpp>
#include <millrace/loader/detail/memory/home_process.hpp>
#include <millrace/loader/detail/memory/named_thread.hpp>
#include <millrace/loader/detail/plan/context_plan.hpp>
#include <millrace/loader/detail/plan/look_ahead.hpp>
#include <millrace/loader/detail/plan/mixture_weights.hpp>
#include <millrace/loader/detail/ranks/context_slices.hpp>
#include <millrace/loader/detail/telemetry/stage.hpp>
#include <millrace/loader/detail/telemetry/telemetry.hpp>
#include <millrace/loader/detail/verify/data_verifier.hpp>
#include <millrace/loader/options.hpp>

namespace millrace::loader::detail {

// With context parallelism, attention kernels accept `cu_seqlens` only if each document divides
// evenly among the ranks. So packed rows need documents padded to such lengths, and other rows
// cannot have `cu_seqlens`.
MILLRACE_INLINE void check_context(const loader_options& options, const dataset::run& run) {
  const std::int64_t cp = options.context_parallel;
  if (cp == 1) return;
  (void)context_slices(run.seq_len(), cp, options.cp_rank);
  if (run.packed()) {
    dataset::check_cu_seqlens({.context_parallel = cp}, run.description().pad_documents_to);
  } else if (options.fields.cu_seqlens) {
    refuse_cut_cu_seqlens(cp);
  }
}

MILLRACE_INLINE loader_options checked(loader_options options, const dataset::run& run) {
  check(options);
  // `check_steps` applies only to the single sampler: other samplers use positions in another
  // order, or have no steps.
  if (options.sampler == sampler_type::single) run.check_steps(steps_of(options));
  for (const dataset::run_source& each : run.sources()) {
    if (each.type != formats::dtype::float32 && each.type != formats::dtype::float64) continue;
    throw config_error(each.bin.string() + " holds " + std::string(formats::name(each.type)) +
                       ", expected integers");
  }
  if (options.seq_len != 0 && options.seq_len != run.seq_len()) {
    throw config_error("seq_len is " + std::to_string(options.seq_len) + ", expected 0 or the " +
                       std::to_string(run.seq_len()) + " of the run");
  }
  check_context(options, run);
  if (options.fields.cu_seqlens_padded && !run.packed()) refuse_padded_cu_seqlens();
  options.mask_bits = (options.mask_bits || options.fields.loss_mask) &&
                      options.masks != mask_alignment::ignored && row_masks::any(run.sources());
  options.boundaries = options.boundaries || options.mask_bits;
  return options;
}

MILLRACE_INLINE std::shared_ptr<const dataset::edited_stream> stream_of(
    const dataset::run& run, const loader_options& options,
    const std::vector<dataset::edit>& edits) {
  if (edits.empty()) return nullptr;
  return std::make_shared<const dataset::edited_stream>(
      dataset::edited_positions(run, edits, steps_of(options)));
}

MILLRACE_INLINE pipeline::pipeline(const dataset::run& run, const loader_options& options,
                                   const dataset::sampler& sampler)
    : options_(options),
      ring_(make_ring(run, options, sampler.count())),
      turns_(*ring_,
             look_ahead(run, sampler, options.rank, batches_ahead(options, sampler.count()),
                        needs_boundaries(options), context_plan_of(run, options)),
             static_cast<std::size_t>(options.threads)),
      meter_(std::make_shared<telemetry>(meter_options(run, options, ring_->size()))),
      verifier_(make_verifier(run, options)) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(options.threads); ++i) {
    workers_.push_back(make_worker(run, options, verifier_.get(), meter_->producer(i)));
  }
}

MILLRACE_INLINE fill_worker pipeline::make_worker(const dataset::run& run,
                                                  const loader_options& options,
                                                  data_verifier* verifier, producer_log& log) {
  const std::vector<dataset::run_source> sources = run.sources();
  std::vector<data_file> files = files_of(sources);
  std::vector<formats::dtype> types = types_of(sources);
  io_options io = options.io;
  if (io.request_bytes == 0) {  // the usual request size: the choice of the back end depends on it
    const auto row = static_cast<std::uint64_t>(run.seq_len() + (run.extra_token() ? 1 : 0));
    const auto chunks = static_cast<std::uint64_t>(
        options.context_parallel == 1 ? 1 : 2 * options.context_parallel);
    io.request_bytes =
        std::max<std::uint64_t>(1, row / chunks * formats::size_bytes(types.front()));
  }
  const fill_options fill{options.fields,
                          {options.field_rules, options.positions_at_boundaries},
                          options.prefetch_samples > 0};
  const bool verify = options.verify.mode != verify_mode::off;
  auto masks = options.mask_bits
                   ? row_masks::open(sources, options.masks, verify, run.last_token_as_label())
                   : std::nullopt;
  auto reader = options.reader ? options.reader(files) : make_reader(files, io);
  return {fill,
          std::move(files),
          std::move(types),
          std::move(reader),
          verifier,
          log,
          std::move(masks),
          context_cut_of(run, options)};
}

MILLRACE_INLINE batch_slot pipeline::make_slot(const slot_layout& layout,
                                               const host_fields& wanted) {
  batch_slot slot(layout, plain_memory(1, layout.capacity_bytes()).front());
  place_host_fields(wanted, std::move(host_memory(wanted, layout, 1).front()), slot);
  return slot;
}

MILLRACE_INLINE slot_layout pipeline::layout_of(const dataset::run& run,
                                                const loader_options& options) {
  const std::int64_t cp = options.context_parallel;
  return {options.batch_size,
          run.seq_len() / cp,
          run.extra_token() && cp == 1,
          width_of(types_of(run.sources())),
          run.packed(),
          cp,
          options.mask_bits,
          run.last_token_as_label()};
}

MILLRACE_INLINE context_cut pipeline::context_cut_of(const dataset::run& run,
                                                     const loader_options& options) {
  const context_rules rules = context_of(run, options);
  if (!rules.cuts()) return {};
  // Each document has at least one position, and at most one more token than positions.
  const std::int64_t tokens = run.seq_len() * (rules.last_token_as_label ? 2 : 1);
  return {rules,
          slot_layout(options.batch_size, tokens, run.extra_token(),
                      width_of(types_of(run.sources())), run.packed(), 1, options.mask_bits)};
}

MILLRACE_INLINE context_rules pipeline::context_of(const dataset::run& run,
                                                   const loader_options& options) {
  context_rules rules;
  rules.context_parallel = options.context_parallel;
  rules.cp_rank = options.cp_rank;
  rules.seq_len = run.seq_len();
  rules.packed = run.packed();
  rules.last_token_as_label = run.last_token_as_label();
  rules.positions_at_boundaries = options.positions_at_boundaries;
  if (options.field_rules.reset_position_ids) rules.eod = options.field_rules.eod;
  rules.pad = options.field_rules.pad;
  return rules;
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

// Omits the mixture if there is only one source or if no weights exist to compare with.
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

/// The memory of a ring's slots. The slots made at the start share one allocation; each later slot
/// has its own.
struct slot_blocks {
  slot_blocks(const slot_layout& shape, const host_fields& wanted, const slot_memory& memory,
              std::size_t at_first)
      : layout(shape),
        fields(wanted),
        first(memory ? memory(at_first, shape.capacity_bytes())
                     : plain_memory(at_first, shape.capacity_bytes())),
        first_on_host(host_memory(wanted, shape, at_first)) {}

  batch_slot make(std::size_t i) const {
    if (i >= first.size()) return pipeline::make_slot(layout, fields);
    batch_slot slot(layout, first[i]);
    place_host_fields(fields, first_on_host[i], slot);
    return slot;
  }

  slot_layout layout;
  host_fields fields;
  std::vector<memory_block> first;
  std::vector<memory_block> first_on_host;
};

// The ring has `look_ahead` slots, `held` slots for the caller, and one slot per thread. It never
// has more slots than there are micro-batches, so no option allocates more memory than the run
// needs. Slots for the caller, except the first, are made only when the caller holds that many
// batches. But if the memory comes from `options.memory`, which is called only once, all slots are
// made at the start.
MILLRACE_INLINE std::shared_ptr<pipeline::ring> pipeline::make_ring(const dataset::run& run,
                                                                    const loader_options& options,
                                                                    std::int64_t batches) {
  const std::int64_t ahead = options.look_ahead + options.threads;
  const std::int64_t slots = std::min(ahead + options.held, batches);
  if (slots == 0) {
    return share_at_home<ring>(std::size_t{0}, [](std::size_t) -> batch_slot { throw 0; });
  }
  const std::int64_t at_first = options.memory ? slots : std::min(ahead + 1, slots);
  auto blocks = std::make_shared<const slot_blocks>(
      layout_of(run, options), options.fields, options.memory, static_cast<std::size_t>(at_first));
  return share_at_home<ring>(
      static_cast<std::size_t>(slots),
      [blocks = std::move(blocks)](std::size_t i) { return blocks->make(i); }, slot_reuse::newest,
      ahead, static_cast<std::size_t>(at_first));
}

MILLRACE_INLINE void pipeline::fill_slots(std::size_t worker) {
  fill_worker& with = workers_[worker];
  fill_turn turn;
  for (;;) {
    const std::int64_t asked_ns = now_ns();
    if (!turns_.take(worker, turn)) return;
    // This worker's slot may have been acquired before this worker asked for a turn.
    const std::int64_t begin_ns = std::max(asked_ns, turn.got_ns);
    std::exception_ptr failure;
    try {
      with.log().slot_wait(turn.claim.ticket, asked_ns, begin_ns);
      with.fill(turn.claim.ticket, turn.batch, turn.ahead, begin_ns, *turn.claim.slot);
    } catch (...) {
      failure = std::current_exception();
    }
    // This call comes after the `catch` block, which shares ownership of the exception. So the
    // consumer becomes the exception's only owner.
    if (failure) return ring_->finish(turn.claim.ticket, std::move(failure));
    ring_->publish(turn.claim);
  }
}

}  // namespace millrace::loader::detail
