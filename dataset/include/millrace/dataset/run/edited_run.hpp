// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <millrace/dataset/run/edited_stream.hpp>
#include <millrace/dataset/run/edits.hpp>
#include <millrace/dataset/run/run_order.hpp>
#include <millrace/dataset/run/source_documents.hpp>
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
/// Both must outlive it. Any thread.
template <run_order Order>
class edited_run {
 public:
  edited_run(const Order& order, const edited_stream& stream) : order_(order), stream_(stream) {}

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

 private:
  const Order& order_;
  const edited_stream& stream_;
};

// ---------------------------------------------------------------------------------------------

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
    const source_documents documents(order.prefix(sources.front()));
    if (e.last > documents.data().document_count()) {
      throw config_error("documents " + std::to_string(e.first) + " to " +
                         std::to_string(e.last - 1) + " of " + e.source +
                         " are blocked, which has " +
                         std::to_string(documents.data().document_count()));
    }
    const sequence_range sequences{documents.sequences_of(e.first).first,
                                   documents.sequences_of(e.last - 1).last};
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
