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
  bool wait_for_each_other = false;  ///< after each step; threads only
  loader::simulate_options steps;
  /// Of a rank.
  std::function<loader::loader_options(std::int64_t rank)> options;
  /// Its own copy of the run: as much memory as it really takes.
  std::function<run_configuration()> run;
};

/// What became of a rank. A plain value, so that a process can send it as it lies.
struct rank_outcome {
  loader::simulated_rank times;
  loader::process_memory memory;  ///< of the process, when the rank was done
  std::int64_t slots = 0;
  char reader[32] = {};  ///< that the loader read by
};

/// Runs them all to their end. Processes are forked, so the caller must have no other threads then.
///
/// @return one a rank
/// @throws error  what the first rank that failed met
std::vector<rank_outcome> run_ranks(const simulated_run& what);

}  // namespace millrace::inspect
