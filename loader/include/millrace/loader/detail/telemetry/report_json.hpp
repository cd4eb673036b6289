// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include <millrace/detail/export.hpp>
#include <millrace/formats/detail/json.hpp>
#include <millrace/loader/detail/telemetry/telemetry_report.hpp>

namespace millrace::loader {

namespace detail {

/// Adds a member to a JSON object. (A braced list of members would make GCC 12 warn falsely of
/// uninitialized variants.)
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

/// Converts a report to a JSON object. Times are in nanoseconds; the names of their members end in
/// `_ns`.
MILLRACE_EXPORT formats::json_object json_of(const telemetry_report& report);

}  // namespace millrace::loader
