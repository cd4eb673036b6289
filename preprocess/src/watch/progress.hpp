// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "watch/progress_state.hpp"
#include "watch/smoothed_rate.hpp"

namespace millrace::preprocess {

/// Shows the progress of a run on stderr: a bar on a terminal, and lines like Megatron's otherwise.
/// A bar shows recent rates and the remaining time that follows from them; it is updated at most
/// five times per second. Lines show average rates since the start, as Megatron's do; there is at
/// most one per second. Not thread-safe.
class progress {
 public:
  enum class style : std::uint8_t { silent, lines, bar };

  /// Returns `bar` if stderr is a terminal, `lines` otherwise.
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
  /// Prints a permanent line about the run itself, such as what it kept after an error.
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
