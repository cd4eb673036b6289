// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "watch/progress_state.hpp"
#include "watch/smoothed_rate.hpp"

namespace millrace::preprocess {

/// Shows the progress of a run on stderr: a bar on a terminal, Megatron's lines elsewhere. Both are
/// updated at most about once per second. A bar shows recent rates and the remaining time that they
/// imply. Lines show rates since the start, as Megatron's do. For one thread.
class progress {
 public:
  enum class style : std::uint8_t { silent, lines, bar };

  /// Bar on a terminal, lines otherwise.
  static style style_of_stderr();

  /// @param log_interval  minimum number of documents between two lines
  /// @param total_bytes   size of all inputs on disk; 0 if unknown
  progress(style how, std::int64_t log_interval, std::uint64_t total_bytes);
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;
  virtual ~progress() { close(); }  // so that an error message starts on a clean line

  virtual void update(const progress_state& state);
  /// Prints a permanent line, for example for a skipped record.
  virtual void note(std::string_view line);
  /// The same for a note about the run itself: what it had to do, or what it left.
  virtual void note_outcome(std::string_view line) { note(line); }
  /// Removes the bar.
  void close() noexcept;

 private:
  using clock = std::chrono::steady_clock;
  void draw_bar(const progress_state& state, double seconds);

  style style_;
  std::int64_t log_interval_;
  std::uint64_t total_bytes_;
  clock::time_point start_ = clock::now();
  clock::time_point last_shown_ = start_;
  std::int64_t next_documents_;
  smoothed_rate documents_rate_;
  smoothed_rate tokens_rate_;
  smoothed_rate input_rate_;
  smoothed_rate read_rate_;
};

}  // namespace millrace::preprocess
