// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <millrace/detail/export.hpp>

namespace millrace::dataset {

/// Returns true if the absolute value of a decimal number is 1 or more. Looks only at the digits
/// and the exponent, so it also works for numbers out of a double's range, which Python reads as
/// infinity or zero.
///
/// @param number  [+-]digits[.digits][(e|E)[+-]digits], with at least one nonzero digit
MILLRACE_EXPORT bool is_beyond_one(std::string_view number) noexcept;

}  // namespace millrace::dataset
