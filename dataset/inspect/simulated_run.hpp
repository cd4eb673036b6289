// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <millrace/loader/detail/simulate/process_memory.hpp>
#include <millrace/loader/detail/simulate/simulate_rank.hpp>
#include <millrace/loader/options.hpp>

#include "run_flags.hpp"

namespace millrace::inspect {

/// How the ranks of a simulation run on this machine.
enum class ranks_as : std::uint8_t { threads, processes };

/// A simulation of all ranks of a run.
struct simulated_run {
  std::int64_t ranks = 1;
  ranks_as as = ranks_as::threads;
  /// Each rank waits for all others after each step; threads only.
  bool wait_for_each_other = false;
  loader::simulate_options steps;
  /// The loader options of a rank.
  std::function<loader::loader_options(std::int64_t rank)> options;
  /// Creates a separate copy of the run for each rank, so that memory use is realistic.
  std::function<run_configuration()> run;
};

/// The result of a rank. Trivially copyable, so that a process can send its bytes.
struct rank_outcome {
  loader::simulated_rank times;
  loader::process_memory memory;  ///< of the process, after the rank finished
  std::int64_t slots = 0;
  char reader[32] = {};  ///< name of the reader that the loader used
};

/// Runs all ranks to completion.
///
/// @pre `what.as` is `threads`, or the calling process has only one thread (this function forks it)
/// @return one outcome per rank
/// @throws error  the error of the first rank that failed
std::vector<rank_outcome> run_ranks(const simulated_run& what);

}  // namespace millrace::inspect
