// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "watch/progress_state.hpp"
#include "watch/smoothed_rate.hpp"

namespace millrace::preprocess {

/// Tells a person on stderr how a run goes: a bar on a terminal, Megatron's lines elsewhere. Both
/// come at most once a second or so, however fast documents go by. A bar shows rates of late and
/// what time they leave; lines show rates since the start, as Megatron's do. For one thread.
class progress {
 public:
  enum class style : std::uint8_t { silent, lines, bar };

  /// Bar on a terminal, lines otherwise.
  static style style_of_stderr();

  /// @param log_interval  documents between two lines, at least
  /// @param total_bytes   on disk, of all inputs; 0 where it is not known
  progress(style how, std::int64_t log_interval, std::uint64_t total_bytes);
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;
  virtual ~progress() { close(); }  // what is said of a failure starts on a clean line

  virtual void update(const progress_state& state);
  /// A line that stays, such as a skipped record.
  virtual void note(std::string_view line);
  /// The same of the run itself: what there was to do, or what it leaves.
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
