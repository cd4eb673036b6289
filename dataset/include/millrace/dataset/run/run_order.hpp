// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
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

/// An order of a run, from position to tokens and back. Of each source, k ascends by one from
/// position to position.
///
///   end()                   positions from here on are not served
///   seq_len()               tokens of a sample that are inputs; what follows is a label only
///   prefix(s)               the path of source s < source_count()
///   at(position)            which sample it is
///   pieces(sample, out)     puts its pieces into `out` in place of what that held, and returns the
///                           tokens of padding behind them
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

/// A run_order that also says what it promises, so that it can be held against what it does.
///
///   taken(s, positions)  how many of the first positions are of source s
///   round_of(s, k)       the round that a sample of a source belongs to
///   left_out_of(s, r)    which tokens of the source that round leaves out
template <class Order>
concept audited_order = run_order<Order> &&
    requires(const Order& order, std::int64_t n, const sample_round& round) {
  { order.taken(n, n) } -> std::convertible_to<std::int64_t>;
  { order.round_of(n, n) } -> std::convertible_to<sample_round>;
  { order.left_out_of(n, round) } -> std::convertible_to<std::vector<left_out>>;
};

}  // namespace millrace::dataset
