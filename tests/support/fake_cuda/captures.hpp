// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include <millrace/loader/cuda/detail/cuda_api.hpp>

namespace millrace::test {

/// The capture modes of streams and threads, and the errors that concern captures. Their numeric
/// values are those of CUDA.
struct capture_terms {
  enum capture_mode : int { global, thread_local_only, relaxed };

  static constexpr int capture_unsupported = 900;
  static constexpr int capture_invalidated = 901;
  static constexpr int capture_merge = 902;
  static constexpr int capture_unmatched = 903;
  static constexpr int capture_unjoined = 904;
  static constexpr int capture_isolation = 905;
  static constexpr int capture_implicit = 906;
  static constexpr int captured_event = 907;
  static constexpr int capture_wrong_thread = 908;
};

/// The captures of streams into graphs, and the calls that CUDA forbids during a capture. The
/// graphs are never launched. The rules are those of the documentation of `cudaStreamBeginCapture`,
/// `cudaStreamEndCapture` and `cudaThreadExchangeStreamCaptureMode`.
///
/// Functions that return a code return 0 if the call is allowed. A forbidden call also makes the
/// capture invalid, so that the call that ends the capture fails.
class captures : public capture_terms {
 public:
  using stream = loader::cuda::stream;
  using event = loader::cuda::event;

  /// Begins a capture on the calling thread.
  int begin(stream which, capture_mode mode) {
    if (streams_.contains(which)) return capture_unmatched;
    auto fresh = std::make_shared<sequence>();
    fresh->thread = std::this_thread::get_id();
    fresh->mode = mode;
    fresh->origin = which;
    streams_[which] = {fresh, {}};
    return 0;
  }

  /// Ends a capture and drops the graph.
  int end(stream which) {
    const auto found = streams_.find(which);
    if (found == streams_.end() || found->second.of->origin != which) return capture_unmatched;
    const std::shared_ptr<sequence> ended = found->second.of;
    if (ended->mode != relaxed && ended->thread != std::this_thread::get_id()) {
      ended->spoiled = true;
      return capture_wrong_thread;
    }
    const node_set joined = found->second.behind;
    const bool unjoined = std::ranges::any_of(streams_, [&](const auto& each) {
      return each.second.of == ended && !std::ranges::includes(joined, each.second.behind);
    });
    std::erase_if(streams_, [&](const auto& each) { return each.second.of == ended; });
    ended->over = true;
    return ended->spoiled ? capture_invalidated : unjoined ? capture_unjoined : 0;
  }

  bool contains(stream which) const { return streams_.contains(which); }
  /// Returns a `cudaStreamCaptureStatus`: 0 (none), 1 (active) or 2 (invalidated).
  int status(stream which) const {
    const auto found = streams_.find(which);
    return found == streams_.end() ? 0 : found->second.of->spoiled ? 2 : 1;
  }

  /// Checks whether the calling thread, in this mode, may make a call that is unsafe during
  /// captures: a call that waits, allocates or frees. Returns 0 or the error code.
  int refuse_unsafe(capture_mode mode_of_thread) {
    if (mode_of_thread == relaxed) return 0;
    int code = 0;
    for (auto& [which, each] : streams_) {
      const sequence& one = *each.of;
      const bool concerns = one.thread == std::this_thread::get_id()
                                ? one.mode != relaxed
                                : one.mode == global && mode_of_thread == global;
      if (concerns) code = spoil(each, capture_unsupported);
    }
    return code;
  }
  /// Checks whether the host may wait for a stream or event. In every mode, it must not wait for a
  /// stream or event that belongs to a graph. Returns 0 or the error code.
  int refuse_wait_for(stream which) {
    const auto found = streams_.find(which);
    return found == streams_.end() ? 0 : spoil(found->second, capture_unsupported);
  }
  int refuse_wait_for(event which) {
    const auto found = events_.find(which);
    return found == events_.end() ? 0 : spoil(found->second, captured_event);
  }

  /// Adds an operation to the graph of a stream that is being captured.
  int add(stream to) {
    member& at = streams_.at(to);
    if (at.of->spoiled) return capture_invalidated;
    at.behind.insert(at.of->nodes++);
    return 0;
  }
  /// Records an event on a stream. The event belongs to the graph if the stream is being captured.
  int record(event which, stream behind) {
    events_.erase(which);
    const auto found = streams_.find(behind);
    if (found == streams_.end()) return 0;
    if (found->second.of->spoiled) return capture_invalidated;
    events_[which] = found->second;
    return 0;
  }
  void forget(event which) { events_.erase(which); }

  /// Makes a stream wait for an event. The stream or the event, or both, must belong to a graph. If
  /// the event belongs to a graph, the stream is then captured, too.
  /// @param recorded  false if the event was never recorded; the stream then does not wait
  int wait(stream waits, event which, bool recorded) {
    const auto stream_found = streams_.find(waits);
    const auto event_found = events_.find(which);
    if (event_found == events_.end()) {
      return recorded ? spoil(stream_found->second, capture_isolation) : 0;
    }
    if (event_found->second.of->over) return captured_event;
    if (stream_found == streams_.end()) {
      streams_[waits] = event_found->second;
      return 0;
    }
    if (stream_found->second.of != event_found->second.of) {
      (void)spoil(event_found->second, capture_merge);
      return spoil(stream_found->second, capture_merge);
    }
    stream_found->second.behind.merge(node_set(event_found->second.behind));
    return stream_found->second.of->spoiled ? capture_invalidated : 0;
  }
  bool concerns(stream waits, event which) const {
    return streams_.contains(waits) || events_.contains(which);
  }

  /// Makes the capture of a stream invalid because of an operation on another stream.
  int spoil(stream which, int code) { return spoil(streams_.at(which), code); }

 private:
  using node_set = std::set<int>;

  /// A capture, which may have spread to several streams.
  struct sequence {
    std::thread::id thread;
    capture_mode mode = global;
    stream origin = nullptr;
    int nodes = 0;
    bool spoiled = false;
    bool over = false;
  };
  /// The place of a stream or event in a capture: its capture, and the operations of the graph that
  /// come before it.
  struct member {
    std::shared_ptr<sequence> of;
    node_set behind;
  };

  static int spoil(const member& which, int code) {
    which.of->spoiled = true;
    return code;
  }

  std::map<stream, member> streams_;
  std::map<event, member> events_;
};

}  // namespace millrace::test
