// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace millrace::loader::detail {

/// With so many digits behind the point, whatever the locale says.
std::string decimal(double value, int digits);

/// "812 ns", "3.4 us", "12.0 ms", "1.5 s".
std::string duration_text(std::int64_t ns);

/// "512 bytes", "8.0 KiB", "1.5 GiB".
std::string bytes_text(std::int64_t bytes);

}  // namespace millrace::loader::detail
