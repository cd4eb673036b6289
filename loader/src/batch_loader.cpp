// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/batch_loader.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/dataset/detail/run/edited_stream.hpp>
#include <millrace/dataset/run.hpp>
#include <millrace/dataset/sampler.hpp>
#include <millrace/dataset/state.hpp>
#include <millrace/error.hpp>
#include <millrace/loader/batch.hpp>
#include <millrace/loader/detail/batch/next_result.hpp>
#include <millrace/loader/detail/memory/bounded_end.hpp>
#include <millrace/loader/detail/memory/home_process.hpp>
#include <millrace/loader/detail/pipeline.hpp>
#include <millrace/loader/detail/plan/mixture_weights.hpp>
#include <millrace/loader/detail/state.hpp>
#include <millrace/loader/detail/telemetry/telemetry.hpp>
#include <millrace/loader/loader_report.hpp>
#include <millrace/loader/options.hpp>

namespace millrace::loader {

namespace detail {

MILLRACE_INLINE std::shared_ptr<const dataset::run> stored_run_of(
    const dataset::indexed_dataset& data, const loader_options& options) {
  if (check(options).seq_len > 0) {
    return std::make_shared<const dataset::stored_run>(data, options.seq_len);
  }
  throw config_error("seq_len is 0, expected 1 to 2147483646, the tokens of a row");
}

}  // namespace detail

struct batch_loader::contents {
  contents(std::shared_ptr<const dataset::run> of, const loader_options& asked)
      : name("the batch_loader of rank " + std::to_string(asked.rank)),
        options(detail::checked(asked, *of)),
        run(std::move(of)),
        stream(detail::stream_of(*run, options, options.edits)),
        sampler(run->end(), sampler_of(options), stream),
        description(*run, options),
        has_mixture(!weights_at(run->description(), 0).empty()) {
    start(std::make_unique<detail::pipeline>(*run, options, sampler));
  }

  void start(std::unique_ptr<detail::pipeline> made) {
    pipeline = std::move(made);
    served = 0;
    waiting.reset();
    next_weights = 0;
    // Nothing above may throw. Otherwise `next()` would wait for a pipeline that never started.
    pipeline->start();
  }

  /// Reports the sources of a batch to telemetry. Weights change only between steps.
  void count_sources(const detail::batch_slot& slot) {
    telemetry& meter = *pipeline->meter();
    try {
      if (next_weights != -1 && slot.number.step >= next_weights) {
        const dataset::run_state now = run->description();
        meter.aim(weights_at(now, slot.number.step));
        next_weights = next_change(now, slot.number.step);
      }
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch)
      // The batch has already been taken, so it must not be lost. The weights are updated at the
      // next batch instead.
    }
    for (const std::int64_t source : slot.sources) {
      meter.served(static_cast<std::size_t>(source), 1);
    }
  }

  /// What is known when a wait for a batch begins.
  struct wait_begin {
    std::int64_t asked_ns = 0;
    std::int64_t ready = 0;  // batches that were ready
  };

  /// Begins a wait for the next batch, or continues the wait that is in progress. Returns false
  /// after the last batch.
  /// @throws as batch_loader::next
  bool begin_wait();
  /// Waits until the next batch is ready, and takes it from the ring.
  /// @throws as batch_loader::next
  std::optional<batch> take();

  home_process home;
  std::string name;  // for the report if destroying the loader takes too long
  loader_options options;
  std::shared_ptr<const dataset::run> run;
  std::shared_ptr<const dataset::edited_stream> stream;
  dataset::sampler sampler;
  run_description description;
  bool has_mixture;
  std::int64_t served = 0;
  std::optional<stall_cause> last_stall;
  // set while a wait is unfinished, even after next_for() gave up
  std::optional<wait_begin> waiting;
  std::int64_t next_weights = 0;  // next step at which the mixture's weights change; -1 if never
  std::unique_ptr<detail::pipeline> pipeline;  // last member: its threads use the run
};

struct batch_loader::resumption {
  loader_options options;
  dataset::sampler sampler;
  std::unique_ptr<detail::pipeline> pipeline;
};

MILLRACE_INLINE batch_loader::batch_loader(const dataset::indexed_dataset& data,
                                           const loader_options& options)
    : batch_loader(detail::stored_run_of(data, options), options) {}

MILLRACE_INLINE batch_loader::batch_loader(std::shared_ptr<const dataset::run> run,
                                           const loader_options& options)
    : contents_(std::make_unique<contents>(std::move(run), options)) {}

MILLRACE_INLINE batch_loader::~batch_loader() {
  contents* const all = contents_.release();
  if (!all->home.is_here()) return;
  delete_within(all->options.end_within, std::move(all->name), all);
}

MILLRACE_INLINE void batch_loader::stop() const noexcept {
  contents_->pipeline->stop();
}

MILLRACE_INLINE std::optional<batch> batch_loader::next() {
  if (!contents_->begin_wait()) return std::nullopt;
  return contents_->take();
}

MILLRACE_INLINE next_result<batch> batch_loader::next_for(std::chrono::nanoseconds timeout) {
  if (!contents_->begin_wait()) return {};
  const auto deadline = detail::deadline_in(timeout);
  if (!contents_->pipeline->slots()->wait_until(deadline)) return {std::nullopt, true};
  return {contents_->take()};
}

