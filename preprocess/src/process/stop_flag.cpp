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

}  // namespace millrace::preprocess
