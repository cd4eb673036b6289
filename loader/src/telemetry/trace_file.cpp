// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/telemetry/trace_file.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include <millrace/io/atomic_file.hpp>
#include <millrace/loader/detail/telemetry/report_text.hpp>
#include <millrace/loader/detail/telemetry/stage.hpp>
#include <millrace/loader/detail/telemetry/trace_ring.hpp>

namespace millrace::loader {

MILLRACE_INLINE std::string trace_json(std::span<const trace_event> events, std::int64_t rank) {
  constexpr const char* names[] = {"plan", "storage", "gather", "copy", "wait for a slot", "wait"};
  constexpr int caller = 1;
  constexpr int first_producer = 2;
  int producers = 0;
  const std::string process = "\"pid\": " + std::to_string(rank);
  std::int64_t origin = events.empty() ? 0 : events.front().begin_ns;
  for (const trace_event& each : events) {
    origin = std::min(origin, each.begin_ns);
    if (each.kind < trace_kind::wait) producers = std::max(producers, each.detail + 1);
  }
  const auto micros = [](std::int64_t ns) {
    return detail::decimal(static_cast<double>(ns) * 1e-3, 3);
  };
  const auto named = [&](const char* what, int track, const std::string& name) {
    return std::string("{\"name\": \"") + what + "\", \"ph\": \"M\", " + process +
           ", \"tid\": " + std::to_string(track) + ", \"args\": {\"name\": \"" + name + "\"}}";
  };

  std::string text = "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n";
  text += named("process_name", 0, "loader of rank " + std::to_string(rank)) + ",\n";
  text += named("thread_name", caller, "caller");
  for (int i = 0; i < producers; ++i) {
    text += ",\n" + named("thread_name", first_producer + i, "producer " + std::to_string(i));
  }
  for (const trace_event& each : events) {
    text += ",\n";
    const std::string at = ", \"ts\": " + micros(each.begin_ns - origin);
    if (each.kind == trace_kind::ready) {
      text += "{\"name\": \"ready batches\", \"ph\": \"C\", " + process + at +
              ", \"args\": {\"ready\": " + std::to_string(each.micro_batch) + "}}";
      continue;
    }
    const bool waited = each.kind == trace_kind::wait;
    const int track = waited ? caller : first_producer + each.detail;
    text += std::string("{\"name\": \"") + names[static_cast<std::size_t>(each.kind)] +
            "\", \"ph\": \"X\", " + process + ", \"tid\": " + std::to_string(track) + at +
            ", \"dur\": " + micros(each.end_ns - each.begin_ns) +
            ", \"args\": {\"micro_batch\": " + std::to_string(each.micro_batch);
    if (waited && each.detail != 0) {
      text += std::string(", \"stalled_by\": \"") + stall_cause_names[each.detail - 1U] + '"';
    }
    text += "}}";
  }
  return text + "\n]}\n";
}

MILLRACE_INLINE void write_trace(const std::filesystem::path& path,
                                 std::span<const trace_event> events, std::int64_t rank) {
  const std::string text = trace_json(events, rank);
  io::atomic_file file(path);
  file.append(std::as_bytes(std::span(text)));
  file.commit();
}

}  // namespace millrace::loader
