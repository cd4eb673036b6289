// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/sampler.hpp>

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <millrace/dataset/detail/instant/schedule.hpp>
#include <millrace/dataset/detail/megatron/cyclic_layout.hpp>
#include <millrace/dataset/detail/run/batch_steps.hpp>
#include <millrace/dataset/detail/run/edited_stream.hpp>
#include <millrace/error.hpp>

namespace millrace::dataset {

/// An LRU cache of the shuffles of the cyclic sampler's passes. Some ranks can be one pass ahead of
/// the others, so lookups may alternate between two passes.
class sampler::draws {
 public:
  using pointer = std::shared_ptr<const drawn_order>;

  explicit draws(std::size_t most_kept) : most_kept_(most_kept) {}

  pointer get(std::int64_t epoch, std::int64_t size) {
    const std::lock_guard lock(mutex_);
    for (auto each = drawn_.begin(); each != drawn_.end(); ++each) {
      if (each->first != epoch) continue;
      drawn_.splice(drawn_.begin(), drawn_, each);
      return each->second;
    }
    while (drawn_.size() >= most_kept_) drawn_.pop_back();  // evict first, to limit peak memory
    drawn_.emplace_front(epoch, std::make_shared<const drawn_order>(epoch, size));
    return drawn_.front().second;
  }

