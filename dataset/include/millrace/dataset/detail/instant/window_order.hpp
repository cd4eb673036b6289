// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <millrace/dataset/detail/instant/feistel.hpp>
#include <millrace/dataset/detail/instant/order_keys.hpp>
#include <millrace/error.hpp>

namespace millrace::dataset {

/// A window of a source: its epoch, its index in the epoch, and its tokens in the stored stream.
/// The last of its seq_len + 1 tokens is only a label.
struct window_place {
  std::int64_t epoch = 0;
  std::int64_t window = 0;       ///< index in the stored order of the epoch
  std::int64_t first_token = 0;  ///< offset in the stream of the source
  std::int64_t tokens = 0;       ///< seq_len + 1

  friend bool operator==(const window_place&, const window_place&) = default;
};

/// The tokens of a stream that no window of an epoch has as an input: a head before the first
/// window, and a tail after the inputs of the last window. The first token of the tail is still a
/// label: the last label of the last window.
struct epoch_remainder {
  std::int64_t head = 0;        ///< tokens 0 to head - 1
  std::int64_t tail_first = 0;  ///< tokens tail_first to token_count - 1
};

/// One epoch of a source: its windows and their permutation. A value type; thread-safe.
class epoch_windows {
 public:
  epoch_windows(std::int64_t epoch, std::int64_t offset, std::int64_t seq_len,
                const feistel& shuffle) noexcept
      : shuffle_(shuffle), epoch_(epoch), offset_(offset), seq_len_(seq_len) {}

  std::int64_t epoch() const noexcept { return epoch_; }
  /// The token at which window 0 begins.
  std::int64_t offset() const noexcept { return offset_; }
  std::int64_t count() const noexcept { return shuffle_.size(); }

  /// The `i`-th window served in this epoch.
  /// @pre 0 <= i < count()
  window_place at(std::int64_t i) const noexcept {
    const std::int64_t window = shuffle_(i);
    return {epoch_, window, offset_ + window * seq_len_, seq_len_ + 1};
  }
  /// The inverse of `at`: returns the i for which `at(i)` is this window.
  /// @pre 0 <= window < count()
  std::int64_t turn_of(std::int64_t window) const noexcept { return shuffle_.inverse(window); }

  /// Returns the window that has `token` as an input; nullopt if there is none.
  /// @pre 0 <= token
  std::optional<std::int64_t> window_of_input(std::int64_t token) const noexcept {
    assert(0 <= token);
    if (token < offset_) return std::nullopt;
    const std::int64_t window = (token - offset_) / seq_len_;
    return window < count() ? std::optional(window) : std::nullopt;
  }
  /// Returns the window that has `token` as a label; nullopt if there is none.
  std::optional<std::int64_t> window_of_label(std::int64_t token) const noexcept {
    return token == 0 ? std::nullopt : window_of_input(token - 1);
  }

 private:
  feistel shuffle_;
  std::int64_t epoch_;
  std::int64_t offset_;
  std::int64_t seq_len_;
};

/// The instant order of one source: maps `k`, the index of a sample over all epochs, to a window
/// and back. Nothing is built or read. Immutable, 64 bytes, thread-safe.
///
///   stream   0 1 2 3 4 5 6 7 8 9 10      11 tokens, seq_len 3: T = floor(10 / 3) = 3 windows
///   epoch 0  [0 1 2 3]                    offset 0; token 10 is left over
///                  [3 4 5 6]
///                        [6 7 8 9]
///   epoch 5    [1 2 3 4] ...              offset 1 (at most 10 mod 3); token 0 is left over
///
/// Each epoch e cuts the stream at its own offset and serves all T windows in its own order. The
/// offset and the order depend only on (seed, name of the source, e). Definition:
/// formats/spec/instant_order.md, sections 2 to 4.
class window_order {
 public:
  /// @param name         the source's name; with the seed, it determines the random numbers
  /// @param token_count  tokens in the stored stream
  /// @throws config_error  `seq_len` is below 1, or the stream does not have 1 to 2^62 windows.
  window_order(std::string_view name, std::int64_t token_count, std::int64_t seq_len,
               std::uint64_t seed)
      : window_order(order_hash(shuffle_of::windows, seed, name_hash(name)),
                     checked_count(name, token_count, seq_len), token_count, seq_len) {}

