// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include <millrace/detail/export.hpp>
#include <millrace/loader/detail/telemetry/trace_ring.hpp>

namespace millrace::loader {

/// Formats events as JSON for ui.perfetto.dev and chrome://tracing. The trace has a track for the
/// caller, a track per producer, the stalls with their causes, and a counter of ready batches.
/// Times are in microseconds since the first event. Each rank appears as a process, so that the
/// traces of several ranks can be merged.
MILLRACE_EXPORT std::string trace_json(std::span<const trace_event> events, std::int64_t rank);

/// Writes the result of `trace_json` to a file. An existing file is replaced atomically.
///
/// @throws io_error  the file cannot be written
MILLRACE_EXPORT void write_trace(const std::filesystem::path& path,
                                 std::span<const trace_event> events, std::int64_t rank);

}  // namespace millrace::loader
