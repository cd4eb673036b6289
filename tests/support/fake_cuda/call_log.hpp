// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace millrace::test {

/// One call of the runtime, and what it returned.
struct runtime_call {
  std::string name;
  std::thread::id thread;
  int code = 0;
};

/// The calls made so far, the failures to inject into later ones, and the errors and faults found.
class call_log {
 public:
  /// Makes the k-th call from now on, counted from 1, fail without any effect.
  /// @param name     counts only calls of this function; empty: all
  /// @param further  the same for all later calls, and `name` need only be part of the name
  void fail(std::string name, std::int64_t k, int code, bool further) {
    fail_name_ = std::move(name);
    fail_at_ = k;
    fail_code_ = code;
    fail_further_ = further;
  }

  /// Adds a call of this thread. `code` is what the call returns unless a test makes it fail.
  int add(const std::string& name, int code) {
    if (is_to_fail(name)) code = fail_code_;
    calls_.push_back({name, std::this_thread::get_id(), code});
    return refuse(code);
  }
  /// The last call that was added returns this code.
  int correct(int code) {
    calls_.back().code = code;
    return refuse(code);
  }

  /// Each thread has its own last error.
  int refuse(int code) {
    if (code != 0) errors_[std::this_thread::get_id()] = code;
    return code;
  }
  /// cudaGetLastError. An error of a broken device comes again.
  int take_error(int broken) { return std::exchange(errors_[std::this_thread::get_id()], broken); }
  /// An error that its thread has not taken; 0: none.
  int error_left() const {
    for (const auto& [thread, code] : errors_) {
      if (code != 0) return code;
    }
    return 0;
  }

  /// Adds a misuse of the runtime, and returns the code.
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
