// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/telemetry/report_prometheus.hpp>

#include <cstdint>
#include <string>

#include <millrace/loader/detail/telemetry/telemetry_report.hpp>

namespace millrace::loader {

MILLRACE_INLINE std::string prometheus_of(const telemetry_report& report) {
  detail::prometheus_writer out(report.rank);
  const auto seconds = [](std::int64_t ns) { return static_cast<double>(ns) * 1e-9; };

  out.family("batches_total", "counter", "Micro-batches delivered to the caller.");
  out.sample(report.batches);
  out.family("bytes_total", "counter", "Bytes of tokens read.");
  out.sample(report.bytes);
  out.family("major_faults_total", "counter", "Pages that the reading thread had to wait for.");
  out.sample(report.major_faults);
  out.family("first_wait_seconds", "gauge", "Wait for the first micro-batch.");
  out.sample(seconds(report.first_wait_ns));
  out.family("elapsed_seconds", "gauge", "Time from the first micro-batch to the last.");
  out.sample(seconds(report.elapsed_ns));
  out.family("data_wait_ratio", "gauge", "Share of that time that the caller waited for data.");
  out.sample(report.data_wait_share());
  out.family("ready_batches", "gauge", "Micro-batches ready at each request, on average.");
  out.sample(report.mean_occupancy());
  out.family("ring_slots", "gauge", "Slots of the ring.");
  out.sample(report.slots);
  out.histogram("wait_seconds", "Waits of the caller, excluding the first.", report.waits);
  out.histogram("slot_wait_seconds", "Waits of the producer for a slot.", report.slot_waits);

  out.family("stalls_total", "counter", "Micro-batches that were not ready when requested.");
  for (std::size_t i = 0; i < report.stalls.size(); ++i) {
    out.sample(report.stalls[i].stalls, out.label("cause", stall_cause_names[i]));
  }
  out.family("stall_seconds_total", "counter", "Time that the caller waited for them.");
  for (std::size_t i = 0; i < report.stalls.size(); ++i) {
    out.sample(seconds(report.stalls[i].waited_ns), out.label("cause", stall_cause_names[i]));
  }
  out.family("stage_seconds_total", "counter", "Time that the producer spent in each stage.");
  for (std::size_t i = 0; i < report.stages.size(); ++i) {
    out.sample(seconds(report.stages[i].total_ns), out.label("stage", loader_stage_names[i]));
  }
  if (report.mixture.empty()) return out.text();
  out.family("source_samples_total", "counter", "Samples served from each source of the blend.");
  for (const mixture_share& each : report.mixture) {
    out.sample(each.samples, out.label("source", each.name));
  }
  out.family("source_target_samples", "gauge", "Samples expected from each source by its weight.");
  for (const mixture_share& each : report.mixture) {
    out.sample(each.target_samples, out.label("source", each.name));
  }
  return out.text();
}

}  // namespace millrace::loader
