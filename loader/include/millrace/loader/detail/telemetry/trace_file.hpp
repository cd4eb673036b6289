// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include <millrace/detail/export.hpp>
#include <millrace/loader/detail/telemetry/trace_ring.hpp>

namespace millrace::loader {

/// Events as JSON that ui.perfetto.dev and chrome://tracing show: a track for the caller and
/// each producer, stalls with their cause, and a counter of batches that are ready. Times are in
/// microseconds since the first event. Ranks are processes, so that their traces can be joined.
MILLRACE_EXPORT std::string trace_json(std::span<const trace_event> events, std::int64_t rank);

/// Writes that to a file, whole or not at all.
///
/// @throws io_error  it cannot be written
MILLRACE_EXPORT void write_trace(const std::filesystem::path& path,
                                 std::span<const trace_event> events, std::int64_t rank);

}  // namespace millrace::loader
