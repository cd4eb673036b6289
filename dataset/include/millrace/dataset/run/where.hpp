// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <millrace/dataset/open_pool.hpp>
#include <millrace/dataset/run/run_order.hpp>
#include <millrace/dataset/run/source_documents.hpp>
#include <millrace/dataset/run/topology.hpp>
#include <millrace/error.hpp>

namespace millrace::dataset {

/// A piece of a sample, and the document that it is of.
struct document_piece {
  std::int64_t document = 0;
  piece tokens;
  std::int64_t at = 0;  ///< where in the sample it begins

  friend bool operator==(const document_piece&, const document_piece&) = default;
};

/// What is served in a slot.
struct served_sample {
  slot_place slot;
  std::int64_t position = 0;
  source_sample sample;
  std::vector<document_piece> pieces;  ///< of tokens, in order; the last token may be a label only
  std::int64_t padding = 0;            ///< tokens behind them, or behind documents among them
};

/// A slot in which a document appears.
struct appearance {
  slot_place slot;
  std::int64_t position = 0;
  std::int64_t k = 0;   ///< of the source's samples
  std::int64_t at = 0;  ///< where in the sample its first token is
  std::int64_t tokens = 0;
  bool label_only = false;  ///< its one token there is the last label, and no input

  friend bool operator==(const appearance&, const appearance&) = default;
};

/// Which documents are served where in a run, and back: one walk along the order each time, and
/// nothing of its own. Datasets are opened when one of their documents is asked for.
///
/// Positions are those of the run without edits; `edited_stream` says which they are with them. Any
/// thread.
template <run_order Order>
class run_places {
 public:
  /// @param order      must outlive this
  /// @param most_open  datasets whose documents are kept open
  run_places(const Order& order, const topology& ranks, std::size_t most_open = 512)
      : order_(order),
        ranks_(ranks),
        documents_(
            order.source_count(),
            [&order](std::int64_t source) {
              return std::make_shared<const source_documents>(order.prefix(source));
            },
            most_open) {}

  /// What a slot serves. O(log documents) and what the order takes.
  ///
  /// @throws config_error  there is no such step, rank or slot, or the run ends before it
  /// @throws io_error, format_error  a dataset cannot be read
  served_sample at(const slot_place& slot) const;

  /// The slots that have a token of a document, by position, of those before position `before`.
  ///
  /// @param before  at most order.end()
  /// @pre 0 <= source < order.source_count()
  /// @throws config_error  there is no such document
  /// @throws io_error, format_error  a dataset cannot be read
  std::vector<appearance> of(std::int64_t source, std::int64_t document, std::int64_t before) const;

  /// The documents of a source, opened.
  /// @throws io_error, format_error  it cannot be
  std::shared_ptr<const source_documents> documents(std::int64_t source) const {
    return documents_.get(source);
  }

 private:
  const Order& order_;
  topology ranks_;
  mutable open_pool<source_documents> documents_;  // a cache
};

// ---------------------------------------------------------------------------------------------

template <run_order Order>
served_sample run_places<Order>::at(const slot_place& slot) const {
  const std::int64_t position = ranks_.position_of(slot);
  if (position >= order_.end()) {
    throw config_error("step " + std::to_string(slot.step) + ", rank " + std::to_string(slot.rank) +
                       ", slot " + std::to_string(slot.slot) + " is sample " +
                       std::to_string(position) + ", but the run has only " +
                       std::to_string(order_.end()));
  }
  served_sample result{slot, position, order_.at(position), {}, 0};
  std::vector<piece> pieces;
  result.padding = order_.pieces(result.sample, pieces);
  const auto documents = this->documents(result.sample.source);
  std::vector<std::int64_t> starts;
  piece_starts(order_, result.sample, pieces, starts);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].tokens == 0) continue;
    result.pieces.push_back({documents->document_of(pieces[i].sequence), pieces[i], starts[i]});
  }
  return result;
}

template <run_order Order>
std::vector<appearance> run_places<Order>::of(std::int64_t source, std::int64_t document,
                                              std::int64_t before) const {
  const auto documents = this->documents(source);
  const std::int64_t count = documents->document_count();
  if (document < 0 || document >= count) {
    throw config_error("document " + std::to_string(document) + ": " +
                       order_.prefix(source).string() + " has " +
                       (count == 0 ? "none" : "documents 0 to " + std::to_string(count - 1)));
  }
  const sequence_range sequences = documents->sequences_of(document);
  std::vector<appearance> all;
  std::vector<piece> pieces;
  std::vector<std::int64_t> starts;
  for (const std::int64_t position : order_.positions_with(source, sequences, before)) {
    const source_sample sample = order_.at(position);
    (void)order_.pieces(sample, pieces);
    appearance found{ranks_.place_of(position), position, sample.k, 0, 0, false};
    piece_starts(order_, sample, pieces, starts);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const piece& p = pieces[i];
      if (p.sequence < sequences.first || sequences.last <= p.sequence || p.tokens == 0) continue;
      if (found.tokens == 0) found.at = starts[i];
      found.tokens += p.tokens;
    }
    found.label_only = found.at >= order_.seq_len();
    all.push_back(found);
  }
  return all;
}

}  // namespace millrace::dataset
