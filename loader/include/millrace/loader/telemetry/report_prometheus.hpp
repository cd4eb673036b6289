// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <millrace/formats/json.hpp>
#include <millrace/loader/telemetry/telemetry_report.hpp>

namespace millrace::loader {

namespace detail {

/// Writes families of metrics in the text format of Prometheus, version 0.0.4.
class prometheus_writer {
 public:
  explicit prometheus_writer(std::int64_t rank) : rank_("rank=\"" + std::to_string(rank) + '"') {}

  void family(std::string_view name, std::string_view type, std::string_view help) {
    name_ = "millrace_loader_" + std::string(name);
    text_ += "# HELP " + name_ + ' ' + std::string(help) + "\n# TYPE " + name_ + ' ' +
             std::string(type) + '\n';
  }

  /// @param labels  beside the rank's, as `label()` writes them, each with a comma before it
  template <class T>
  void sample(T value, const std::string& labels = {}, std::string_view suffix = {}) {
    text_ += name_ + std::string(suffix) + '{' + rank_ + labels + "} " + number(value) + '\n';
  }

  static std::string label(std::string_view name, std::string_view value) {
    std::string text = "," + std::string(name) + "=\"";
    for (const char c : value) {
      if (c == '\\' || c == '"') text += '\\';
      if (c == '\n') {
        text += "\\n";
      } else {
        text += c;
      }
    }
    return text + '"';
  }

  /// In seconds, by powers of four from a microsecond or so to four minutes.
  void histogram(std::string_view name, std::string_view help, const duration_counts& counts) {
    family(name, "histogram", help);
    for (int log2 = 10; log2 <= 38; log2 += 2) {
      sample(counts.below_power(log2),
             label("le", number(static_cast<double>(std::int64_t{1} << log2) * 1e-9)), "_bucket");
    }
    sample(counts.count, label("le", "+Inf"), "_bucket");
    sample(static_cast<double>(counts.total_ns) * 1e-9, {}, "_sum");
    sample(counts.count, {}, "_count");
  }

  const std::string& text() const noexcept { return text_; }

 private:
  static std::string number(std::int64_t value) { return std::to_string(value); }
  static std::string number(double value) { return formats::write_json(value); }

  std::string rank_;
  std::string name_;
  std::string text_;
};

}  // namespace detail

/// A report in the text format of Prometheus: what an endpoint of metrics answers, or a file for
/// the textfile collector of its node exporter.
inline std::string prometheus_of(const telemetry_report& report) {
  detail::prometheus_writer out(report.rank);
  const auto seconds = [](std::int64_t ns) { return static_cast<double>(ns) * 1e-9; };

  out.family("batches_total", "counter", "Micro-batches that the caller got.");
  out.sample(report.batches);
  out.family("bytes_total", "counter", "Bytes of tokens that were read.");
  out.sample(report.bytes);
  out.family("major_faults_total", "counter", "Pages that the reading thread had to wait for.");
  out.sample(report.major_faults);
  out.family("first_wait_seconds", "gauge", "Wait for the first micro-batch.");
  out.sample(seconds(report.first_wait_ns));
  out.family("elapsed_seconds", "gauge", "Time from the first micro-batch to the last.");
  out.sample(seconds(report.elapsed_ns));
  out.family("data_wait_ratio", "gauge", "Share of that time that the caller waited for data.");
  out.sample(report.data_wait_share());
  out.family("ready_batches", "gauge", "Micro-batches ready when one was asked for, on average.");
  out.sample(report.mean_occupancy());
  out.family("ring_slots", "gauge", "Slots of the ring.");
  out.sample(report.slots);
  out.histogram("wait_seconds", "Waits of the caller, without the first.", report.waits);
  out.histogram("slot_wait_seconds", "Waits of the producer for a slot.", report.slot_waits);

  out.family("stalls_total", "counter", "Micro-batches that were not ready when asked for.");
  for (std::size_t i = 0; i < report.stalls.size(); ++i) {
    out.sample(report.stalls[i].stalls, out.label("cause", stall_cause_names[i]));
  }
  out.family("stall_seconds_total", "counter", "Time that the caller waited for those.");
  for (std::size_t i = 0; i < report.stalls.size(); ++i) {
    out.sample(seconds(report.stalls[i].waited_ns), out.label("cause", stall_cause_names[i]));
  }
  out.family("stage_seconds_total", "counter", "Time that the producer spent in each stage.");
  for (std::size_t i = 0; i < report.stages.size(); ++i) {
    out.sample(seconds(report.stages[i].total_ns), out.label("stage", loader_stage_names[i]));
  }
  if (report.mixture.empty()) return out.text();
  out.family("source_samples_total", "counter", "Samples that each source of the blend gave.");
  for (const mixture_share& each : report.mixture) {
    out.sample(each.samples, out.label("source", each.name));
  }
  out.family("source_target_samples", "gauge", "Samples that each was to give by its weight.");
  for (const mixture_share& each : report.mixture) {
    out.sample(each.target_samples, out.label("source", each.name));
  }
  return out.text();
}

}  // namespace millrace::loader
