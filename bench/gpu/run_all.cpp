// SPDX-License-Identifier: Apache-2.0
//
// Tests and measures millrace on a GPU. Needs only the other programs in its folder.
//
//   run_all [--minutes N] [--share S] [--results FOLDER] [--data FOLDER]
//
// Runs all steps, for N minutes in total (default: 9). The most valuable steps run first, and each
// step has a time limit. Each measurement takes S times its usual time (default: 1). For a quick
// look, choose S below 1; this also makes large batches smaller. After each step, writes
// results.json and results.md in the folder of --results (default: results). Creates its datasets
// in the folder of --data (default: /dev/shm or /tmp), and deletes them at the end.
//
// Exit status: 0 if every step passed or was skipped because this machine lacks its tool, 1 if a
// step failed, 2 if the arguments are wrong, 3 if there was no time for some steps, 77 if there is
// no GPU, 78 if the driver is too old. If a figure misses its target, its step does not fail, but
// the tables show the miss.

#include <cuda_runtime_api.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <string>
#include <system_error>

#include "bench/gpu/bundle_report.hpp"
#include "bench/gpu/bundle_steps.hpp"
#include "bench/gpu/device_clock.hpp"
#include "bench/gpu/device_program.hpp"
#include "bench/gpu/flags.hpp"
#include "bench/gpu/run_program.hpp"

namespace {

using namespace millrace;

struct settings {
  double minutes = 9;
  double share = 1;
  std::string results = "results";
  std::string data;
};

/// A folder for the datasets. The destructor deletes the folder.
class data_folder {
 public:
  explicit data_folder(const std::string& parent)
      : path_(std::filesystem::path(parent.empty() ? usual() : parent) /
              ("millrace_bundle_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(path_);
  }
  data_folder(const data_folder&) = delete;
  data_folder& operator=(const data_folder&) = delete;
  ~data_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string path() const { return path_.string(); }

 private:
  static std::string usual() {
    std::error_code unknown;
    const auto room = std::filesystem::space("/dev/shm", unknown);
    const bool enough = !unknown && room.available > (std::uintmax_t{1} << 30);
    return enough && ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
  }
  std::filesystem::path path_;
};

// Returns a description of the device on which everything runs. Without it, figures mean nothing.
std::string device_text() {
  cudaDeviceProp device{};
  int driver = 0;
  bench::must(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties");
  bench::must(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  return std::string(device.name) + ", compute capability " + std::to_string(device.major) + "." +
         std::to_string(device.minor) + ", " + std::to_string(device.multiProcessorCount) +
         " multiprocessors, driver for CUDA " + loader::cuda::detail::version_text(driver);
}

bench::step_result run_step(const bench::bundle_step& step, double seconds_left) {
  bench::step_result result{step, {}, bench::step_verdict::passed};
  const double limit = std::min(step.limit_s, seconds_left);
  if (limit < step.least_s) {
    result.verdict = bench::step_verdict::no_time;
    return result;
  }
  if (!bench::is_there(step.command[0])) {
    result.verdict = bench::step_verdict::skipped;
    result.end.output = step.command[0] + " is not on this machine\n";
    return result;
  }
  result.end = bench::run_program(step.command, step.settings, limit);
  if (result.end.cut_off) {
    result.verdict = bench::step_verdict::cut_off;
  } else if (result.end.status == bench::no_device) {
    result.verdict = bench::step_verdict::skipped;
  } else if (result.end.status != bench::passed) {
    result.verdict = bench::step_verdict::failed;
  }
  return result;
}

// Returns whether a failed step counts as a failure of the run. If a step with `may_fail` fails,
// the machine is to blame, not millrace.
bool counts_as_failure(const bench::step_result& result) {
  using bench::step_verdict;
  return !result.step.may_fail &&
         (result.verdict == step_verdict::failed || result.verdict == step_verdict::cut_off);
}

int run_steps(const settings& given) {
  using clock = std::chrono::steady_clock;
  const auto begin = clock::now();
  const std::string folder = bench::folder_of_program();
  std::filesystem::create_directories(given.results);
  const data_folder data(given.data);
  bench::bundle_report report(device_text(), folder + "/MANIFEST");
  bool failed = false, complete = true;
  for (const bench::bundle_step& step :
       bench::bundle_plan(folder, data.path(), given.share).steps()) {
    const double spent = std::chrono::duration<double>(clock::now() - begin).count();
    report.add(run_step(step, 60 * given.minutes - spent));
    failed |= counts_as_failure(report.results().back());
    complete &= report.results().back().verdict != bench::step_verdict::no_time;
    report.write(given.results);
    std::cout << bench::line_of(report.results().back()) << std::endl;
  }
  std::cout << '\n' << report.markdown_of_figures();
  if (failed) return bench::failed;
  return complete ? bench::passed : bench::incomplete;
}

}  // namespace

int main(int argc, char** argv) {
  settings given;
  bench::flags flags("run_all [--minutes N] [--share S] [--results FOLDER] [--data FOLDER]");
  flags.add("--minutes", &given.minutes, 0.1, 600);
  flags.add("--share", &given.share, 0.05, 100);
  flags.add("--results", &given.results);
  flags.add("--data", &given.data);
  if (!flags.parse(argc, argv)) return bench::misused;
  return bench::run_on_device("run_all", [&] { return run_steps(given); });
}
