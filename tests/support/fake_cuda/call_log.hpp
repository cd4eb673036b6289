// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace millrace::test {

/// One call of the runtime, and the code that it returned.
struct runtime_call {
  std::string name;
  std::thread::id thread;
  int code = 0;
};

/// The calls made so far, the failures to inject into later calls, the last error of each thread,
/// and the faults (misuses of the runtime).
class call_log {
 public:
  /// Makes the k-th call after this one fail without any effect. `k` counts from 1.
  /// @param name     counts only calls of this function; if empty, counts all calls
  /// @param further  makes all later calls fail, too; `name` then need only be part of the
  ///                 function's name
  void fail(std::string name, std::int64_t k, int code, bool further) {
    fail_name_ = std::move(name);
    fail_at_ = k;
    fail_code_ = code;
    fail_further_ = further;
  }

  /// Adds a call of the calling thread. Returns `code`, or the injected code if a test makes this
  /// call fail.
  int add(const std::string& name, int code) {
    if (is_to_fail(name)) code = fail_code_;
    calls_.push_back({name, std::this_thread::get_id(), code});
    return refuse(code);
  }
  /// Changes the code of the last added call to `code`. Returns `code`.
  int correct(int code) {
    calls_.back().code = code;
    return refuse(code);
  }

  /// Sets the calling thread's last error if `code` is not 0. Returns `code`.
  int refuse(int code) {
    if (code != 0) errors_[std::this_thread::get_id()] = code;
    return code;
  }
  /// Implements `cudaGetLastError`: returns the last error of the calling thread, and replaces it
  /// with `broken` (the error of a broken device, otherwise 0).
  int take_error(int broken) { return std::exchange(errors_[std::this_thread::get_id()], broken); }
  /// Returns an error that a thread has not taken with take_error(), or 0 if there is none.
  int error_left() const {
    for (const auto& [thread, code] : errors_) {
      if (code != 0) return code;
    }
    return 0;
  }

  /// Adds a misuse of the runtime, and returns `code`.
  int fault(std::string what, int code) {
    faults_.push_back(std::move(what));
    return refuse(code);
  }

  const std::vector<runtime_call>& calls() const { return calls_; }
  const std::vector<std::string>& faults() const { return faults_; }

 private:
  bool is_to_fail(const std::string& name) {
    const bool chosen = fail_further_ ? name.find(fail_name_) != std::string::npos
                                      : fail_name_.empty() || fail_name_ == name;
    if (fail_at_ == 0 || !chosen || --fail_at_ > 0) return false;
    if (fail_further_) fail_at_ = 1;
    return true;
  }

  std::string fail_name_;
  std::int64_t fail_at_ = 0;
  int fail_code_ = 0;
  bool fail_further_ = false;
  std::vector<runtime_call> calls_;
  std::vector<std::string> faults_;
  std::map<std::thread::id, int> errors_;
};

}  // namespace millrace::test
