// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <millrace/dataset/megatron/cyclic_sampler.hpp>
#include <millrace/dataset/megatron/data_share.hpp>
#include <millrace/dataset/run/run_order.hpp>
#include <millrace/dataset/run_limits.hpp>
#include <millrace/error.hpp>

namespace millrace::dataset {

/// A run as Megatron's sampler `cyclic` deals it from its start, as a run_order without an end:
/// position n is still row n mod b of micro-batch n / W on rank n mod W / b, with b the micro-batch
/// size and W = b * ranks, but its sample is what the rank's pass has there.
///
///   position n --(micro-batch, rank, row)--> epoch of the sampler, place --randperm--> sample of
///   the run
///
/// A source's k runs on from pass to pass: k mod `stride` is its number in the run, k / `stride`
/// the pass. Each pass is a round, or several where the run has epochs of its own. Forward it is
/// O(1) where the pass was drawn lately, else O(samples of the run); backward it walks. Any thread.
template <ascending_order Order>
class cyclic_run {
 public:
  /// @param order  must outlive this
  /// @param share  its rank is not looked at
  /// @throws config_error  the run has no end, or less samples than a micro-batch of all ranks has
  cyclic_run(const Order& order, const data_share& share, bool data_sharding = true);

  std::int64_t end() const noexcept { return most_positions; }
  std::int64_t seq_len() const { return order_.seq_len(); }
  std::int64_t source_count() const { return order_.source_count(); }
  std::filesystem::path prefix(std::int64_t source) const { return order_.prefix(source); }

  /// @pre 0 <= n < end()
  source_sample at(std::int64_t n) const {
    const place p = place_of(n);
    const source_sample sample = order_.at(sampled(p));
    return {sample.source, p.epoch * stride(sample.source) + sample.k};
  }

  /// @throws as those of the order
  std::int64_t pieces(const source_sample& sample, std::vector<piece>& out) const {
    return order_.pieces(inner(sample), out);
  }
  void starts_of(const source_sample& sample, std::span<const piece> pieces,
                 std::vector<std::int64_t>& out) const {
    piece_starts(order_, inner(sample), pieces, out);
  }
  /// O(before).
  std::vector<std::int64_t> positions_with(std::int64_t source, sequence_range sequences,
                                           std::int64_t before) const;

  sample_round round_of(std::int64_t source, std::int64_t k) const {
    const std::int64_t pass = k / stride(source);
    sample_round round = order_.round_of(source, k % stride(source));
    round.first += pass * stride(source);
    round.last += pass * stride(source);
    round.name = "pass " + std::to_string(pass) + ", " + round.name;
    return round;
  }
  std::vector<left_out> left_out_of(std::int64_t source, const sample_round& round) const {
    return order_.left_out_of(source, inner(source, round));
  }
  /// O(samples of the run), and once for each `begin` and `end` what is between them.
  sample_turns turns_of(std::int64_t source, const sample_round& round, std::int64_t begin,
                        std::int64_t end) const;
  std::vector<source_sample> also_touched(std::int64_t begin, std::int64_t end) const;

 private:
  struct place {
    std::int64_t epoch;  // of the sampler
    std::int64_t batch;  // of the rank in it
    std::int64_t rank;
    std::int64_t row;
  };
  struct batch_range {
    std::int64_t first;
    std::int64_t last;
  };
  using drawn_pointer = std::shared_ptr<const drawn_order>;
  using sample_set = std::vector<bool>;  // of the run's samples
  /// Which samples of the run positions `begin` to `end` serve, by pass.
  struct served_samples {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::map<std::int64_t, sample_set> of;
  };
  struct shared {
    std::mutex mutex;
    std::list<std::pair<std::int64_t, drawn_pointer>> drawn;  // the last ones, newest in front
    std::shared_ptr<const served_samples> served;
  };

  std::int64_t stride(std::int64_t source) const noexcept {
    return strides_[static_cast<std::size_t>(source)];
  }
  source_sample inner(const source_sample& sample) const noexcept {
    return {sample.source, sample.k % stride(sample.source)};
  }
  sample_round inner(std::int64_t source, sample_round round) const {
    const std::int64_t before = round.first / stride(source) * stride(source);
    round.first -= before;
    round.last -= before;
    return round;
  }

