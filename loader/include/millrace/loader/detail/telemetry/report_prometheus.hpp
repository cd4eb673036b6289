// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <millrace/detail/export.hpp>
#include <millrace/formats/detail/json.hpp>
#include <millrace/loader/detail/telemetry/telemetry_report.hpp>

namespace millrace::loader {

namespace detail {

/// Writes metric families in the Prometheus text format, version 0.0.4.
class prometheus_writer {
 public:
  explicit prometheus_writer(std::int64_t rank) : rank_("rank=\"" + std::to_string(rank) + '"') {}

  void family(std::string_view name, std::string_view type, std::string_view help) {
    name_ = "millrace_loader_" + std::string(name);
    text_ += "# HELP " + name_ + ' ' + std::string(help) + "\n# TYPE " + name_ + ' ' +
             std::string(type) + '\n';
  }

  /// @param labels  labels in addition to the rank: concatenated results of `label()`, each of
  ///                which begins with a comma
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

  /// Writes a histogram of durations. The bucket limits are powers of four, from about 1
  /// microsecond to about 275 seconds; they are written in seconds.
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

/// Formats a report in the Prometheus text format, for a metrics endpoint or for a file that the
/// node exporter's textfile collector reads.
MILLRACE_EXPORT std::string prometheus_of(const telemetry_report& report);

}  // namespace millrace::loader
