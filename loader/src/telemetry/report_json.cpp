// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/telemetry/report_json.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>

#include <millrace/formats/detail/json.hpp>
#include <millrace/loader/detail/telemetry/telemetry_report.hpp>

namespace millrace::loader {

namespace detail {

MILLRACE_INLINE formats::json_object json_of(const duration_counts& durations) {
  formats::json_object object;
  add(object, "count", durations.count);
  add(object, "total_ns", durations.total_ns);
  add(object, "p50_ns", durations.quantile_ns(0.5));
  add(object, "p99_ns", durations.quantile_ns(0.99));
  add(object, "max_ns", durations.max_ns);
  return object;
}

MILLRACE_INLINE formats::json_object json_of(const mixture_share& share) {
  formats::json_object object;
  add(object, "source", share.name);
  add(object, "samples", share.samples);
  add(object, "target_samples", share.target_samples);
  return object;
}

}  // namespace detail

MILLRACE_INLINE formats::json_object json_of(const telemetry_report& report) {
  formats::json_object stalls;
  for (std::size_t i = 0; i < report.stalls.size(); ++i) {
    detail::add(stalls, stall_cause_names[i], detail::json_of(report.stalls[i]));
  }
  formats::json_object stages;
  for (std::size_t i = 0; i < report.stages.size(); ++i) {
    detail::add(stages, loader_stage_names[i], detail::json_of(report.stages[i]));
  }
  formats::json_array occupancy;
  for (const std::int64_t times : report.occupancy) occupancy.emplace_back(times);
  formats::json_array mixture;
  for (const mixture_share& each : report.mixture) mixture.emplace_back(detail::json_of(each));

  formats::json_object object;
  detail::add(object, "rank", report.rank);
  detail::add(object, "batches", report.batches);
  detail::add(object, "first_wait_ns", report.first_wait_ns);
  detail::add(object, "elapsed_ns", report.elapsed_ns);
  detail::add(object, "data_wait_share", report.data_wait_share());
  detail::add(object, "waits", detail::json_of(report.waits));
  detail::add(object, "stalls", std::move(stalls));
  detail::add(object, "stages", std::move(stages));
  detail::add(object, "slot_waits", detail::json_of(report.slot_waits));
  detail::add(object, "slots", report.slots);
  detail::add(object, "mean_ready", report.mean_occupancy());
  detail::add(object, "times_ready", std::move(occupancy));
  detail::add(object, "bytes", report.bytes);
  detail::add(object, "major_faults", report.major_faults);
  detail::add(object, "mixture_error", report.mixture_error());
  detail::add(object, "mixture", std::move(mixture));
  return object;
}

}  // namespace millrace::loader
