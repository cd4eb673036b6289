// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/telemetry/report_text.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

#include <millrace/loader/telemetry/number_text.hpp>
#include <millrace/loader/telemetry/telemetry_report.hpp>

namespace millrace::loader {

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
