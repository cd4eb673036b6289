// SPDX-License-Identifier: Apache-2.0
#include "watch/metrics_text.hpp"

#include <iterator>
#include <string_view>

#include <fmt/format.h>

#include <millrace/formats/detail/json_writer.hpp>

namespace millrace::preprocess {
namespace {

class prometheus_writer {
 public:
  void describe(std::string_view name, std::string_view type, std::string_view help) {
    fmt::format_to(std::back_inserter(text_),
                   "# HELP millrace_preprocess_{0} {2}\n# TYPE millrace_preprocess_{0} {1}\n", name,
                   type, help);
  }
  template <class T>
  void sample(std::string_view name, T value, std::string_view labels = {}) {
    fmt::format_to(std::back_inserter(text_), "millrace_preprocess_{}{} {}\n", name, labels, value);
  }
  template <class T>
  void counter(std::string_view name, T value, std::string_view help) {
    describe(name, "counter", help);
    sample(name, value);
  }
  template <class T>
  void gauge(std::string_view name, T value, std::string_view help) {
    describe(name, "gauge", help);
    sample(name, value);
  }
  const std::string& text() const noexcept { return text_; }

 private:
  std::string text_;
};

template <class T>
double rate(T now, T before, double seconds) {
  return seconds > 0 ? (static_cast<double>(now) - static_cast<double>(before)) / seconds : 0;
}

}  // namespace

std::string metrics_json(const metrics_sample& now, const metrics_sample& before) {
  const progress_state& s = now.state;
  const double passed = now.seconds - before.seconds;
  formats::json_writer json;
  json.open('{').key("unix_seconds").value(now.unix_seconds).key("seconds").value(now.seconds);
  json.key("documents").value(s.documents).key("tokens").value(s.tokens);
  json.key("input_bytes").value(s.input_bytes).key("read_bytes").value(s.read_bytes);
  json.key("total_bytes").value(now.total_bytes).key("output_bytes").value(s.output_bytes);
  json.key("bad_records").value(s.bad_records);
  json.key("blocks_in_flight").value(s.blocks_in_flight);
  json.key("documents_per_second")
      .value(rate(s.documents, before.state.documents, passed))
      .key("tokens_per_second")
      .value(rate(s.tokens, before.state.tokens, passed))
      .key("input_bytes_per_second")
      .value(rate(s.input_bytes, before.state.input_bytes, passed));
  json.key("busy_seconds").open('{');
  json.key("read").value(s.busy.read).key("read_spans").value(s.busy.read_spans);
  json.key("encode").value(s.busy.encode);
  json.key("write").value(s.busy.write).key("sync").value(s.busy.sync).close('}');
  json.key("finished").value(now.finished).close('}');
  return json.text() + "\n";
}

std::string metrics_prometheus(const metrics_sample& now) {
  const progress_state& s = now.state;
  prometheus_writer out;
  out.counter("documents_total", s.documents, "Documents written.");
  out.counter("tokens_total", s.tokens, "Tokens written, over all keys.");
  out.counter("input_bytes_total", s.input_bytes, "Bytes of input processed, decompressed.");
  out.counter("read_bytes_total", s.read_bytes, "Bytes of input read, as stored on disk.");
  out.counter("output_bytes_total", s.output_bytes, "Bytes written to all outputs.");
  out.counter("bad_records_total", s.bad_records, "Bad records skipped.");
  out.describe("busy_seconds_total", "counter",
               "Time that a stage was busy; for read_spans and encode, the sum over all workers.");
  out.sample("busy_seconds_total", s.busy.read, R"({stage="read"})");
  out.sample("busy_seconds_total", s.busy.read_spans, R"({stage="read_spans"})");
  out.sample("busy_seconds_total", s.busy.encode, R"({stage="encode"})");
  out.sample("busy_seconds_total", s.busy.write, R"({stage="write"})");
  out.sample("busy_seconds_total", s.busy.sync, R"({stage="sync"})");
  out.counter("elapsed_seconds_total", now.seconds, "Time since the run began.");
  out.gauge("blocks_in_flight", s.blocks_in_flight, "Blocks read, and not yet written.");
  out.gauge("input_size_bytes", now.total_bytes, "Size of all inputs on disk; 0 if unknown.");
  out.gauge("finished", now.finished ? 1 : 0, "Whether the run finished successfully: 1 or 0.");
  return out.text();
}

}  // namespace millrace::preprocess
