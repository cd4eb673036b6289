// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

namespace millrace::bench {

/// A program that `run_all` runs.
struct bundle_step {
  std::string name;
  std::vector<std::string> command;
  std::vector<std::string> settings = {};  ///< environment variables, NAME=VALUE
  double limit_s = 60;
  double least_s = 5;     ///< with less time left, the step is left out
  bool may_fail = false;  ///< of a tool that may be forbidden on this machine
};

/// Whether a program exists: a path, or a name that $PATH finds.
inline bool is_there(const std::string& program) {
  if (program.find('/') != std::string::npos) return ::access(program.c_str(), X_OK) == 0;
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    folder += '/';
    folder += program;
    if (::access(folder.c_str(), X_OK) == 0) return true;
  }
  return false;
}

namespace detail {

/// Where NVIDIA's tool is, or its name.
inline std::string cuda_tool(const std::string& name) {
  const std::string usual = "/usr/local/cuda/bin/" + name;
  return !is_there(name) && is_there(usual) ? usual : name;
}

}  // namespace detail

/// The steps, the most valuable first.
///
/// @param folder  the programs of the bundle
/// @param data    for the datasets
inline std::vector<bundle_step> bundle_steps(const std::string& folder, const std::string& data) {
  const auto own = [&](const std::string& program) { return folder + "/" + program; };
  const std::string narrow = data + "/u16", wide = data + "/i32";
  const auto steps_of = [&](const std::string& load, const std::string& milliseconds,
                            const std::string& queues, const std::string& seconds) {
    return bundle_step{"step_ratio " + load + " " + milliseconds + " ms, " + queues + " queues",
                       {own("step_ratio"), narrow, "--load", load, "--milliseconds", milliseconds,
                        "--seconds", seconds},
                       {"CUDA_DEVICE_MAX_CONNECTIONS=" + queues},
                       45};
  };
  std::vector<bundle_step> steps = {
      {"machine", {"nvidia-smi"}, {}, 20, 1, true},
      {"data", {own("make_data"), narrow, "70", "u16"}, {}, 60},
      {"data, wide", {own("make_data"), wide, "10", "i32"}, {}, 60},
      {"tests", {own("gpu_tests")}, {}, 240, 20},
      steps_of("one_sm", "5", "8", "10"),
      {"kernel_time", {own("kernel_time")}, {}, 30},
      {"batch_rate, 64 KiB", {own("batch_rate"), narrow}, {}, 45},
      {"batch_rate, 64 MiB",
       {own("batch_rate"), narrow, "--rows", "8192", "--seconds", "16"},
       {},
       60,
       20},
      steps_of("one_sm", "1", "8", "6"),
      steps_of("one_sm", "0.3", "8", "5"),
  };
  for (const char* load : {"all_sms", "memory"}) {
    steps.push_back(steps_of(load, "5", "8", "6"));
    steps.push_back(steps_of(load, "1", "8", "5"));
    steps.push_back(steps_of(load, "0.3", "8", "4"));
  }
  for (const char* load : {"one_sm", "all_sms", "memory"}) {
    steps.push_back(steps_of(load, "5", "1", "6"));
    steps.push_back(steps_of(load, "1", "1", "5"));
    steps.push_back(steps_of(load, "0.3", "1", "4"));
  }
  steps.push_back({"batch_rate, 128 KiB of int32", {own("batch_rate"), wide}, {}, 45});
  steps.push_back({"torch", {"python3", own("torch_tensors.py")}, {}, 60, 10});
  for (const char* tool : {"memcheck", "racecheck", "synccheck"}) {
    steps.push_back(
        {std::string("compute-sanitizer ") + tool,
         {detail::cuda_tool("compute-sanitizer"), "--tool", tool, "--error-exitcode", "1",
          own("kernel_time"), "--rows", "2", "--seq-len", "3000", "--launches", "1"},
         {},
         60,
         10});
  }
  steps.push_back(
      {"ncu",
       {detail::cuda_tool("ncu"), "--clock-control", "none", "-k", "regex:make_batch", "--metrics",
        "gpu__time_duration.sum,dram__bytes.sum", own("kernel_time"), "--launches", "20"},
       {},
       60,
       10,
       true});
  return steps;
}

}  // namespace millrace::bench
