// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/instant_run.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <millrace/dataset/detail/instant/index_columns.hpp>
#include <millrace/dataset/detail/instant/instant_order.hpp>
#include <millrace/dataset/run.hpp>
#include <millrace/dataset/state.hpp>
#include <millrace/error.hpp>

#include "text_of_pieces.hpp"

namespace millrace::dataset {

/// The shared state of an `instant_run`. Token types are read from the headers only when a caller
/// first needs byte ranges. `where` never needs byte ranges.
struct instant_run::contents {
  contents(const std::vector<instant_source>& sources, const instant_options& options)
      : order(sources, options),
        description(detail::describe(sources, options)),
        touched(sources.size()) {
    for (const instant_source& source : sources) prefixes.push_back(source.prefix);
  }

  /// @throws io_error, format_error  a source cannot be opened
  const std::vector<formats::dtype>& all_types() {
    if (!has_types.load(std::memory_order_acquire)) {
      const std::lock_guard lock(mutex);
      if (types.empty()) {
        std::vector<formats::dtype> read;
        for (const auto& each : prefixes) {
          read.push_back(index_columns(each, index_access::pread).type());
        }
        types = std::move(read);
      }
      has_types.store(true, std::memory_order_release);
    }
    return types;
  }

  /// Checks that a source still has the files with which the run was created. Does so once per
  /// source.
  void touch(std::int64_t source) {
    const auto s = static_cast<std::size_t>(source);
    if (touched[s].load(std::memory_order_acquire)) return;
    const formats::dtype type = all_types()[s];
    const index_columns columns(prefixes[s], index_access::pread);
    const std::int64_t expected = order.windows(source).token_count();
    if (columns.token_count() != expected || columns.type() != type) {
      throw format_error(
          columns.idx_path(), 0,
          "the dataset has " + std::to_string(columns.token_count()) + " tokens of " +
              std::string(formats::name(columns.type())) + ", expected " +
              std::to_string(expected) + " of " + std::string(formats::name(type)) +
              " as when the run was created: it is another dataset, or was replaced");
    }
    touched[s].store(true, std::memory_order_release);
  }

