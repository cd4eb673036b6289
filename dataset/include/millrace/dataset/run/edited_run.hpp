// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <millrace/dataset/instant/index_columns.hpp>
#include <millrace/dataset/run/edited_stream.hpp>
#include <millrace/dataset/run/edits.hpp>
#include <millrace/dataset/run/run_order.hpp>
#include <millrace/error.hpp>

namespace millrace::dataset {

/// The stream of a run's edits: blocked documents are looked up along the order.
///
/// @param first_position  as edited_stream
/// @param before          positions from here on are not looked at for blocked documents: at most
///                        order.end(); what is served must stay below it
/// @throws config_error   as edited_stream; or a dataset or document is blocked that is not there
/// @throws io_error, format_error  a dataset cannot be read.
template <run_order Order, class FirstPosition>
edited_stream stream_of(const Order& order, std::span<const edit> edits,
                        const FirstPosition& first_position, std::int64_t before);

/// A run with its edits, as a run_order: position n of it is the served sample n, which is position
/// stream[n] of the run without. Unlike of other orders, k of a source need not ascend: what is
/// skipped is not there, and what is replayed is there again.
///
/// All that it is made of must outlive it. Any thread.
template <run_order Order>
class edited_run {
 public:
  /// @param edits  those of the stream, for an audit's words
  edited_run(const Order& order, const edited_stream& stream, std::span<const edit> edits = {})
      : order_(order), stream_(stream), edits_(edits) {}

  /// Samples that are served before the run without edits is at its end.
  std::int64_t end() const { return stream_.served_before(order_.end()); }
  std::int64_t seq_len() const { return order_.seq_len(); }
  std::int64_t source_count() const { return order_.source_count(); }
  std::filesystem::path prefix(std::int64_t source) const { return order_.prefix(source); }

  /// @pre 0 <= n < end()
  source_sample at(std::int64_t n) const { return order_.at(stream_[n]); }

  /// @throws as those of the order
  std::int64_t pieces(const source_sample& sample, std::vector<piece>& out) const {
    return order_.pieces(sample, out);
  }
  void starts_of(const source_sample& sample, std::span<const piece> pieces,
                 std::vector<std::int64_t>& out) const {
    piece_starts(order_, sample, pieces, out);
  }
  std::vector<std::int64_t> positions_with(std::int64_t source, sequence_range sequences,
                                           std::int64_t before) const {
    const std::int64_t reached = std::min<std::int64_t>(stream_.reached(before), order_.end());
    std::vector<std::int64_t> all;
    for (const std::int64_t position : order_.positions_with(source, sequences, reached)) {
      for (const std::int64_t n : stream_.all_served(position)) {
        if (n < before) all.push_back(n);
      }
    }
    std::ranges::sort(all);
    return all;
  }

  sample_round round_of(std::int64_t source, std::int64_t k) const requires ascending_order<Order> {
    return order_.round_of(source, k);
  }
  std::vector<left_out> left_out_of(std::int64_t source, const sample_round& round) const requires
      ascending_order<Order> {
    return order_.left_out_of(source, round);
  }
  /// O(edited ranges).
  sample_turns turns_of(std::int64_t source, const sample_round& round, std::int64_t begin,
                        std::int64_t end) const requires ascending_order<Order>;
  /// Of rounds that edits drop samples of, between the last that is served before `begin` and the
  /// first that is served from `end` on.
  std::vector<source_sample> also_touched(std::int64_t begin,
                                          std::int64_t end) const requires ascending_order<Order>;

 private:
  std::string why(std::size_t number) const {
    std::string text = "edit " + std::to_string(number);
    if (number >= edits_.size()) return text;
    return text + ", " + name_of(edits_[number]) + ": " + edits_[number].why;
  }

  const Order& order_;
  const edited_stream& stream_;
  std::span<const edit> edits_;
};

// ---------------------------------------------------------------------------------------------

template <run_order Order>
sample_turns edited_run<Order>::turns_of(std::int64_t source, const sample_round& round,
                                         std::int64_t begin,
                                         std::int64_t end) const requires ascending_order<Order> {
  sample_turns turns;
  const auto samples = [&](std::int64_t first, std::int64_t last) {
    const std::int64_t most = order_.end();
    return samples_at(order_, source, round, std::min(first, most), std::min(last, most));
  };
  for (const edited_stream::stretch& each : stream_.stretches()) {
    const std::int64_t first = std::max<std::int64_t>(0, begin - each.served);
    const std::int64_t last = std::min(each.count, end - each.served);
    if (first >= last) continue;
    const sample_range served = samples(each.position + first, each.position + last);
    if (served.first == served.last) continue;
    if (each.replayed_by) {
      turns.again.push_back({served, why(*each.replayed_by)});
    } else {
      turns.here.push_back(served);
    }
  }
  for (const edited_stream::dropped_range& each : stream_.dropped()) {
    const sample_range dropped = samples(each.positions.first, each.positions.last);
    if (dropped.first != dropped.last) turns.dropped.push_back({dropped, why(each.by)});
  }
  return turns;
}

template <run_order Order>
std::vector<source_sample> edited_run<Order>::also_touched(
    std::int64_t begin, std::int64_t end) const requires ascending_order<Order> {
  // Replays do not reach beyond what was served before them, so that the first turn is the
  // furthest.
  const std::int64_t from = stream_.reached(begin);
  std::int64_t to = order_.end();
  for (const edited_stream::stretch& each : stream_.stretches()) {
    if (each.replayed_by || each.served + each.count <= end) continue;
    to = std::min<std::int64_t>(to, each.position + std::max<std::int64_t>(0, end - each.served));
    break;
  }
  std::vector<source_sample> touched;
  for (const edited_stream::dropped_range& each : stream_.dropped()) {
    const std::int64_t first = std::max(each.positions.first, from);
    const std::int64_t last = std::min(each.positions.last, to);
    if (first >= last) continue;
    for (std::int64_t s = 0; s < source_count(); ++s) {
      const std::int64_t behind = order_.taken(s, last);
      for (std::int64_t k = order_.taken(s, first); k < behind; k = order_.round_of(s, k).last) {
        touched.push_back({s, k});
      }
    }
  }
  return touched;
}

template <run_order Order, class FirstPosition>
edited_stream stream_of(const Order& order, std::span<const edit> edits,
                        const FirstPosition& first_position, std::int64_t before) {
  const auto positions_of = [&](const edit& e) {
    std::vector<std::int64_t> sources;  // a blend may have one dataset several times
    for (std::int64_t s = 0; s < order.source_count(); ++s) {
      if (order.prefix(s) == e.source) sources.push_back(s);
    }
    if (sources.empty()) {
      throw config_error("documents of " + e.source +
                         " are blocked, which is none of the datasets of the run");
    }
    std::vector<position_range> ranges;
    if (e.first == e.last) return ranges;
    const index_columns columns(order.prefix(sources.front()));
    if (e.last > columns.document_count()) {
      throw config_error("documents " + std::to_string(e.first) + " to " +
                         std::to_string(e.last - 1) + " of " + e.source +
                         " are blocked, which has " + std::to_string(columns.document_count()));
    }
    const sequence_range sequences{columns.document_start(e.first), columns.document_start(e.last)};
    for (const std::int64_t source : sources) {
      for (const std::int64_t p : order.positions_with(source, sequences, before)) {
        ranges.push_back({p, p + 1});
      }
    }
    return ranges;
  };
  return edited_stream(edits, first_position, positions_of);
}

}  // namespace millrace::dataset
