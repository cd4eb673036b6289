// SPDX-License-Identifier: Apache-2.0
#include "process/stop_signals.hpp"

#include <csignal>

namespace millrace::preprocess {
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