MILLRACE_INLINE bool batch_loader::contents::begin_wait() {
  home.require_here("batch_loader");
  // At the end of a short run, the caller may hold all batches. That is no error, so this check
  // comes before the check of held slots.
  if (served == sampler.count()) return false;
  description.throw_failure();
  const auto& ring = pipeline->slots();
  // Only this thread takes slots. So if `all_held()` is false now, it stays false, and `take()`
  // will not deadlock.
  if (ring->all_held()) {
    throw config_error("all " + std::to_string(ring->size()) + " slots are still held (held is " +
                       std::to_string(options.held) + ", look_ahead is " +
                       std::to_string(options.look_ahead) + ", threads is " +
                       std::to_string(options.threads) +
                       "): destroy a batch before calling next(), or raise held");
  }
  if (!waiting) waiting = {now_ns(), static_cast<std::int64_t>(ring->ready())};
  return true;
}

MILLRACE_INLINE std::optional<batch> batch_loader::contents::take() {
  const auto& ring = pipeline->slots();
  const wait_begin began = *std::exchange(waiting, std::nullopt);
  detail::batch_slot* slot = ring->take();
  if (slot == nullptr) return std::nullopt;
  batch taken(ring, slot);
  last_stall = pipeline->meter()->wait(served, began.asked_ns, now_ns(), began.ready);
  ++served;
  if (has_mixture) count_sources(*slot);
  return taken;
}

MILLRACE_INLINE std::int64_t batch_loader::consumed_samples() const noexcept {
  return contents_->sampler.consumed_after(contents_->served);
}

MILLRACE_INLINE std::int64_t batch_loader::micro_batches() const noexcept {
  return contents_->sampler.count();
}

MILLRACE_INLINE dataset::run_state batch_loader::state() const {
  return state_at(consumed_samples());
}

MILLRACE_INLINE dataset::run_state batch_loader::state_at(std::int64_t consumed_samples) const {
  contents_->home.require_here("batch_loader");
  dataset::run_state state = contents_->description.get();
  state.consumed_samples = consumed_samples;
  return state;
}

MILLRACE_INLINE slot_layout batch_loader::layout() const {
  return detail::pipeline::layout_of(*contents_->run, contents_->options);
}

MILLRACE_INLINE loader_report batch_loader::observe() const {
  const detail::pipeline& from = *contents_->pipeline;
  const data_verifier* verifier = from.verifier();
  return {.times = from.meter()->report(),
          .readers = from.reader_reports(),
          .threads = from.thread_grants(),
          .verification = verifier == nullptr ? std::nullopt : std::optional(verifier->report())};
}

MILLRACE_INLINE std::shared_ptr<const telemetry> batch_loader::meter() const {
  return contents_->pipeline->meter();
}

MILLRACE_INLINE std::optional<stall_cause> batch_loader::last_stall() const noexcept {
  return contents_->last_stall;
}

namespace detail {

/// Edits of the kind `block` refer to a dataset by its prefix, but the dataset may have moved. This
/// function replaces the prefixes in the edits of `saved` with the prefixes that the run uses now.
MILLRACE_INLINE void rename_sources(dataset::run_state& saved, const dataset::run_state& now) {
  const std::size_t common = std::min(saved.data.size(), now.data.size());
  for (dataset::edit& e : saved.edits) {
    if (e.kind != dataset::edit_kind::block) continue;
    for (std::size_t i = 0; i < common; ++i) {
      if (saved.data[i].prefix != e.source) continue;
      e.source = now.data[i].prefix;
      break;
    }
  }
}

}  // namespace detail

MILLRACE_INLINE void batch_loader::load_state(std::string_view json, dataset::resume_terms terms) {
  load_state(dataset::parse_state(json), std::move(terms));
}

MILLRACE_INLINE void batch_loader::load_state(const dataset::run_state& saved,
                                              dataset::resume_terms terms) {
  go_on(resumption_from(saved, std::move(terms)));
}

MILLRACE_INLINE std::shared_ptr<batch_loader::resumption> batch_loader::resumption_from(
    const dataset::run_state& saved, dataset::resume_terms terms) const {
  const contents& all = *contents_;
  // Uses the saved position. Another thread in `next()` may be changing this loader's own position.
  const dataset::run_state now = state_at(saved.consumed_samples);
  dataset::run_state then = saved;
  detail::rename_sources(then, now);
  const bool same_edits = then.edits == all.options.edits;
  const dataset::edited_stream none;
  std::shared_ptr<const dataset::edited_stream> saved_stream;
  // If `terms` allows other edits, the saved edits may refer to data that no longer exists. It is
  // then impossible to tell which samples were served.
  const bool known =
      same_edits || then.edits.empty() || std::ranges::count(terms.allow, "edits") == 0;
  if (known) {
    saved_stream = same_edits ? all.stream : detail::stream_of(*all.run, all.options, then.edits);
    terms.saved_stream = saved_stream ? saved_stream.get() : &none;
    terms.new_stream = all.stream ? all.stream.get() : &none;
    if (!terms.steps_done && all.options.rampup) {
      terms.steps_done =
          steps_of(all.options).done_at(terms.saved_stream->reached(then.consumed_samples));
    }
  }
  dataset::require_same(then, now, terms);

  loader_options options = all.options;
  options.consumed_samples = then.consumed_samples;
  const dataset::sampler sampler(all.run->end(), sampler_of(options), all.stream);
  return std::make_shared<resumption>(
      resumption{options, sampler, std::make_unique<detail::pipeline>(*all.run, options, sampler)});
}

MILLRACE_INLINE void batch_loader::go_on(const std::shared_ptr<resumption>& from) {
  contents& all = *contents_;
  all.pipeline.reset();  // before the rest, because its threads use the run
  all.options = std::move(from->options);
  all.sampler = std::move(from->sampler);
  all.start(std::move(from->pipeline));
}

}  // namespace millrace::loader
