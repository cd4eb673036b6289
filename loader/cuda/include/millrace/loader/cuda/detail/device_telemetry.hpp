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

/// A device loader has two meters. For the host loader's meter, the consumer is the pipe. For the
/// pipe's own meter, the consumer is the training loop. These functions combine the two meters.
namespace millrace::loader::cuda {

/// Joins two reports. Waits, stalls, occupancy and copy times come from the pipe, as the training
/// loop sees them. The read counters and the times of planning, storage and gathering come from the
/// host's threads. The mixture covers all batches that the pipe has taken. The training loop may
/// have received a few batches less.
inline telemetry_report joined_report(const telemetry_report& host, telemetry_report pipe) {
  for (const loader_stage each :
       {loader_stage::plan, loader_stage::storage, loader_stage::gather}) {
    const auto i = static_cast<std::size_t>(each);
    // the pipe's own values are the times that it waited for these stages
    pipe.stages[i] = host.stages[i];
  }
  pipe.bytes = host.bytes;
  pipe.major_faults = host.major_faults;
  pipe.mixture = host.mixture;
  return pipe;
}

/// Merges the events of host and pipe, sorted by begin time. In the result, the host's threads are
/// the first producers and the pipe is the last one. The pipe's waits for the host are left out,
/// because the events of the host's threads cover them.
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
