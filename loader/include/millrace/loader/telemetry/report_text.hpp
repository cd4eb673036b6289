// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <millrace/loader/telemetry/number_text.hpp>
#include <millrace/loader/telemetry/telemetry_report.hpp>

namespace millrace::loader {

/// A report as one line for a log, without a line end:
///
///   rank 0: 2000 batches in 10.0 s, waited 0.3 % (p50 210 ns, p99 1.9 us, max 12.0 ms; first
///   batch 8.1 ms), ready 3.0 of 4, stalls 3 (storage 2 in 24.0 ms, gather 1 in 1.1 ms),
///   read 125.0 MiB, 12 major faults, mixture within 0.1 %
inline std::string text_of(const telemetry_report& report) {
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
