// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace millrace::preprocess {

/// Marks a step between two changes on disk, for crash tests. With MILLRACE_TEST_KILL_AT=N in the
/// environment, the process sends itself SIGKILL at the Nth step; with NAME:N, at the Nth step of
/// that name. MILLRACE_TEST_STOP_AT has the same form and sends SIGTERM. Otherwise does nothing.
/// Tests try every step. Any thread.
void fault_point(const char* name) noexcept;

}  // namespace millrace::preprocess
