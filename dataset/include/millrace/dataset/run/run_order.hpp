// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <millrace/dataset/megatron/split.hpp>
#include <millrace/dataset/sample/piece.hpp>

/// What a walk along a run needs of an order, be it Megatron's or `instant`.
namespace millrace::dataset {

/// A sample of a run: the k-th of one of its sources.
struct source_sample {
  std::int64_t source = 0;
  std::int64_t k = 0;

  friend bool operator==(const source_sample&, const source_sample&) = default;
};

/// Samples of a source, `first` up to but without `last`, that are to serve each of its tokens
/// `times` times.
struct sample_round {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t times = 1;
  std::string name;  ///< e.g. "epoch 3"
};

/// Tokens `first` up to but without `last` of a source's stream that a round leaves out, and why.
struct left_out {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t times = 1;
  std::string why;  ///< e.g. "before the first window"
};

/// Samples of a source, `first` up to but without `last`.
struct sample_range {
  std::int64_t first = 0;
  std::int64_t last = 0;

  friend bool operator==(const sample_range&, const sample_range&) = default;
};

/// Samples, and what makes them be served otherwise than once and in their turn.
struct explained_samples {
  sample_range samples;
  std::string why;  ///< e.g. "edit 0, skip_samples: loss spike"

  friend bool operator==(const explained_samples&, const explained_samples&) = default;
};

/// What becomes of the samples of a round when a part of a run is served. Those that are in none of
/// the lists are served before that part or behind it, if at all. Ranges are in any order.
struct sample_turns {
  std::vector<sample_range> here;          ///< served there, in their turn
  std::vector<explained_samples> dropped;  ///< never served
  std::vector<explained_samples> again;    ///< served there once more, beside their turn
};

/// An order of a run, from position to tokens and back. Of each source, k ascends by one from
/// position to position.
///
///   end()                   positions from here on are not served
///   seq_len()               tokens of a sample that are inputs; what follows is a label only
///   prefix(s)               the path of source s < source_count()
///   at(position)            which sample it is
///   pieces(sample, out)     puts its pieces into `out` in place of what that held, and returns the
///                           tokens of padding behind them, or behind the documents among them
///   positions_with(s, sequences, before)
///                           all positions below `before`, ascending, whose samples hold a token of
///                           the sequences, be it as the last label
template <class Order>
concept run_order = requires(const Order& order, std::int64_t n, const source_sample& sample,
                             std::vector<piece>& out, sequence_range sequences) {
  { order.end() } -> std::convertible_to<std::int64_t>;
  { order.seq_len() } -> std::convertible_to<std::int64_t>;
  { order.source_count() } -> std::convertible_to<std::int64_t>;
  { order.prefix(n) } -> std::convertible_to<std::filesystem::path>;
  { order.at(n) } -> std::convertible_to<source_sample>;
  { order.pieces(sample, out) } -> std::convertible_to<std::int64_t>;
  { order.positions_with(n, sequences, n) } -> std::convertible_to<std::vector<std::int64_t>>;
};

/// Where in the row each piece of a sample begins: behind the one before, but where the order says
/// otherwise by starts_of(sample, pieces, out).
template <run_order Order>
void piece_starts(const Order& order, const source_sample& sample, std::span<const piece> pieces,
                  std::vector<std::int64_t>& out) {
  if constexpr (requires { order.starts_of(sample, pieces, out); }) {
    order.starts_of(sample, pieces, out);
  } else {
    out.clear();
    std::int64_t at = 0;
    for (const piece& p : pieces) {
      out.push_back(at);
      at += p.tokens;
    }
  }
}

/// A run_order that also says what it promises, so that it can be held against what it does.
///
///   round_of(s, k)       the round that a sample of a source belongs to
///   left_out_of(s, r)    which tokens of the source that round leaves out
///
/// and either of
///
///   taken(s, positions)  how many of the first positions are of source s: of orders that serve
///                        each sample once, by ascending k
///   turns_of(s, r, begin, end)
///                        what becomes of the samples of a round where positions `begin` up to but
///                        without `end` are served: of all others, which also have
///   also_touched(begin, end)
///                        a sample of each round of which those positions serve none, but which
///                        lost samples there
template <class Order>
concept ascending_order = run_order<Order> &&
    requires(const Order& order, std::int64_t n, const sample_round& round) {
  { order.taken(n, n) } -> std::convertible_to<std::int64_t>;
  { order.round_of(n, n) } -> std::convertible_to<sample_round>;
  { order.left_out_of(n, round) } -> std::convertible_to<std::vector<left_out>>;
};

template <class Order>
concept rearranged_order = run_order<Order> &&
    requires(const Order& order, std::int64_t n, const sample_round& round) {
  { order.turns_of(n, round, n, n) } -> std::convertible_to<sample_turns>;
  { order.also_touched(n, n) } -> std::convertible_to<std::vector<source_sample>>;
  { order.round_of(n, n) } -> std::convertible_to<sample_round>;
  { order.left_out_of(n, round) } -> std::convertible_to<std::vector<left_out>>;
};

template <class Order>
concept audited_order = ascending_order<Order> || rearranged_order<Order>;

/// The samples of a source at positions `begin` up to but without `end`, those of one round.
///
/// @pre 0 <= begin <= end <= order.end()
template <ascending_order Order>
sample_range samples_at(const Order& order, std::int64_t source, const sample_round& round,
                        std::int64_t begin, std::int64_t end) {
  const std::int64_t first = std::max<std::int64_t>(order.taken(source, begin), round.first);
  return {first, std::max<std::int64_t>(
                     first, std::min<std::int64_t>(order.taken(source, end), round.last))};
}

}  // namespace millrace::dataset
