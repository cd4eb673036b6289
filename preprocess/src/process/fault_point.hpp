// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace millrace::preprocess {

/// Marks a step between two changes on disk, so that crash tests can stop the process at each step.
/// If the environment has `MILLRACE_TEST_KILL_AT=N`, the Nth call sends SIGKILL to this process.
/// With `MILLRACE_TEST_KILL_AT=NAME:N`, only calls whose `name` is NAME count.
/// `MILLRACE_TEST_STOP_AT` works the same way, but sends SIGTERM. Without these variables, this
/// function does nothing. Any thread may call it.
void fault_point(const char* name) noexcept;

}  // namespace millrace::preprocess
