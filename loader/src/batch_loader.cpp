// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/batch_loader.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/dataset/run/edited_stream.hpp>
#include <millrace/dataset/run/run.hpp>
#include <millrace/dataset/run/sampler.hpp>
#include <millrace/dataset/run/state.hpp>
#include <millrace/dataset/run/state_compare.hpp>
#include <millrace/dataset/run/stored_run.hpp>
#include <millrace/error.hpp>
#include <millrace/loader/batch.hpp>
#include <millrace/loader/batch/pipeline.hpp>
#include <millrace/loader/options.hpp>
#include <millrace/loader/plan/mixture_weights.hpp>
#include <millrace/loader/telemetry/telemetry.hpp>

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

MILLRACE_INLINE batch_loader::batch_loader(const dataset::indexed_dataset& data,
                                           const loader_options& options)
    : batch_loader(detail::stored_run_of(data, options), options) {}

MILLRACE_INLINE batch_loader::batch_loader(std::shared_ptr<const dataset::run> run,
                                           const loader_options& options)
    : options_(checked(options, *run)),
      run_(std::move(run)),
      stream_(stream_of(options_, options_.edits)),
      sampler_(run_->end(), sampler_of(options_), stream_),
      description_(*run_, options_),
      has_mixture_(!weights_at(run_->description(), 0).empty()) {
  start(std::make_unique<detail::pipeline>(*run_, options_, sampler_));
}

MILLRACE_INLINE void batch_loader::start(std::unique_ptr<detail::pipeline> pipeline) {
  pipeline_ = std::move(pipeline);
  served_ = 0;
  next_weights_ = 0;
  pipeline_->start();  // nothing before it throws: a pipeline that is not started is waited for
}

MILLRACE_INLINE const loader_options& batch_loader::checked(const loader_options& options,
                                                            const dataset::run& run) {
  check(options);
  // The other samplers take positions in another order, or have no steps.
  if (options.sampler == sampler_type::single) run.check_steps(steps_of(options));
  for (const dataset::run_source& each : run.sources()) {
    if (each.type != formats::dtype::float32 && each.type != formats::dtype::float64) continue;
    throw config_error(each.bin.string() + " holds " + std::string(formats::name(each.type)) +
                       ", expected integers");
  }
  if (options.seq_len == 0 || options.seq_len == run.seq_len()) return options;
  throw config_error("seq_len is " + std::to_string(options.seq_len) + ", expected 0 or the " +
                     std::to_string(run.seq_len()) + " of the run");
}

MILLRACE_INLINE std::shared_ptr<const dataset::edited_stream> batch_loader::stream_of(
    const loader_options& options, const std::vector<dataset::edit>& edits) const {
  if (edits.empty()) return nullptr;
  return std::make_shared<const dataset::edited_stream>(
      dataset::edited_positions(*run_, edits, steps_of(options)));
}

MILLRACE_INLINE std::optional<batch> batch_loader::next() {
  // First, since a caller may hold all there are of a short run.
  if (served_ == micro_batches()) return std::nullopt;
  description_.throw_failure();
  const auto& ring = pipeline_->slots();
  // Nobody else takes, so once this is false it stays false, and take() cannot wait for ever.
  if (ring->all_held()) {
    throw config_error(
        "all " + std::to_string(ring->size()) + " batches of the ring are held (look_ahead is " +
        std::to_string(options_.look_ahead) + ", threads is " + std::to_string(options_.threads) +
        "): destroy one before the next, or raise look_ahead");
  }
  const std::int64_t asked_ns = now_ns();
  std::size_t ready = 0;
  detail::batch_slot* slot = ring->take(&ready);
  if (slot == nullptr) return std::nullopt;
  batch taken(ring, slot);
  telemetry& meter = *pipeline_->meter();
  last_stall_ = meter.wait(served_, asked_ns, now_ns(), static_cast<std::int64_t>(ready));
  ++served_;
  if (has_mixture_) count_sources(*slot);
  return taken;
}

// The weights that hold for a step hold for all of its samples.
MILLRACE_INLINE void batch_loader::count_sources(const detail::batch_slot& slot) {
  telemetry& meter = *pipeline_->meter();
  try {
    if (next_weights_ != -1 && slot.number.step >= next_weights_) {
      const dataset::run_state run = run_->description();
      meter.aim(weights_at(run, slot.number.step));
      next_weights_ = next_change(run, slot.number.step);
    }
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch)
    // The batch was taken, and must not be lost for a count. The next one asks again.
  }
  for (const std::int64_t source : slot.sources) meter.served(static_cast<std::size_t>(source), 1);
}

MILLRACE_INLINE dataset::run_state batch_loader::state_at(std::int64_t consumed_samples) const {
  dataset::run_state state = description_.get();
  state.consumed_samples = consumed_samples;
  return state;
}

namespace detail {

/// Documents that are blocked go by the place of their dataset, which may have moved: the edits of
/// `saved` name it as the run does now.
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

MILLRACE_INLINE batch_loader::resumption batch_loader::resumption_from(
    const dataset::run_state& saved, dataset::resume_terms terms) const {
  // Where this loader is does not matter, and next() may be changing it.
  const dataset::run_state now = state_at(saved.consumed_samples);
  dataset::run_state then = saved;
  detail::rename_sources(then, now);
  const bool same_edits = then.edits == options_.edits;
  const dataset::edited_stream none;
  std::shared_ptr<const dataset::edited_stream> saved_stream;
  // What was served by edits that may be others now is not known: they may name what is not there.
  const bool known =
      same_edits || then.edits.empty() || std::ranges::count(terms.allow, "edits") == 0;
  if (known) {
    saved_stream = same_edits ? stream_ : stream_of(options_, then.edits);
    terms.saved_stream = saved_stream ? saved_stream.get() : &none;
    terms.new_stream = stream_ ? stream_.get() : &none;
    if (!terms.steps_done && options_.rampup) {
      terms.steps_done =
          steps_of(options_).done_at(terms.saved_stream->reached(then.consumed_samples));
    }
  }
  dataset::require_same(then, now, terms);

  loader_options options = options_;
  options.consumed_samples = then.consumed_samples;
  const dataset::sampler sampler(run_->end(), sampler_of(options), stream_);
  return {options, sampler, std::make_unique<detail::pipeline>(*run_, options, sampler)};
}

MILLRACE_INLINE void batch_loader::go_on(resumption from) {
  pipeline_.reset();  // its threads ask the run
  options_ = std::move(from.options_);
  sampler_ = std::move(from.sampler_);
  start(std::move(from.pipeline_));
}

}  // namespace millrace::loader
