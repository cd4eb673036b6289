// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include <millrace/io/detail/unique_fd.hpp>

#include "watch/metrics_text.hpp"
#include "watch/progress_state.hpp"

namespace millrace::preprocess {

enum class metrics_format : std::uint8_t {
  json,        ///< a line of JSON more for each sample; the file is emptied first
  prometheus,  ///< the whole file replaced by each sample, so that no reader sees half of one
};

/// @throws config_error  `name` is neither `json` nor `prometheus`.
metrics_format metrics_format_of(std::string_view name);

/// Writes how a run goes to a file for other programs: each second, on a thread of its own, so that
/// a run that hangs shows as one whose numbers stand still; and once more at the end.
///
/// Metrics never end a run: what cannot be written is lost, and noted once. Nothing is synced.
class run_metrics {
 public:
  static constexpr std::chrono::milliseconds usual_period{1000};

  /// @param total_bytes  on disk, of all inputs; 0 where it is not known
  run_metrics(std::filesystem::path path, metrics_format format, std::uint64_t total_bytes,
              std::chrono::milliseconds period = usual_period);
  run_metrics(const run_metrics&) = delete;
  run_metrics& operator=(const run_metrics&) = delete;
  /// Without finish() before, the last sample says that the run has not finished.
  ~run_metrics();

  /// What the next samples say. Any thread.
  void update(const progress_state& state);

  /// Writes the last sample, of a run that ended well; update() changes nothing from then on.
  void finish(const progress_state& state);

  /// Why something could not be written, for a person: one line, given once. Any thread.
  std::optional<std::string> take_note();

 private:
  using clock = std::chrono::steady_clock;
  void run(std::chrono::milliseconds period);
  void end(bool finished);
  void write_sample(const progress_state& state, bool finished);
  void write_line(std::string_view line);
  void replace(std::string_view text);
  void fail(const std::string& why);

  const std::filesystem::path path_;
  const metrics_format format_;
  const std::uint64_t total_bytes_;
  const clock::time_point start_ = clock::now();

  std::mutex mutex_;  // guards the next five
  std::condition_variable wake_;
  progress_state state_;
  bool ended_ = false;
  bool failed_ = false;
  std::optional<std::string> note_;

  // Of whoever writes: the thread, and end() once it has joined that.
  io::unique_fd file_;  // open from the first line on
  bool torn_ = false;   // the last line was cut off
  metrics_sample before_;
  std::thread thread_;  // last, so that all else is there when it starts
};

}  // namespace millrace::preprocess
