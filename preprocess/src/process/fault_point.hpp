// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace millrace::preprocess {

/// Marks a step between two changes on disk, for crash tests, which try every step. If the
/// environment variable MILLRACE_TEST_KILL_AT is N, the process sends itself SIGKILL at the Nth
/// step; if it is NAME:N, at the Nth step called NAME. MILLRACE_TEST_STOP_AT has the same form and
/// sends SIGTERM. Without these variables, this function does nothing. Any thread may call it.
void fault_point(const char* name) noexcept;

}  // namespace millrace::preprocess
