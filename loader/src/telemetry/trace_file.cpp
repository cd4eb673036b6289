// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/telemetry/trace_file.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include <millrace/formats/detail/json_writer.hpp>
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
  std::int64_t origin = events.empty() ? 0 : events.front().begin_ns;
  for (const trace_event& each : events) {
    origin = std::min(origin, each.begin_ns);
    if (each.kind < trace_kind::wait) producers = std::max(producers, each.detail + 1);
  }
  const auto micros = [](std::int64_t ns) {
    return detail::decimal(static_cast<double>(ns) * 1e-3, 3);
  };

  std::string lines;
  const auto add = [&](const formats::json_writer& event) {
    if (!lines.empty()) lines += ",\n";
    lines += event.text();
  };
  const auto begin = [&](std::string_view name, std::string_view phase) {
    formats::json_writer json;
    json.open('{').key("name").value(name).key("ph").value(phase).key("pid").value(rank);
    return json;
  };
  const auto add_name = [&](std::string_view what, int track, const std::string& name) {
    auto json = begin(what, "M");
    json.key("tid").value(track).key("args").open('{').key("name").value(name).close('}');
    add(json.close('}'));
  };
  add_name("process_name", 0, "loader of rank " + std::to_string(rank));
  add_name("thread_name", caller, "caller");
  for (int i = 0; i < producers; ++i) {
    add_name("thread_name", first_producer + i, "producer " + std::to_string(i));
  }
  for (const trace_event& each : events) {
    const std::string at = micros(each.begin_ns - origin);
    if (each.kind == trace_kind::ready) {
      auto json = begin("ready batches", "C");
      json.key("ts").raw(at).key("args").open('{').key("ready").value(each.micro_batch).close('}');
      add(json.close('}'));
      continue;
    }
    const bool waited = each.kind == trace_kind::wait;
    const int track = waited ? caller : first_producer + each.detail;
    auto json = begin(names[static_cast<std::size_t>(each.kind)], "X");
    json.key("tid").value(track).key("ts").raw(at);
    json.key("dur").raw(micros(each.end_ns - each.begin_ns));
    json.key("args").open('{').key("micro_batch").value(each.micro_batch);
    if (waited && each.detail != 0) {
      json.key("stalled_by").value(stall_cause_names[each.detail - 1U]);
    }
    add(json.close('}').close('}'));
  }

  // Writes one event per line.
  formats::json_writer json;
  json.open('{').key("displayTimeUnit").value("ns");
  json.key("traceEvents").raw("[\n" + lines + "\n]").close('}');
  return json.text() + '\n';
}

MILLRACE_INLINE void write_trace(const std::filesystem::path& path,
                                 std::span<const trace_event> events, std::int64_t rank) {
  const std::string text = trace_json(events, rank);
  io::atomic_file file(path);
  file.append(std::as_bytes(std::span(text)));
  file.commit();
}

}  // namespace millrace::loader
