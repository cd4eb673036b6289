// SPDX-License-Identifier: Apache-2.0
#include "run/stop_signals.hpp"

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
  struct ::sigaction action {};
  action.sa_handler = note_signal;
  action.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);
  for (const int number : {SIGTERM, SIGINT, SIGUSR1}) (void)::sigaction(number, &action, nullptr);
  return caught;
}

}  // namespace millrace::preprocess
