// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace millrace::preprocess {

/// The values that a progress bar shows. Rates are per second.
struct bar_view {
  std::int64_t documents = 0;
  double megabytes_rate = 0;
  double documents_rate = 0;
  double tokens_rate = 0;
  std::optional<double> done;  ///< fraction, 0 to 1; nothing if the size of the inputs is unknown
  std::optional<double> seconds_left;
};

/// Returns one line without a line end. It is shorter than `columns` characters, so that no
/// terminal wraps it:
///
///   [=======>      ]  54%  81.2 MB/s  3214 docs/s  19.8M tokens/s  1:23 left
///
/// Fields that do not fit are omitted, the least important first.
std::string bar_line(const bar_view& view, std::size_t columns);

/// Formats a number with about three significant digits: "9999", "12.3k", "4.56M".
std::string short_number(double value);

/// Formats a duration: "42 s", "3:05", "27:00:00".
std::string short_duration(double seconds);

}  // namespace millrace::preprocess
