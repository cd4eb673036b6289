// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace millrace::preprocess {

/// Marks a step between two changes on disk. Crash tests stop the process at every step. With
/// MILLRACE_TEST_KILL_AT=N in the environment, the process sends itself SIGKILL at the Nth step.
/// With MILLRACE_TEST_KILL_AT=NAME:N, only steps called NAME count. MILLRACE_TEST_STOP_AT has the
/// same form and sends SIGTERM. Without these variables, this function does nothing. Any thread may
/// call it.
void fault_point(const char* name) noexcept;

}  // namespace millrace::preprocess
