// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <millrace/loader/detail/telemetry/stage.hpp>
#include <millrace/loader/detail/telemetry/telemetry_report.hpp>
#include <millrace/loader/detail/telemetry/trace_ring.hpp>

/// A device loader has two meters: its host loader's, whose caller is the pipe, and the pipe's own,
/// whose caller is the training. These make one of them.
namespace millrace::loader::cuda {

/// Waits, stalls and occupancy as the training sees them, with the pipe's copies; what was read,
/// and how long planning, storage and gathering took, as the host's threads told it. The mixture is
/// that of the batches which the pipe has taken, a few ahead of the training.
inline telemetry_report joined_report(const telemetry_report& host, telemetry_report pipe) {
  for (const loader_stage each :
       {loader_stage::plan, loader_stage::storage, loader_stage::gather}) {
    const auto i = static_cast<std::size_t>(each);
    pipe.stages[i] = host.stages[i];  // the pipe's own are its waits for these
  }
  pipe.bytes = host.bytes;
  pipe.major_faults = host.major_faults;
  pipe.mixture = host.mixture;
  return pipe;
}

/// Events of both, by their begin: the host's threads are the first producers, the pipe is the one
/// behind them. What the pipe waited for the host is left out, being told by the host's threads.
inline std::vector<trace_event> joined_trace(std::vector<trace_event> host,
                                             const std::vector<trace_event>& pipe,
                                             std::size_t host_threads) {
  std::erase_if(host, [](const trace_event& e) { return e.kind >= trace_kind::wait; });
  for (trace_event each : pipe) {
    if (each.kind < trace_kind::copy) continue;
    if (each.kind < trace_kind::wait) each.detail = static_cast<std::uint8_t>(host_threads);
    host.push_back(each);
  }
  std::ranges::stable_sort(host, {}, &trace_event::begin_ns);
  return host;
}

}  // namespace millrace::loader::cuda
