// SPDX-License-Identifier: Apache-2.0
#include "process/stop_flag.hpp"

#include <csignal>

#include <fmt/format.h>

#include "process/fault_point.hpp"

namespace millrace::preprocess {
namespace {

std::string name_of(int signal) {
  switch (signal) {
    case SIGHUP:
      return "SIGHUP";
    case SIGINT:
      return "SIGINT";
    case SIGTERM:
      return "SIGTERM";
    case SIGUSR1:
      return "SIGUSR1";
    default:
      return fmt::format("signal {}", signal);
  }
}

}  // namespace

std::string stop_message(int signal, std::string_view consequence) {
  return fmt::format("stopped by {}: {}", name_of(signal), consequence);
}

void stop_flag::check() const {
  if (signal_ == nullptr) return;
  fault_point("look");
  if (const int signal = signal_->load(); signal != 0) {
    throw stopped(stop_message(signal, consequence_));
  }
}

namespace {

std::atomic<int> caught{0};
static_assert(std::atomic<int>::is_always_lock_free, "all that a signal handler may touch");

extern "C" void note_signal(int number) {
  caught.store(number);
}

}  // namespace

const std::atomic<int>& catch_stop_signals() {
  for (const int number : {SIGHUP, SIGINT, SIGTERM, SIGUSR1}) {
    struct ::sigaction found {};
    if (::sigaction(number, nullptr, &found) == 0 && found.sa_handler == SIG_IGN) continue;
    struct ::sigaction action {};
    action.sa_handler = note_signal;
    action.sa_flags = SA_RESTART;
    if (number != SIGHUP) action.sa_flags |= static_cast<int>(SA_RESETHAND);
    (void)::sigaction(number, &action, nullptr);
  }
  return caught;
}

}  // namespace millrace::preprocess
