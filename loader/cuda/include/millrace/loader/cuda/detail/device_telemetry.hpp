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

/// A device loader has two meters: its host loader's, whose consumer is the pipe, and the pipe's
/// own, whose consumer is the training loop. These functions combine them.
namespace millrace::loader::cuda {

/// Takes waits, stalls and occupancy, as the training loop sees them, and copy times from the pipe.
/// Takes the read counters, and the times of planning, storage and gathering, from the host's
/// threads. The mixture covers the batches that the pipe has taken, a few more than the training
/// loop.
inline telemetry_report joined_report(const telemetry_report& host, telemetry_report pipe) {
  for (const loader_stage each :
       {loader_stage::plan, loader_stage::storage, loader_stage::gather}) {
    const auto i = static_cast<std::size_t>(each);
    pipe.stages[i] = host.stages[i];  // the pipe's own values are its waits for these stages
  }
  pipe.bytes = host.bytes;
  pipe.major_faults = host.major_faults;
  pipe.mixture = host.mixture;
  return pipe;
}

/// Merges the events of both, sorted by begin time. The host's threads are the first producers; the
/// pipe is the producer after them. The pipe's waits for the host are left out, because the events
/// of the host's threads cover them.
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
