// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include <millrace/detail/export.hpp>
#include <millrace/formats/detail/json.hpp>
#include <millrace/loader/detail/telemetry/telemetry_report.hpp>

namespace millrace::loader {

namespace detail {

/// Adds a member. (A list of members in braces makes GCC 12 warn of variants it takes for unset.)
inline void add(formats::json_object& object, const char* name, formats::json_value value) {
  object.push_back({name, std::move(value)});
}

MILLRACE_EXPORT formats::json_object json_of(const duration_counts& durations);

inline formats::json_object json_of(const stall_counts& stalls) {
  formats::json_object object;
  add(object, "stalls", stalls.stalls);
  add(object, "waited_ns", stalls.waited_ns);
  return object;
}

MILLRACE_EXPORT formats::json_object json_of(const mixture_share& share);

}  // namespace detail

/// A report as a JSON object. Times are in nanoseconds and say so in their names.
MILLRACE_EXPORT formats::json_object json_of(const telemetry_report& report);

}  // namespace millrace::loader
