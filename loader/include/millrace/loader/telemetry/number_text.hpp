// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include <millrace/export.hpp>

namespace millrace::loader::detail {

/// With so many digits behind the point, whatever the locale says.
MILLRACE_EXPORT std::string decimal(double value, int digits);

/// "812 ns", "3.4 us", "12.0 ms", "1.5 s".
MILLRACE_EXPORT std::string duration_text(std::int64_t ns);

/// "512 bytes", "8.0 KiB", "1.5 GiB".
MILLRACE_EXPORT std::string bytes_text(std::int64_t bytes);

}  // namespace millrace::loader::detail
