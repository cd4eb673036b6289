// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <millrace/detail/export.hpp>

namespace millrace::dataset {

/// Whether a decimal number is 1 or more, its sign aside, by its digits and its exponent alone: for
/// those that no double holds, which are infinity or zero to Python.
///
/// @param number  [+-]digits[.digits][(e|E)[+-]digits], with a digit other than 0
MILLRACE_EXPORT bool is_beyond_one(std::string_view number) noexcept;

}  // namespace millrace::dataset
