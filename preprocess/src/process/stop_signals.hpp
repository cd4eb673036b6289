// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

namespace millrace::preprocess {

/// Catches SIGHUP, SIGINT, SIGTERM and SIGUSR1 (Slurm sends it before it takes a node away). Call
/// it once, before there are threads.
///
/// The first signal does not end the process but sets the returned number, which is 0 until then.
/// A second SIGINT, SIGTERM or SIGUSR1 of the same kind ends the process at once. A second SIGHUP
/// does not: the shell and the kernel may each send one when a terminal closes.
///
/// A signal that was ignored when the program started stays ignored, as under `nohup` or in a
/// background job of a shell script.
const std::atomic<int>& catch_stop_signals();

}  // namespace millrace::preprocess
