// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "support/resume_fault.hpp"

/// Runs jobs of preprocess_data_mpi with all ranks on this machine.
namespace millrace::test {

/// A rank with an environment variable that the other ranks do not have.
struct special_rank {
  int rank = 0;
  std::string environment = {};  ///< NAME=VALUE
};

class mpi_job : public resume_fault {
 protected:
  // Variables for Open MPI; other versions of MPI ignore them. Among other things, they allow more
  // ranks than cores, and allow root to run jobs in containers.
  static strings environment_of(int tasks, strings more = {}) {
    strings all = {"OMPI_MCA_rmaps_base_oversubscribe=1",
                   "OMPI_ALLOW_RUN_AS_ROOT=1",
                   "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
                   "OMPI_MCA_mpi_yield_when_idle=1",
                   "OMPI_MCA_odls_base_sigkill_timeout=0",  // seconds from SIGTERM to SIGKILL
                   "ASAN_OPTIONS=detect_leaks=0",           // MPI itself leaks
                   "MILLRACE_TEST_TASKS=" + std::to_string(tasks)};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  strings job_of(int ranks, const strings& more, const special_rank& special = {}) const {
    strings rank_command = command(more);
    rank_command.front() = program("preprocess_data_mpi").string();
    rank_command.insert(rank_command.end(), {"--workers", "1"});
    strings all = {MILLRACE_MPIEXEC};
    const auto add = [&](int count, const std::string& environment) {
      if (count == 0) return;
      if (all.size() > 1) all.push_back(":");
      all.insert(all.end(), {"-n", std::to_string(count)});
      if (!environment.empty()) all.insert(all.end(), {"/usr/bin/env", environment});
      all.insert(all.end(), rank_command.begin(), rank_command.end());
    };
    if (special.environment.empty()) {
      add(ranks, "");
    } else {
      add(special.rank, "");
      add(1, special.environment);
      add(ranks - special.rank - 1, "");
    }
    return all;
  }

  program_result run_job(int ranks, int tasks, const strings& more = {},
                         const special_rank& special = {}, const strings& environment = {}) const {
    program_options options;
    options.environment = environment_of(tasks, environment);
    return run_program(job_of(ranks, more, special), options);
  }

  // Expects that each file with a final name equals the file of that name in `wanted`. Outputs of
  // tasks (names with `-of-`) and files of unfinished runs (.partial, .journal) are ignored.
  void expect_no_half_outputs(const file_set& wanted) const {
    for (const auto& [name, bytes] : files_of(out())) {
      if (name.ends_with(".partial") || name.ends_with(".journal")) continue;
      if (name.find("-of-") != name.npos) continue;
      EXPECT_TRUE(wanted.contains(name) && wanted.at(name) == bytes) << name;
    }
  }

  // Returns the single line that preprocess_data_mpi printed among the messages of mpirun.
  static std::string sentence_of(const program_result& result) {
    const std::string start = "preprocess_data_mpi: ";
    const std::size_t begin = result.err.find(start);
    if (begin == result.err.npos) return {};
    EXPECT_EQ(result.err.find(start, begin + 1), result.err.npos) << result.err;
    return result.err.substr(begin, result.err.find('\n', begin) - begin);
  }
};

}  // namespace millrace::test