  place place_of(std::int64_t n) const noexcept;
  batch_range batches_in(std::int64_t rank, std::int64_t epoch) const noexcept;
  std::int64_t sampled(const place& p) const {
    return layout_.sample(*draw(p.epoch), p.rank, p.batch, p.row);
  }
  drawn_pointer draw(std::int64_t epoch) const;
  sample_set dropped_in(std::int64_t epoch) const;
  std::shared_ptr<const served_samples> served(std::int64_t begin, std::int64_t end) const;

  const Order& order_;
  cyclic_layout layout_;
  std::vector<std::int64_t> strides_;
  std::shared_ptr<shared> shared_ = std::make_shared<shared>();
};

// ---------------------------------------------------------------------------------------------

template <ascending_order Order>
cyclic_run<Order>::cyclic_run(const Order& order, const data_share& share, bool data_sharding)
    : order_(order), layout_{order.end(), share, data_sharding} {
  if (order.end() >= most_positions) {
    throw config_error(
        "the sampler cyclic needs a run with an end, as it draws an order of all its samples; give "
        "the run train_samples");
  }
  detail::check_sampler(layout_.total, 0, share);
  if (layout_.active() == 0) {
    throw config_error("there are " + std::to_string(layout_.total) + " samples, expected " +
                       std::to_string(share.width()) +
                       " or more: a micro-batch of each data-parallel rank");
  }
  for (std::int64_t s = 0; s < order.source_count(); ++s) {
    const std::int64_t samples = order.taken(s, order.end());
    strides_.push_back(samples == 0 ? 1 : order.round_of(s, samples - 1).last);
  }
}

/// A rank begins each epoch where the one before has left it: at its start, but for ranks that have
/// one batch more than an epoch counts. These begin all but the first with the second batch; and
/// where an epoch counts one, they are through with two epochs each time.
template <ascending_order Order>
typename cyclic_run<Order>::place cyclic_run<Order>::place_of(std::int64_t n) const noexcept {
  const std::int64_t width = layout_.share.width();
  const std::int64_t rank = n % width / layout_.share.micro_batch_size;
  const std::int64_t row = n % layout_.share.micro_batch_size;
  const std::int64_t t = n / width;
  const std::int64_t counted = layout_.active() / width;
  std::int64_t epoch = t / counted;
  if (layout_.batches(rank) > counted) {
    if (counted == 1) return {t / 2 * 2, t % 2, rank, row};
    epoch = t == 0 ? 0 : (t - 1) / counted;
  }
  return {epoch, t - epoch * counted, rank, row};
}

template <ascending_order Order>
typename cyclic_run<Order>::batch_range cyclic_run<Order>::batches_in(
    std::int64_t rank, std::int64_t epoch) const noexcept {
  const std::int64_t counted = layout_.active() / layout_.share.width();
  const std::int64_t all = layout_.batches(rank);
  if (all == counted) return {0, counted};
  if (counted == 1) return {0, epoch % 2 == 0 ? 2 : 0};
  return {epoch == 0 ? 0 : 1, all};
}

template <ascending_order Order>
typename cyclic_run<Order>::drawn_pointer cyclic_run<Order>::draw(std::int64_t epoch) const {
  constexpr std::size_t most_kept = 3;  // a rank that is ahead, the others, and one to spare
  const std::lock_guard lock(shared_->mutex);
  auto& drawn = shared_->drawn;
  for (auto each = drawn.begin(); each != drawn.end(); ++each) {
    if (each->first != epoch) continue;
    drawn.splice(drawn.begin(), drawn, each);
    return each->second;
  }
  drawn.emplace_front(epoch, std::make_shared<const drawn_order>(epoch, layout_.drawn()));
  if (drawn.size() > most_kept) drawn.pop_back();
  return drawn.front().second;
}

template <ascending_order Order>
std::vector<std::int64_t> cyclic_run<Order>::positions_with(std::int64_t source,
                                                            sequence_range sequences,
                                                            std::int64_t before) const {
  std::vector<std::int64_t> positions;
  sample_set wanted(static_cast<std::size_t>(layout_.total));
  for (const std::int64_t p : order_.positions_with(source, sequences, layout_.total)) {
    wanted[static_cast<std::size_t>(p)] = true;
  }
  for (std::int64_t n = 0; n < before; ++n) {
    if (wanted[static_cast<std::size_t>(sampled(place_of(n)))]) positions.push_back(n);
  }
  return positions;
}

/// What no rank gets of an epoch: what is left below a batch of all ranks, and what ranks pass over
/// that are ahead.
template <ascending_order Order>
typename cyclic_run<Order>::sample_set cyclic_run<Order>::dropped_in(std::int64_t epoch) const {
  sample_set dropped(static_cast<std::size_t>(layout_.total), true);
  const drawn_pointer order = draw(epoch);
  for (std::int64_t rank = 0; rank < layout_.share.ranks; ++rank) {
    const batch_range range = batches_in(rank, epoch);
    for (std::int64_t batch = range.first; batch < range.last; ++batch) {
      for (std::int64_t row = 0; row < layout_.share.micro_batch_size; ++row) {
        dropped[static_cast<std::size_t>(layout_.sample(*order, rank, batch, row))] = false;
      }
    }
  }
  return dropped;
}

template <ascending_order Order>
std::shared_ptr<const typename cyclic_run<Order>::served_samples> cyclic_run<Order>::served(
    std::int64_t begin, std::int64_t end) const {
  {
    const std::lock_guard lock(shared_->mutex);
    const auto& known = shared_->served;
    if (known && known->begin == begin && known->end == end) return known;
  }
  auto made = std::make_shared<served_samples>();
  made->begin = begin;
  made->end = end;
  for (std::int64_t n = begin; n < end; ++n) {
    const place p = place_of(n);
    sample_set& of = made->of[p.epoch];
    of.resize(static_cast<std::size_t>(layout_.total));
    of[static_cast<std::size_t>(sampled(p))] = true;
  }
  const std::lock_guard lock(shared_->mutex);
  shared_->served = made;
  return made;
}

template <ascending_order Order>
sample_turns cyclic_run<Order>::turns_of(std::int64_t source, const sample_round& round,
                                         std::int64_t begin, std::int64_t end) const {
  const std::int64_t pass = round.first / stride(source);
  const sample_round own = inner(source, round);
  const auto served_there = served(begin, end);
  const auto found = served_there->of.find(pass);
  const sample_set none(static_cast<std::size_t>(layout_.total));
  const sample_set& here = found == served_there->of.end() ? none : found->second;
  const sample_set dropped = dropped_in(pass);

  sample_turns turns;
  for (std::int64_t position = 0; position < layout_.total; ++position) {
    const auto i = static_cast<std::size_t>(position);
    if (!here[i] && !dropped[i]) continue;
    const source_sample sample = order_.at(position);
    if (sample.source != source || sample.k < own.first || own.last <= sample.k) continue;
    const std::int64_t k = pass * stride(source) + sample.k;
    if (here[i]) {
      if (turns.here.empty() || turns.here.back().last != k) turns.here.push_back({k, k});
      turns.here.back().last = k + 1;
    } else {
      turns.dropped.push_back({{k, k + 1},
                               layout_.sharded
                                   ? "cyclic: less than a micro-batch of every rank is left"
                                   : "cyclic: left below a micro-batch, or passed over by a "
                                     "rank that is ahead"});
    }
  }
  return turns;
}

template <ascending_order Order>
std::vector<source_sample> cyclic_run<Order>::also_touched(std::int64_t begin,
                                                           std::int64_t end) const {
  std::vector<source_sample> touched;
  for (const auto& [pass, here] : served(begin, end)->of) {
    const sample_set dropped = dropped_in(pass);
    for (std::int64_t position = 0; position < layout_.total; ++position) {
      if (!dropped[static_cast<std::size_t>(position)]) continue;
      const source_sample sample = order_.at(position);
      touched.push_back({sample.source, pass * stride(sample.source) + sample.k});
    }
  }
  return touched;
}

}  // namespace millrace::dataset