 private:
  std::mutex mutex_;
  std::size_t most_kept_;
  std::list<std::pair<std::int64_t, pointer>> drawn_;  // most recently used first
};

namespace detail {

MILLRACE_INLINE void require_whole(const char* what, std::int64_t samples,
                                   const sampler_options& options) {
  if (samples >= 1 && samples % options.width() == 0) return;
  throw config_error(std::string(what) + " is " + std::to_string(samples) +
                     ", expected a multiple of " + std::to_string(options.width()) +
                     ", the micro-batch size " + std::to_string(options.batch_size) +
                     " times the " + std::to_string(options.world_size) + " data-parallel ranks");
}

/// Returns the ranges of consecutive positions whose bits are set.
MILLRACE_INLINE std::vector<position_range> ranges_of(const std::vector<bool>& set) {
  std::vector<position_range> ranges;
  for (std::size_t i = 0; i < set.size(); ++i) {
    if (!set[i]) continue;
    const auto position = static_cast<std::int64_t>(i);
    if (ranges.empty() || ranges.back().last != position) ranges.push_back({position, position});
    ranges.back().last = position + 1;
  }
  return ranges;
}

}  // namespace detail

MILLRACE_INLINE const sampler_options& check(const sampler_options& options) {
  detail::check_sampler(1, options.consumed_samples, {options.batch_size, options.world_size, 0});
  detail::require_whole("global_batch_size", options.samples_of_step(), options);
  if (options.rampup) {
    check(*options.rampup, options.samples_of_step());
    detail::require_whole("the first batch of the ramp-up", options.rampup->start, options);
    detail::require_whole("the increment of the ramp-up", options.rampup->increment, options);
  }
  if (options.type == sampler_type::single) return options;
  if (options.rampup) {
    throw config_error("a batch-size ramp-up requires the single sampler");
  }
  if (!options.drop_last) {
    throw config_error(
        "drop_last is false, expected true: only the single sampler can serve a short last "
        "micro-batch");
  }
  return options;
}

// --- what is served ---------------------------------------------------------------------------

MILLRACE_INLINE sampler::sampler(std::int64_t end, const sampler_options& options,
                                 std::shared_ptr<const edited_stream> edits)
    : options_(check(options)),
      steps_(options.samples_of_step(), options.rampup),
      end_(end),
      edits_(std::move(edits)) {
  if (options_.type != sampler_type::single && edits_ != nullptr) {
    throw config_error(
        "there are edits, expected none: only the single sampler can skip or replay samples");
  }
  if (options_.type == sampler_type::single) set_up_single();
  if (options_.type == sampler_type::cyclic) set_up_cyclic();
  if (options_.type == sampler_type::full_validation) set_up_full_validation();
}

MILLRACE_INLINE void sampler::set_up_single() {
  const std::int64_t consumed = options_.consumed_samples;
  limit_ = edits_ ? edits_->served_before(end_) : end_;
  end_sample_ = limit_;
  if (consumed > limit_) {
    throw config_error("consumed_samples is " + std::to_string(consumed) + ", expected at most " +
                       std::to_string(limit_) + ", the samples there are");
  }
  const std::int64_t left = limit_ - consumed;
  const bool is_over = left == 0 && !options_.drop_last;  // may be in the middle of a step
  offset_ = (consumed - steps_.first_position(steps_.step_of(consumed))) % options_.width();
  if (offset_ != 0 && (options_.global_batch_size != 0 || options_.rampup) && !is_over) {
    check_part_of_step();
  }
  if (limit_ == unbounded) return;
  count_ = left / options_.width();
  if (options_.drop_last) {
    end_sample_ = consumed + count_ * options_.width();
  } else if (left % options_.width() != 0) {
    ++count_;
  }
}

// Throws the error for an unsuitable `consumed_samples`: in this step and in every later step, a
// micro-batch would cross the end of the step.
MILLRACE_INLINE void sampler::check_part_of_step() const {
  const std::int64_t consumed = options_.consumed_samples;
  const std::int64_t step = steps_.step_of(consumed);
  throw config_error("consumed_samples is " + std::to_string(consumed) + ", which is " +
                     std::to_string(consumed - steps_.first_position(step)) +
                     " samples into step " + std::to_string(step) + ", expected a multiple of " +
                     std::to_string(options_.width()) + " of them, the micro-batch size " +
                     std::to_string(options_.batch_size) + " times the " +
                     std::to_string(options_.world_size) +
                     " data-parallel ranks: resume with the same ranks and micro-batch size, or "
                     "from the end of a step. A run that ended with a short micro-batch cannot be "
                     "resumed");
}

MILLRACE_INLINE void sampler::set_up_cyclic() {
  if (end_ >= most_positions) {
    throw config_error(
        "the cyclic sampler needs a run with an end, because it shuffles all samples of the run; "
        "set train_samples");
  }
  detail::check_cyclic(layout(), options_.consumed_samples);
  const std::int64_t active = layout().active();
  first_epoch_ = options_.consumed_samples / active;
  first_batch_ = options_.consumed_samples % active / options_.width();
  // If any rank has an extra micro-batch, rank 0 has one, too.
  draws_ = std::make_shared<draws>(layout().batches(0) > counted() ? 2 : 1);
}

MILLRACE_INLINE void sampler::set_up_full_validation() {
  const std::int64_t ranks = options_.world_size;
  if (options_.batch_size != 1) {
    throw config_error("micro_batch_size is " + std::to_string(options_.batch_size) +
                       ", expected 1: full validation takes one sample at a time");
  }
  if (end_ < ranks) {
    throw config_error("there are " + std::to_string(end_) + " samples for " +
                       std::to_string(ranks) +
                       " ranks, expected at least one sample per rank in full validation");
  }
  const std::int64_t consumed = options_.consumed_samples;
  if (consumed % ranks != 0) {
    throw config_error("consumed_samples is " + std::to_string(consumed) +
                       ", expected a multiple of the " + std::to_string(ranks) +
                       " ranks in full validation");
  }
  // Ranks with fewer samples start over, so more samples are served than the run has.
  const std::int64_t turns = (end_ - 1) / ranks + 1;
  end_sample_ = turns > unbounded / ranks ? unbounded : turns * ranks;
  if (consumed > end_sample_) {
    throw config_error("consumed_samples is " + std::to_string(consumed) + ", expected at most " +
                       std::to_string(end_sample_) + ", the samples of the full validation");
  }
  count_ = turns - consumed / ranks;
}

MILLRACE_INLINE cyclic_layout sampler::layout() const noexcept {
  return {end_, {options_.batch_size, options_.world_size, 0}, options_.data_sharding};
}

MILLRACE_INLINE std::int64_t sampler::counted() const noexcept {
  return layout().active() / options_.width();
}

// --- from steps and ranks to positions --------------------------------------------------------

MILLRACE_INLINE std::int64_t sampler::micro_batches_of(std::int64_t step) const noexcept {
  const std::int64_t samples = steps_.samples_of(step);
  const std::int64_t left = limit_ - steps_.first_position(step);
  if (options_.drop_last || left >= samples) return samples / options_.width();
  return (left + options_.width() - 1) / options_.width();
}

MILLRACE_INLINE batch_number sampler::batch(std::int64_t t, std::int64_t rank,
                                            std::vector<std::int64_t>& positions) const {
  assert(0 <= t && t < count_ && 0 <= rank && rank < options_.world_size);
  const std::int64_t rows_of_rank = options_.batch_size;
  const std::int64_t first = consumed_after(t);
  batch_number number;
  number.step = steps_.step_of(first);
  number.micro_batch = (first - steps_.first_position(number.step)) / options_.width();
  number.micro_batches = micro_batches_of(number.step);
  number.first_sample = first + std::min(rank * rows_of_rank, limit_ - first);
  number.consumed = consumed_after(t + 1);
  positions.clear();
  if (options_.type == sampler_type::cyclic) {
    const drawn_place place = drawn_place_of(t, rank);
    const auto order = draws_->get(place.epoch, layout().drawn());
    for (std::int64_t row = 0; row < rows_of_rank; ++row) {
      positions.push_back(layout().sample(*order, rank, place.batch, row));
    }
    return number;
  }
  const std::int64_t rows = std::min(rows_of_rank, limit_ - number.first_sample);
  for (std::int64_t row = 0; row < rows; ++row) {
    positions.push_back(position_of(number.first_sample + row));
  }
  return number;
}

MILLRACE_INLINE std::int64_t sampler::position_of(std::int64_t sample) const {
  assert(first_sample() <= sample && sample < end_sample());
  switch (options_.type) {
    case sampler_type::single:
      return edits_ ? (*edits_)[sample] : sample;
    case sampler_type::full_validation:  // ranks with one sample fewer start over
      return sample < end_ ? sample : sample % options_.world_size;
    case sampler_type::cyclic:
      break;
  }
  const std::int64_t from = sample - first_sample();
  const std::int64_t rank = from % options_.width() / options_.batch_size;
  const drawn_place place = drawn_place_of(from / options_.width(), rank);
  const auto order = draws_->get(place.epoch, layout().drawn());
  return layout().sample(*order, rank, place.batch, from % options_.batch_size);
}

MILLRACE_INLINE std::int64_t sampler::pass_of(std::int64_t sample) const noexcept {
  if (options_.type != sampler_type::cyclic) return 0;
  const std::int64_t from = sample - first_sample();
  return drawn_place_of(from / options_.width(), from % options_.width() / options_.batch_size)
      .epoch;
}

/// In each epoch, most ranks begin with the first micro-batch. Some ranks have one micro-batch more
/// than `counted()`. After their first epoch, these ranks begin each epoch with the second
/// micro-batch. If `counted()` is 1, they instead serve both micro-batches of every second epoch
/// and skip the epochs in between. All ranks start together at `consumed_samples`.
MILLRACE_INLINE sampler::drawn_place sampler::drawn_place_of(std::int64_t t,
                                                             std::int64_t rank) const noexcept {
  const std::int64_t each = counted();
  const std::int64_t turn = first_batch_ + t;
  std::int64_t epoch = turn / each;
  if (layout().batches(rank) > each) {
    if (each == 1) return {first_epoch_ + turn / 2 * 2, turn % 2};
    epoch = turn == 0 ? 0 : (turn - 1) / each;
  }
  return {first_epoch_ + epoch, turn - epoch * each};
}

/// The inverse of `drawn_place_of`; nullopt if the rank does not serve the place at or after
/// `consumed_samples`.
MILLRACE_INLINE std::optional<std::int64_t> sampler::turn_of(const drawn_place& place,
                                                             std::int64_t rank) const noexcept {
  const batch_range range = drawn_batches(rank, place.epoch);
  if (place.batch < range.first || range.last <= place.batch) return std::nullopt;
  const std::int64_t turn = (place.epoch - first_epoch_) * counted() + place.batch - first_batch_;
  return turn < 0 ? std::nullopt : std::optional(turn);
}

/// The micro-batches of an epoch that a rank serves, including those before `consumed_samples`.
MILLRACE_INLINE sampler::batch_range sampler::drawn_batches(std::int64_t rank,
                                                            std::int64_t epoch) const noexcept {
  const std::int64_t all = layout().batches(rank);
  if (epoch == first_epoch_ || all == counted()) return {0, all};
  if (counted() > 1) return {1, all};
  return {0, (epoch - first_epoch_) % 2 == 0 ? 2 : 0};
}

MILLRACE_INLINE std::int64_t sampler::sample_of(const slot_place& slot) const {
  const auto check = [](const char* what, std::int64_t found, std::int64_t last) {
    if (0 <= found && found <= last) return;
    throw config_error(std::string(what) + " is " + std::to_string(found) + ", expected 0 to " +
                       std::to_string(last));
  };
  check("step", slot.step, last_step());
  check("rank", slot.rank, options_.world_size - 1);
  check("slot", slot.slot, slots(slot.step) - 1);
  const std::int64_t sample = first_sample_of(slot.step) +
                              slot.slot / options_.batch_size * options_.width() +
                              slot.rank * options_.batch_size + slot.slot % options_.batch_size;
  if (first_sample() <= sample && sample < end_sample()) return sample;
  const std::string what = "step " + std::to_string(slot.step) + ", rank " +
                           std::to_string(slot.rank) + ", slot " + std::to_string(slot.slot) +
                           " is sample " + std::to_string(sample);
  if (sample < first_sample()) {
    throw config_error(what + ", but the run starts at sample " + std::to_string(first_sample()) +
                       " (consumed_samples)");
  }
  if (sample < limit_ && limit_ != unbounded) {
    throw config_error(what + ", which is not served: the last " +
                       std::to_string(limit_ - end_sample()) +
                       " samples do not fill a micro-batch on every rank, so drop_last drops them");
  }
  throw config_error(what + ", but the run has only " +
                     std::to_string(limit_ == unbounded ? end_sample() : limit_));
}

// --- from positions and samples to steps and ranks --------------------------------------------

MILLRACE_INLINE slot_place sampler::slot_of(std::int64_t sample) const noexcept {
  assert(first_sample() <= sample);
  const std::int64_t in_turn = (sample - first_sample()) % options_.width();
  const std::int64_t first = sample - in_turn;
  const std::int64_t step = steps_.step_of(first);
  const std::int64_t micro_batch = (first - steps_.first_position(step)) / options_.width();
  return {step, in_turn / options_.batch_size,
          micro_batch * options_.batch_size + in_turn % options_.batch_size};
}

MILLRACE_INLINE std::vector<served_place> sampler::all_served(
    std::span<const std::int64_t> positions, std::int64_t before) const {
  const std::int64_t stop = std::min(before, end_sample());
  std::vector<served_place> found;
  const auto add = [&](std::int64_t sample, std::int64_t position) {
    if (first_sample() <= sample && sample < stop) add_place(sample, position, 0, found);
  };
  if (options_.type == sampler_type::cyclic) {
    find_drawn(positions, stop, found);
  } else if (options_.type == sampler_type::full_validation) {
    const std::int64_t last_turn = end_sample() - options_.world_size;
    for (const std::int64_t position : positions) {
      add(position, position);
      const std::int64_t again = last_turn + position;
      if (position < options_.world_size && again >= end_) add(again, position);
    }
  } else {
    for (const std::int64_t position : positions) {
      if (position >= end_) continue;
      if (!edits_) {
        add(position, position);
        continue;
      }
      for (const std::int64_t sample : edits_->all_served(position)) add(sample, position);
    }
  }
  std::ranges::sort(found, {}, &served_place::sample);
  return found;
}

/// Scans the shuffle of each pass that has samples below `before`; scans each shuffle only once.
MILLRACE_INLINE void sampler::find_drawn(std::span<const std::int64_t> positions,
                                         std::int64_t before,
                                         std::vector<served_place>& found) const {
  if (before <= first_sample() || positions.empty()) return;
  const cyclic_layout drawn = layout();
  std::vector<bool> wanted(static_cast<std::size_t>(end_));
  for (const std::int64_t position : positions) wanted[static_cast<std::size_t>(position)] = true;
  const std::int64_t last_turn = (before - 1 - first_sample()) / options_.width();
  const std::int64_t last_epoch = first_epoch_ + (first_batch_ + last_turn) / counted();
  const auto look = [&](std::int64_t position, std::int64_t epoch, std::int64_t batch,
                        std::int64_t rank, std::int64_t row) {
    if (!wanted[static_cast<std::size_t>(position)]) return;
    const auto turn = turn_of({epoch, batch}, rank);
    if (!turn) return;
    const std::int64_t sample =
        first_sample() + *turn * options_.width() + rank * options_.batch_size + row;
    if (sample < before) add_place(sample, position, epoch, found);
  };
  for (std::int64_t epoch = first_epoch_; epoch <= last_epoch; ++epoch) {
    const auto order = draws_->get(epoch, drawn.drawn());
    for (std::int64_t i = 0; i < drawn.drawn(); ++i) {
      if (!drawn.sharded) {
        const std::int64_t in_turn = i % options_.width();
        look((*order)[i], epoch, i / options_.width(), in_turn % options_.world_size,
             in_turn / options_.world_size);
        continue;
      }
      for (std::int64_t rank = 0; rank < options_.world_size; ++rank) {
        look(rank * drawn.drawn() + (*order)[i], epoch, i / options_.batch_size, rank,
             i % options_.batch_size);
      }
    }
  }
}

MILLRACE_INLINE std::int64_t sampler::reached(std::int64_t before) const noexcept {
  if (options_.type != sampler_type::single) return end_;
  const std::int64_t stop = std::min(before, end_sample());
  return edits_ ? std::min(edits_->reached(stop), end_) : stop;
}

MILLRACE_INLINE std::int64_t sampler::end_of_whole_steps(std::int64_t before) const noexcept {
  const std::int64_t stop = std::min(before, end_sample()) - offset_;
  return stop < 0 ? 0 : std::min(steps_.step_of(stop), last_step() + 1);
}

// --- what an audit needs ----------------------------------------------------------------------

MILLRACE_INLINE std::map<std::int64_t, position_turns> sampler::turns(std::int64_t begin,
                                                                      std::int64_t end) const {
  assert(first_sample() <= begin && begin <= end && end <= end_sample());
  std::map<std::int64_t, position_turns> all;
  if (options_.type == sampler_type::cyclic) {
    std::map<std::int64_t, std::vector<bool>> served;
    for (std::int64_t sample = begin; sample < end; ++sample) {
      std::vector<bool>& of = served[pass_of(sample)];
      of.resize(static_cast<std::size_t>(end_));
      of[static_cast<std::size_t>(position_of(sample))] = true;
    }
    for (const auto& [pass, of] : served) {
      all[pass] = {detail::ranges_of(of), dropped_in(pass), {}};
    }
    return all;
  }
  position_turns& turns = all[0];
  turns.dropped = dropped_in(0);
  if (options_.type == sampler_type::full_validation) {
    const auto add = [](std::int64_t first, std::int64_t last, const auto& put) {
      if (first < last) put(position_range{first, last});
    };
    const std::int64_t last_turn = end_sample() - options_.world_size;
    add(std::min(begin, end_), std::min(end, end_),
        [&](const position_range& range) { turns.here.push_back(range); });
    add(std::max(begin, end_) - last_turn, end - last_turn, [&](const position_range& range) {
      turns.again.push_back({range, "by ranks that have one sample fewer and start over"});
    });
    return all;
  }
  if (!edits_) {
    turns.here.push_back({begin, end});
    return all;
  }
  for (const edited_stream::stretch& each : edits_->stretches()) {
    const std::int64_t first = std::max<std::int64_t>(0, begin - each.served);
    const std::int64_t last = std::min(each.count, end - each.served);
    if (first >= last) continue;
    const position_range served{each.position + first, each.position + last};
    if (each.replayed_by) {
      turns.again.push_back({served, edits_->why(*each.replayed_by)});
    } else {
      turns.here.push_back(served);
    }
  }
  return all;
}

/// Returns the positions of a pass that are dropped. With the `cyclic` sampler, these are the
/// positions that no rank serves in the pass. Which positions were served before `consumed_samples`
/// is unknown. So in the first pass, every position that these ranks could have served before
/// `consumed_samples` counts as served.
MILLRACE_INLINE std::vector<explained_positions> sampler::dropped_in(std::int64_t pass) const {
  std::vector<explained_positions> dropped;
  if (options_.type == sampler_type::single && edits_) {
    for (const edited_stream::dropped_range& each : edits_->dropped()) {
      const position_range range{each.positions.first, std::min(each.positions.last, end_)};
      if (range.first < range.last) dropped.push_back({range, edits_->why(each.by)});
    }
  }
  if (options_.type != sampler_type::cyclic || pass < first_epoch_) return dropped;
  const cyclic_layout drawn = layout();
  const auto order = draws_->get(pass, drawn.drawn());
  std::vector<bool> is_dropped(static_cast<std::size_t>(end_), true);
  for (std::int64_t rank = 0; rank < options_.world_size; ++rank) {
    const batch_range range = drawn_batches(rank, pass);
    for (std::int64_t batch = range.first; batch < range.last; ++batch) {
      for (std::int64_t row = 0; row < options_.batch_size; ++row) {
        is_dropped[static_cast<std::size_t>(drawn.sample(*order, rank, batch, row))] = false;
      }
    }
  }
  for (const position_range& range : detail::ranges_of(is_dropped)) {
    dropped.push_back(
        {range,
         drawn.sharded
             ? "cyclic: fewer samples are left than one micro-batch per rank"
             : "cyclic: too few left for a micro-batch, or skipped by a rank that is ahead"});
  }
  return dropped;
}

MILLRACE_INLINE std::vector<position_range> sampler::dropped_between(std::int64_t begin,
                                                                     std::int64_t end) const {
  std::vector<position_range> touched;
  if (!edits_) return touched;
  // A replay serves only positions before the place where it is inserted. So the range ends at the
  // first stretch after `end` that is not a replay.
  const std::int64_t from = edits_->reached(begin);
  std::int64_t to = end_;
  for (const edited_stream::stretch& each : edits_->stretches()) {
    if (each.replayed_by || each.served + each.count <= end) continue;
    to = std::min(to, each.position + std::max<std::int64_t>(0, end - each.served));
    break;
  }
  for (const edited_stream::dropped_range& each : edits_->dropped()) {
    const position_range range{std::max(each.positions.first, from),
                               std::min(each.positions.last, to)};
    if (range.first < range.last) touched.push_back(range);
  }
  return touched;
}

}  // namespace millrace::dataset
