// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

namespace millrace::preprocess {

/// Catches SIGHUP, SIGINT, SIGTERM and SIGUSR1 (Slurm sends SIGUSR1 before it takes a node away).
/// Call this once, before the process has other threads.
///
/// The first signal does not end the process. Instead, it changes the returned value from 0 to the
/// signal's number. A second SIGINT, SIGTERM or SIGUSR1 of the same kind ends the process at once.
/// A second SIGHUP does not, because the shell and the kernel may each send one when a terminal
/// closes.
///
/// A signal that was ignored when the program started stays ignored, as under `nohup` or in a
/// background job of a shell script.
const std::atomic<int>& catch_stop_signals();

}  // namespace millrace::preprocess
