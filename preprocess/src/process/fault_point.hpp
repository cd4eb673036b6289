// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace millrace::preprocess {

/// A step between two changes of what is on disk. Does nothing, unless the environment has
/// MILLRACE_TEST_KILL_AT=N: then the process kills itself, as by SIGKILL, at the Nth step; or
/// MILLRACE_TEST_KILL_AT=NAME:N, at the Nth of that name. Tests go through all of them. With
/// MILLRACE_TEST_STOP_AT, in the same form, the process sends itself SIGTERM there. Any thread.
void fault_point(const char* name) noexcept;

}  // namespace millrace::preprocess
