// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/batch_loader.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <millrace/dataset/run.hpp>
#include <millrace/dataset/sampler.hpp>
#include <millrace/error.hpp>
#include <millrace/loader/batch.hpp>
#include <millrace/loader/detail/memory/home_process.hpp>
#include <millrace/loader/detail/pipeline.hpp>
#include <millrace/loader/detail/plan/look_ahead.hpp>
#include <millrace/loader/detail/telemetry/telemetry.hpp>
#include <millrace/loader/options.hpp>

namespace millrace::loader {

namespace detail {

/// The options for reading without a look-ahead: nothing would use prefetched bytes.
MILLRACE_INLINE loader_options reading_options(loader_options options) {
  options.prefetch_samples = 0;
  return options;
}

}  // namespace detail

struct batch_reader::contents {
  contents(std::shared_ptr<const dataset::run> of, const loader_options& given)
      : options(detail::checked(detail::reading_options(given), *of)),
        run(std::move(of)),
        sampler(run->end(), sampler_of(options), detail::stream_of(*run, options, options.edits)),
        context(detail::pipeline::context_plan_of(*run, options)),
        worker(detail::pipeline::make_worker(*run, options, nullptr, meter.producer())) {}

  loader_options options;
  std::shared_ptr<const dataset::run> run;
  dataset::sampler sampler;
  detail::context_plan context;
  telemetry meter;  // required by `worker`; nobody reads it
  detail::fill_worker worker;
};

MILLRACE_INLINE batch_reader::batch_reader(std::shared_ptr<const dataset::run> run,
                                           const loader_options& options)
    : contents_(std::make_unique<contents>(std::move(run), options)) {}

MILLRACE_INLINE batch_reader::batch_reader(batch_reader&&) noexcept = default;
MILLRACE_INLINE batch_reader& batch_reader::operator=(batch_reader&&) noexcept = default;
MILLRACE_INLINE batch_reader::~batch_reader() = default;

MILLRACE_INLINE const dataset::sampler& batch_reader::ranks() const noexcept {
  return contents_->sampler;
}

MILLRACE_INLINE batch batch_reader::at(const batch_place& place) {
  const dataset::sampler& ranks = contents_->sampler;
  const dataset::sampler_options& options = ranks.options();
  if (place.rank < 0 || place.rank >= options.world_size) {
    throw config_error("rank is " + std::to_string(place.rank) + ", expected 0 to " +
                       std::to_string(options.world_size - 1));
  }
  const std::int64_t width = options.width();
  if (0 <= place.step && place.step <= ranks.last_step()) {
    const std::int64_t micro_batches = ranks.steps().samples_of(place.step) / width;
    if (place.micro_batch < 0 || place.micro_batch >= micro_batches) {
      throw config_error("micro_batch is " + std::to_string(place.micro_batch) +
                         ", expected 0 to " + std::to_string(micro_batches - 1));
    }
  }
  // Row 0 of rank 0: if the micro-batch is short, other ranks may have no row.
  const std::int64_t first = ranks.sample_of(
      {.step = place.step, .rank = 0, .slot = place.micro_batch * options.batch_size});
  std::vector<std::int64_t> positions;
  const dataset::batch_number number =
      ranks.batch((first - ranks.first_sample()) / width, place.rank, positions);
  return read(positions, number);
}

MILLRACE_INLINE batch batch_reader::read(std::span<const std::int64_t> positions,
                                         const dataset::batch_number& number) {
  contents& all = *contents_;
  if (std::ssize(positions) > all.options.batch_size) {
    throw config_error("there are " + std::to_string(positions.size()) +
                       " positions, expected at most the batch_size " +
                       std::to_string(all.options.batch_size));
  }
  detail::planned_batch planned;
  planned.number = number;
  planned.positions.assign(positions.begin(), positions.end());
  for (const std::int64_t position : positions) {
    if (0 <= position && position < all.run->end()) continue;
    throw config_error("position is " + std::to_string(position) + ", expected 0 to " +
                       std::to_string(all.run->end() - 1));
  }
  detail::plan_rows(*all.run, detail::pipeline::needs_boundaries(all.options), all.context,
                    planned);
  // A ring of one slot, because a batch returns its slot to a ring.
  auto ring = share_at_home<batch::slots>(
      std::size_t{1},
      [layout = detail::pipeline::layout_of(*all.run, all.options), fields = all.options.fields](
          std::size_t) { return detail::pipeline::make_slot(layout, fields); });
  const auto claim = ring->acquire_free();
  all.worker.fill(0, planned, {}, now_ns(), *claim.slot);
  ring->publish(claim);
  detail::batch_slot* const slot = ring->take();
  return {std::move(ring), slot};
}

}  // namespace millrace::loader
