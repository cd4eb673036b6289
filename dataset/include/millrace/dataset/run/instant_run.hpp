// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <millrace/dataset/instant/instant_order.hpp>
#include <millrace/dataset/run/run_order.hpp>
#include <millrace/dataset/run/state.hpp>
#include <millrace/export.hpp>

namespace millrace::dataset {

namespace detail {

/// What a state says of an order `instant`; of its data prefixes, names and weights.
MILLRACE_EXPORT run_state describe(const std::vector<instant_source>& sources,
                                   const instant_options& options);

}  // namespace detail

/// The order `instant` as a run_order. Nothing is built: forward and back are arithmetic and one
/// search in the index. Any thread.
class MILLRACE_EXPORT instant_run {
 public:
  /// @throws as instant_order
  instant_run(const std::vector<instant_source>& sources, const instant_options& options)
      : order_(std::make_shared<const instant_order>(sources, options)),
        description_(std::make_shared<const run_state>(detail::describe(sources, options))) {
    for (const instant_source& source : sources) prefixes_.push_back(source.prefix);
  }

  const instant_order& order() const noexcept { return *order_; }
  /// What a state says of the order; of its data prefixes, names and weights.
  const run_state& description() const noexcept { return *description_; }

  std::int64_t end() const noexcept { return order_->end(); }
  std::int64_t seq_len() const noexcept { return order_->seq_len(); }
  std::int64_t source_count() const noexcept { return order_->source_count(); }
  const std::filesystem::path& prefix(std::int64_t source) const noexcept {
    return prefixes_[static_cast<std::size_t>(source)];
  }

  /// @pre 0 <= position < end()
  source_sample at(std::int64_t position) const noexcept {
    const blend_place place = order_->blend().at(position);
    return {place.source, place.k};
  }

  /// @throws io_error, format_error  as instant_order::pieces
  std::int64_t pieces(const source_sample& sample, std::vector<piece>& out) const {
    out.clear();
    order_->pieces({sample.source, sample.k, order_->windows(sample.source).at(sample.k)}, out);
    return 0;
  }

  /// O(windows that hold the sequences) an epoch.
  /// @throws io_error, format_error  as instant_order::open, document_search
  std::vector<std::int64_t> positions_with(std::int64_t source, sequence_range sequences,
                                           std::int64_t before) const;

  std::int64_t taken(std::int64_t source, std::int64_t positions) const noexcept {
    return order_->blend().taken(source, positions);
  }

  /// An epoch is a round.
  sample_round round_of(std::int64_t source, std::int64_t k) const {
    const std::int64_t windows = order_->windows(source).windows_per_epoch();
    const std::int64_t epoch = k / windows;
    return {epoch * windows, (epoch + 1) * windows, 1, "epoch " + std::to_string(epoch)};
  }
  std::vector<left_out> left_out_of(std::int64_t source, const sample_round& round) const {
    const window_order& windows = order_->windows(source);
    const auto rest = windows.remainder(round.first / windows.windows_per_epoch());
    return {{0, rest.head, 1, "before the first window"},
            {rest.tail_first, windows.token_count(), 1, "behind the last window"}};
  }

 private:
  std::shared_ptr<const instant_order> order_;
  std::shared_ptr<const run_state> description_;
  std::vector<std::filesystem::path> prefixes_;
};

}  // namespace millrace::dataset