  instant_order order;
  run_state description;
  std::vector<std::filesystem::path> prefixes;
  std::mutex mutex;
  std::atomic<bool> has_types{false};
  std::vector<formats::dtype> types;  // guarded by mutex until has_types is set
  std::vector<std::atomic<bool>> touched;
};

MILLRACE_INLINE instant_run::instant_run(const std::vector<instant_source>& sources,
                                         const instant_options& options)
    : shared_(std::make_shared<contents>(sources, options)) {}

MILLRACE_INLINE const instant_order& instant_run::order() const noexcept {
  return shared_->order;
}

MILLRACE_INLINE std::int64_t instant_run::end() const {
  return order().end();
}

MILLRACE_INLINE std::int64_t instant_run::seq_len() const {
  return order().seq_len();
}

MILLRACE_INLINE std::int64_t instant_run::source_count() const {
  return order().source_count();
}

MILLRACE_INLINE const std::filesystem::path& instant_run::prefix(std::int64_t source) const {
  return shared_->prefixes[static_cast<std::size_t>(source)];
}

MILLRACE_INLINE std::vector<run_source> instant_run::sources() const {
  const std::vector<formats::dtype>& types = shared_->all_types();
  std::vector<run_source> all;
  for (std::size_t s = 0; s < types.size(); ++s) {
    const auto tokens = order().windows(static_cast<std::int64_t>(s)).token_count();
    all.push_back({detail::bin_of(shared_->prefixes[s]), types[s],
                   static_cast<std::uint64_t>(tokens) * formats::size_bytes(types[s])});
  }
  return all;
}

MILLRACE_INLINE source_sample instant_run::at(std::int64_t position) const {
  const blend_place place = order().blend().at(position);
  return {place.source, place.k};
}

MILLRACE_INLINE std::int64_t instant_run::pieces(const source_sample& sample,
                                                 std::vector<piece>& out) const {
  out.clear();
  order().pieces({sample.source, sample.k, order().windows(sample.source).at(sample.k)}, out);
  return 0;
}

MILLRACE_INLINE void instant_run::text_of(std::int64_t position, bool boundaries,
                                          sample_text& out) const {
  const instant_sample sample = order().at(position);
  shared_->touch(sample.source);
  const formats::dtype type = shared_->types[static_cast<std::size_t>(sample.source)];
  detail::set_window(position, sample.source, sample.place.first_token, sample.place.tokens,
                     formats::size_bytes(type), out);
  if (!boundaries) return;
  std::vector<piece>& pieces = detail::scratch_pieces();
  const auto search = order().open(sample.source);
  search->pieces(sample.place.first_token, sample.place.tokens, pieces);
  detail::set_boundaries(pieces, seq_len(), true, detail::same_searched_document{*search}, out);
}

MILLRACE_INLINE std::int64_t instant_run::taken(std::int64_t source, std::int64_t positions) const {
  return order().blend().taken(source, positions);
}

MILLRACE_INLINE sample_round instant_run::round_of(std::int64_t source, std::int64_t k) const {
  const std::int64_t windows = order().windows(source).windows_per_epoch();
  const std::int64_t epoch = k / windows;
  return {epoch * windows, (epoch + 1) * windows, 1, "epoch " + std::to_string(epoch)};
}

MILLRACE_INLINE std::vector<left_out> instant_run::left_out_of(std::int64_t source,
                                                               const sample_round& round) const {
  const window_order& windows = order().windows(source);
  const auto rest = windows.remainder(round.first / windows.windows_per_epoch());
  return {{0, rest.head, 1, "before the first window"},
          {rest.tail_first, windows.token_count(), 1, "after the last window"}};
}

MILLRACE_INLINE void instant_run::check_steps(const batch_steps& steps) const {
  detail::check_begins(order().blend(), steps);
}

MILLRACE_INLINE run_state instant_run::description() const {
  return shared_->description;
}

MILLRACE_INLINE std::vector<std::int64_t> instant_run::positions_with(std::int64_t source,
                                                                      sequence_range sequences,
                                                                      std::int64_t before) const {
  std::vector<std::int64_t> positions;
  if (sequences.size() <= 0) return positions;
  const auto search = order().open(source);
  const std::int64_t first = search->first_token_of(sequences.first);
  const std::int64_t last =
      search->first_token_of(sequences.last - 1) + search->columns().length(sequences.last - 1);
  const window_order& windows_of = order().windows(source);
  const std::int64_t taken_before = taken(source, before);
  for (std::int64_t e = 0; e * windows_of.windows_per_epoch() < taken_before; ++e) {
    const epoch_windows windows = windows_of.epoch(e);
    const std::int64_t offset = windows.offset();
    if (first >= last || last <= offset) continue;
    // The first token of a window is also the last label of the preceding window.
    const std::int64_t least = first <= offset ? 0 : (first - 1 - offset) / seq_len();
    const std::int64_t most = std::min(windows.count() - 1, (last - 1 - offset) / seq_len());
    for (std::int64_t w = least; w <= most; ++w) {
      const std::int64_t k = e * windows.count() + windows.turn_of(w);
      if (k >= taken_before) continue;
      if (const auto at = order().blend().position_of({source, k})) positions.push_back(*at);
    }
  }
  std::ranges::sort(positions);
  return positions;
}

namespace detail {

MILLRACE_INLINE run_state describe(const std::vector<instant_source>& sources,
                                   const instant_options& options) {
  run_state state;
  state.order = "instant";
  state.seed = options.seed;
  state.seq_len = options.seq_len;
  state.samples.assign(1, options.train_samples.value_or(-1));
  for (const instant_source& source : sources) {
    state.data.push_back({.prefix = source.prefix.string(), .name = source.name});
  }
  if (options.segments.size() == 1 && options.segments[0].sources.size() == sources.size()) {
    for (const weighted_source& each : options.segments[0].sources) {
      state.data[static_cast<std::size_t>(each.source)].weight = each.weight;
    }
    return state;
  }
  for (const schedule_segment& segment : options.segments) {
    state_segment& to = state.schedule.emplace_back();
    to.first_step = segment.first_step;
    for (const weighted_source& each : segment.sources) {
      to.sources.push_back(each.source);
      to.weights.push_back(each.weight);
    }
  }
  return state;
}

}  // namespace detail

}  // namespace millrace::dataset
