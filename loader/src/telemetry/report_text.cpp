// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/telemetry/report_text.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

#include <millrace/loader/detail/telemetry/telemetry_report.hpp>

namespace millrace::loader {

namespace detail {

MILLRACE_INLINE std::string decimal(double value, int digits) {
  char text[64];
  const int size = std::snprintf(text, sizeof text, "%.*f", digits, value);
  std::string result(text, static_cast<std::size_t>(size));
  // snprintf uses the decimal point of the locale.
  for (char& c : result) {
    if (c == ',') c = '.';
  }
  return result;
}

MILLRACE_INLINE std::string duration_text(std::int64_t ns) {
  const auto value = static_cast<double>(ns);
  if (ns < 1'000) return std::to_string(ns) + " ns";
  if (ns < 1'000'000) return decimal(value * 1e-3, 1) + " us";
  if (ns < 1'000'000'000) return decimal(value * 1e-6, 1) + " ms";
  return decimal(value * 1e-9, 1) + " s";
}

MILLRACE_INLINE std::string bytes_text(std::int64_t bytes) {
  if (bytes < 1024) return std::to_string(bytes) + " bytes";
  const char* units[] = {"KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes) / 1024;
  int unit = 0;
  for (; value >= 1024 && unit < 3; ++unit) value /= 1024;
  return decimal(value, 1) + " " + units[unit];
}

}  // namespace detail

MILLRACE_INLINE std::string text_of(const telemetry_report& report) {
  using detail::bytes_text;
  using detail::decimal;
  using detail::duration_text;
  const auto counted = [](std::int64_t n, const char* what) {
    return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
  };

  std::string text = "rank " + std::to_string(report.rank) + ": ";
  text += report.batches == 1 ? "1 batch" : std::to_string(report.batches) + " batches";
  text += " in " + duration_text(report.elapsed_ns);
  text += ", waited " + decimal(100 * report.data_wait_share(), 1) + " % (p50 " +
          duration_text(report.waits.quantile_ns(0.5)) + ", p99 " +
          duration_text(report.waits.quantile_ns(0.99)) + ", max " +
          duration_text(report.waits.max_ns) + "; first batch " +
          duration_text(report.first_wait_ns) + ")";
  text += ", ready " + decimal(report.mean_occupancy(), 1) + " of " + std::to_string(report.slots);

  std::int64_t stalls = 0;
  std::string causes;
  for (std::size_t i = 0; i < report.stalls.size(); ++i) {
    const stall_counts& each = report.stalls[i];
    if (each.stalls == 0) continue;
    stalls += each.stalls;
    causes += std::string(causes.empty() ? "" : ", ") + stall_cause_names[i] + " " +
              std::to_string(each.stalls) + " in " + duration_text(each.waited_ns);
  }
  text += ", stalls " + std::to_string(stalls) + (causes.empty() ? "" : " (" + causes + ")");
  text += ", read " + bytes_text(report.bytes) + ", " + counted(report.major_faults, "major fault");
  if (report.mixture.size() > 1) {
    text += ", mixture within " + decimal(100 * report.mixture_error(), 2) + " %";
  }
  return text;
}

}  // namespace millrace::loader
