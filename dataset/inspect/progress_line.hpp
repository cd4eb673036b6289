// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <millrace/command/grouped.hpp>
#include <millrace/command/run_command.hpp>

#include "inspect.hpp"

namespace millrace::inspect {

/// Shows on a terminal how much of a long task is done. Removes the line at the end.
class progress_line {
 public:
  /// @param verb, unit  for example "searched" and "token"
  /// @param total       number of units
  progress_line(std::string verb, std::string unit, std::int64_t total)
      : verb_(std::move(verb)), unit_(std::move(unit)), total_(total) {}
  progress_line(const progress_line&) = delete;
  progress_line& operator=(const progress_line&) = delete;
  ~progress_line() { remove(); }

  void show(std::int64_t done, std::int64_t total) {
    total_ = total;
    show(done);
  }
  void show(std::int64_t done) {
    using namespace std::chrono_literals;
    const auto now = std::chrono::steady_clock::now();
    if (!is_terminal_ || now < next_) return;
    next_ = now + 500ms;
    shown_ = true;
    command::tell(fmt::format("\r{}: {} {} of {} ({} %)\x1b[K", program_name, verb_,
                              command::grouped(done), command::grouped(total_, unit_.c_str()),
                              total_ == 0 ? 100 : done * 100 / total_));
  }

  /// Removes the line, so that something else can be printed. The next `show` prints it again.
  void remove() {
    if (shown_) command::tell("\r\x1b[K");
    shown_ = false;
  }

 private:
  std::string verb_;
  std::string unit_;
  std::int64_t total_;
  bool is_terminal_ = ::isatty(STDERR_FILENO) == 1;
  bool shown_ = false;
  std::chrono::steady_clock::time_point next_ =
      std::chrono::steady_clock::now() + std::chrono::seconds(1);
};

}  // namespace millrace::inspect
