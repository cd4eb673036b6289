// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

#include "record/record_parser.hpp"

namespace millrace::preprocess {

/// How files and answers call each fault_kind.
inline constexpr std::array<std::string_view, fault_kinds> fault_names = {
    "invalid_utf8", "invalid_json", "not_an_object", "missing_key", "wrong_type", "not_encodable"};

}  // namespace millrace::preprocess
