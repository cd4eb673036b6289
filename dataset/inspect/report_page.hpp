// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace millrace::inspect {

/// The contents of report.html, in which a word between two at signs is to be replaced: POLICY by
/// the content security policy, DATA by the JSON and SCRIPT by the script.
extern const std::string_view report_page;
/// The contents of report.js.
extern const std::string_view report_script;

}  // namespace millrace::inspect