  /// T: samples per epoch.
  std::int64_t windows_per_epoch() const noexcept { return count_; }
  std::int64_t seq_len() const noexcept { return seq_len_; }
  std::int64_t token_count() const noexcept { return token_count_; }

  /// @pre 0 <= e
  epoch_windows epoch(std::int64_t e) const noexcept {
    assert(0 <= e);
    const std::uint64_t hash = absorb(hash_, static_cast<std::uint64_t>(e));
    return {e, offset_of(e, hash), seq_len_, feistel(count_, keys_of(hash))};
  }

  /// @pre 0 <= k
  window_place at(std::int64_t k) const noexcept {
    assert(0 <= k);
    return epoch(k / count_).at(k % count_);
  }

  /// The inverse of `at`: the index k of the sample that serves a window in epoch `e`.
  /// @pre 0 <= e, 0 <= window < windows_per_epoch(), and the result is below 2^63
  std::int64_t sample_of(std::int64_t e, std::int64_t window) const noexcept {
    return e * count_ + epoch(e).turn_of(window);
  }

  /// Returns the sample of epoch `e` that has `token` of the stream as an input; nullopt if there
  /// is none.
  /// @pre 0 <= e, 0 <= token < token_count()
  std::optional<std::int64_t> sample_of_input(std::int64_t e, std::int64_t token) const noexcept {
    const epoch_windows windows = epoch(e);
    const auto window = windows.window_of_input(token);
    if (!window) return std::nullopt;
    return e * count_ + windows.turn_of(*window);
  }

  /// Returns the sample of epoch `e` that has `token` of the stream as a label; nullopt if there is
  /// none.
  /// @pre as for `sample_of_input`
  std::optional<std::int64_t> sample_of_label(std::int64_t e, std::int64_t token) const noexcept {
    return token == 0 ? std::nullopt : sample_of_input(e, token - 1);
  }

  /// @pre 0 <= e
  epoch_remainder remainder(std::int64_t e) const noexcept {
    const std::int64_t head = epoch(e).offset();
    return {head, head + count_ * seq_len_};
  }

 private:
  window_order(std::uint64_t hash, std::int64_t count, std::int64_t token_count,
               std::int64_t seq_len) noexcept
      : hash_(hash),
        count_(count),
        token_count_(token_count),
        seq_len_(seq_len),
        slack_(static_cast<std::uint64_t>((token_count - 1) % seq_len)) {}

  static std::int64_t checked_count(std::string_view name, std::int64_t token_count,
                                    std::int64_t seq_len);

  std::int64_t offset_of(std::int64_t e, std::uint64_t hash) const noexcept {
    return e == 0 ? 0 : static_cast<std::int64_t>(draw_below(hash, slack_ + 1));
  }

  std::uint64_t hash_;
  std::int64_t count_;
  std::int64_t token_count_;
  std::int64_t seq_len_;
  std::uint64_t slack_;  // the largest offset
};

// ---------------------------------------------------------------------------------------------

inline std::int64_t window_order::checked_count(std::string_view name, std::int64_t token_count,
                                                std::int64_t seq_len) {
  if (seq_len < 1) {
    throw config_error("seq_len is " + std::to_string(seq_len) + ", expected 1 or more");
  }
  if (token_count <= seq_len) {
    throw config_error("source " + std::string(name) + " has " + std::to_string(token_count) +
                       " tokens, fewer than one window of seq_len + 1 = " +
                       std::to_string(static_cast<std::uint64_t>(seq_len) + 1) +
                       "; omit it, or lower seq_len");
  }
  const std::int64_t count = (token_count - 1) / seq_len;
  if (count > feistel::largest) {
    throw config_error("source " + std::string(name) + " has " + std::to_string(count) +
                       " windows, expected at most 2^62; raise seq_len");
  }
  return count;
}

}  // namespace millrace::dataset
