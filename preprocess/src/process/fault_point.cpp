// SPDX-License-Identifier: Apache-2.0
#include "process/fault_point.hpp"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <string>
#include <string_view>

namespace millrace::preprocess {
namespace {

/// Sends a signal to this process at the step that an environment variable names.
class signal_order {
 public:
  signal_order(const char* variable, int signal) : signal_(signal) {
    const char* text = std::getenv(variable);
    if (text == nullptr) return;
    const std::string_view whole = text;
    const std::size_t colon = whole.find(':');
    if (colon != whole.npos) name_ = whole.substr(0, colon);
    step_ = std::atol(text + (colon == whole.npos ? 0 : colon + 1));
  }

  void pass(const char* name) noexcept {
    if (step_ == 0 || (!name_.empty() && name_ != name)) return;
    if (++passed_ == step_) (void)std::raise(signal_);
  }

 private:
  int signal_;
  std::string name_;  // empty: any step
  long step_ = 0;     // 0: no signal was requested
  std::atomic<long> passed_{0};
};

}  // namespace

void fault_point(const char* name) noexcept {
  static signal_order kill("MILLRACE_TEST_KILL_AT", SIGKILL);
  static signal_order stop("MILLRACE_TEST_STOP_AT", SIGTERM);
  kill.pass(name);
  stop.pass(name);
}

}  // namespace millrace::preprocess
