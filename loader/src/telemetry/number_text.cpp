// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/telemetry/number_text.hpp>

#include <cstdint>
#include <cstdio>
#include <string>

namespace millrace::loader::detail {

MILLRACE_INLINE std::string decimal(double value, int digits) {
  char text[64];
  const int size = std::snprintf(text, sizeof text, "%.*f", digits, value);
  std::string result(text, static_cast<std::size_t>(size));
  // snprintf writes the locale's point.
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

}  // namespace millrace::loader::detail
