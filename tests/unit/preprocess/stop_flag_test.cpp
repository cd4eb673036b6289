// SPDX-License-Identifier: Apache-2.0
#include "process/stop_flag.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <string>

#include "support/child_process.hpp"

namespace millrace::preprocess {
namespace {

constexpr int all[] = {SIGHUP, SIGINT, SIGTERM, SIGUSR1};

// Restores the default actions, because this process may have been started with some of these
// signals ignored.
void restore_all() {
  for (const int number : all) (void)std::signal(number, SIG_DFL);
}

TEST(StopSignals, SetTheNumberAndDoNotEndTheProcess) {
  for (const int number : all) {
    EXPECT_EQ(test::in_child([&] {
                restore_all();
                const std::atomic<int>& caught = catch_stop_signals();
                if (caught != 0) return -1;
                (void)std::raise(number);
                return caught.load();
              }),
              number);
  }
}

TEST(StopSignals, StayIgnoredIfTheyWereAtTheStart) {
  for (const int number : all) {
    EXPECT_EQ(test::in_child([&] {
                restore_all();
                (void)std::signal(number, SIG_IGN);
                const std::atomic<int>& caught = catch_stop_signals();
                (void)std::raise(number);
                return caught == 0 ? 0 : 1;
              }),
              0)
        << number;
  }
}

TEST(StopSignals, EndTheProcessTheSecondTimeButForAHangup) {
  for (const int number : all) {
    EXPECT_EQ(test::in_child([&] {
                restore_all();
                const std::atomic<int>& caught = catch_stop_signals();
                (void)std::raise(number);
                (void)std::raise(number);
                return caught.load();
              }),
              number == SIGHUP ? SIGHUP : 1000 + number);
  }
}

TEST(StopFlag, NamesTheSignalAndTheConsequence) {
  const auto said = [](const stop_flag& stop) -> std::string {
    try {
      stop.check();
      return "";
    } catch (const stopped& e) {
      return e.what();
    }
  };
  std::atomic<int> signal{0};
  EXPECT_EQ(said({}), "");
  EXPECT_EQ(said({nullptr, "x"}), "");
  EXPECT_EQ(said({&signal, "all is removed"}), "");
  signal = SIGHUP;
  EXPECT_EQ(said({&signal, "all is removed"}), "stopped by SIGHUP: all is removed");
  signal = 63;
  EXPECT_EQ(said({&signal, "all is removed"}), "stopped by signal 63: all is removed");
}

}  // namespace
}  // namespace millrace::preprocess
