// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace millrace::bench {

/// A program that `run_all` runs.
struct bundle_step {
  std::string name;
  std::vector<std::string> command;
  std::vector<std::string> settings = {};  ///< environment variables, NAME=VALUE
  double limit_s = 60;
  double least_s = 5;     ///< the step is skipped if less time is left
  bool may_fail = false;  ///< for a tool that this machine may forbid or lack
};

/// Returns whether a program exists. `program` is a path, or a name that is looked up in $PATH.
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

/// Returns the path of an NVIDIA tool in CUDA's usual folder, or only `name` if $PATH has the tool
/// or if it is not found at all.
inline std::string cuda_tool(const std::string& name) {
  const std::string usual = "/usr/local/cuda/bin/" + name;
  return !is_there(name) && is_there(usual) ? usual : name;
}

}  // namespace detail

/// Makes the steps of a bundle.
class bundle_plan {
 public:
  /// @param folder  folder that contains the bundle's programs
  /// @param data    folder for the datasets
  /// @param share   duration of each measurement, as a multiple of its usual duration. If `share`
  ///                is below 1, large batches have 4 MiB instead of 64 MiB.
  bundle_plan(std::string folder, const std::string& data, double share)
      : folder_(std::move(folder)), narrow_(data + "/u16"), wide_(data + "/i32"), share_(share) {}

  /// Returns the steps. The most valuable steps come first.
  std::vector<bundle_step> steps() const {
    std::vector<bundle_step> steps = {
        {"machine", {"nvidia-smi"}, {}, 20, 1, true},
        {"data", {own("make_data"), narrow_, "70", "u16"}},
        {"data, wide", {own("make_data"), wide_, "10", "i32"}},
        {"tests", {own("gpu_tests")}, {}, 240, 20},
        training("one_sm", "5", "8", 10),
        {"kernel_time", {own("kernel_time"), "--rounds", share_ < 1 ? "1" : "9"}},
        {"batch_rate, 64 KiB", {own("batch_rate"), narrow_, "--seconds", seconds(8)}},
        {"batch_rate, large",
         {own("batch_rate"), narrow_, "--rows", share_ < 1 ? "512" : "8192", "--seconds",
          seconds(16)},
         {},
         75,
         20},
        training("one_sm", "1", "8", 6),
        training("one_sm", "0.3", "8", 5),
    };
    add_training(steps, {"all_sms", "memory"}, "8");
    add_training(steps, {"one_sm", "all_sms", "memory"}, "1");
    steps.push_back(
        {"batch_rate, 128 KiB of int32", {own("batch_rate"), wide_, "--seconds", seconds(8)}});
    steps.push_back({"torch", {"python3", own("torch_tensors.py")}, {}, 60, 10});
    add_tools(steps);
    return steps;
  }

 private:
  std::string own(const std::string& program) const { return folder_ + "/" + program; }

  std::string seconds(double usual) const { return std::to_string(share_ * usual); }

  bundle_step training(const std::string& load, const std::string& milliseconds,
                       const std::string& queues, double usual_s) const {
    return {"step_ratio " + load + " " + milliseconds + " ms, connections " + queues,
            {own("step_ratio"), narrow_, "--load", load, "--milliseconds", milliseconds,
             "--seconds", seconds(usual_s)},
            {"CUDA_DEVICE_MAX_CONNECTIONS=" + queues},
            45};
  }

  void add_training(std::vector<bundle_step>& steps, const std::vector<std::string>& loads,
                    const std::string& queues) const {
    for (const std::string& load : loads) {
      steps.push_back(training(load, "5", queues, 6));
      steps.push_back(training(load, "1", queues, 5));
      steps.push_back(training(load, "0.3", queues, 4));
    }
  }

  static bundle_step sanitized(const std::string& tool, const std::vector<std::string>& program) {
    bundle_step step{"compute-sanitizer " + tool, {}, {}, 90, 15};
    step.command = {detail::cuda_tool("compute-sanitizer"), "--tool", tool, "--error-exitcode",
                    "1"};
    step.command.insert(step.command.end(), program.begin(), program.end());
    return step;
  }

  void add_tools(std::vector<bundle_step>& steps) const {
    for (const char* tool : {"memcheck", "racecheck", "synccheck"}) {
      steps.push_back(sanitized(
          tool, {own("kernel_time"), "--rows", "2", "--seq-len", "3000", "--launches", "1"}));
    }
    steps.push_back(sanitized(
        "memcheck", {own("gpu_tests"), "--here", "a_consumer_may_use_the_default_stream"}));
    steps.back().name += " of a test";
    steps.push_back({"ncu",
                     {detail::cuda_tool("ncu"), "--clock-control", "none", "-k", "regex:make_batch",
                      "--metrics", "gpu__time_duration.sum,dram__bytes.sum", own("kernel_time"),
                      "--launches", "20"},
                     {},
                     60,
                     10,
                     true});
  }

  std::string folder_;
  std::string narrow_;
  std::string wide_;
  double share_;
};

}  // namespace millrace::bench
