// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

namespace millrace::preprocess {

/// From now on the first SIGTERM, SIGINT or SIGUSR1 (what Slurm sends before it takes a node away)
/// does not end the process, but sets the number given back, from 0 to that of the signal. A second
/// one of the same kind ends it at once. Call it once, before there are threads.
const std::atomic<int>& catch_stop_signals();

}  // namespace millrace::preprocess
