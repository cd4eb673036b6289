// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include <millrace/detail/export.hpp>
#include <millrace/loader/detail/telemetry/telemetry_report.hpp>

namespace millrace::loader {

/// Formats a report as one line for a log, without a newline. (The example is wrapped here.)
///
///   rank 0: 2000 batches in 10.0 s, waited 0.3 % (p50 210 ns, p99 1.9 us, max 12.0 ms; first
///   batch 8.1 ms), ready 3.0 of 4, stalls 3 (storage 2 in 24.0 ms, gather 1 in 1.1 ms),
///   read 125.0 MiB, 12 major faults, mixture within 0.1 %
MILLRACE_EXPORT std::string text_of(const telemetry_report& report);

namespace detail {

/// Formats a value with `digits` digits after a decimal point. The locale has no effect.
MILLRACE_EXPORT std::string decimal(double value, int digits);

/// Formats a duration: "812 ns", "3.4 us", "12.0 ms", "1.5 s".
MILLRACE_EXPORT std::string duration_text(std::int64_t ns);

/// Formats a size: "512 bytes", "8.0 KiB", "1.5 GiB".
MILLRACE_EXPORT std::string bytes_text(std::int64_t bytes);

}  // namespace detail

}  // namespace millrace::loader
