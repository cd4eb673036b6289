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

#include "report/progress.hpp"

namespace millrace::preprocess {

/// One sample of a run's metrics.
struct metrics_sample {
  progress_state state = {};
  double unix_seconds = 0;        ///< Unix time
  double seconds = 0;             ///< seconds since the run began
  std::uint64_t total_bytes = 0;  ///< size of all inputs on disk; 0 if unknown
  bool finished = false;          ///< the run succeeded
};

/// Returns a sample as one JSON object on one line. Rates are averages since `before`, which is an
/// earlier sample of the same run, or an empty one.
std::string metrics_json(const metrics_sample& now, const metrics_sample& before);

/// Returns a sample in Prometheus's text format: each metric with its HELP and TYPE. It has no
/// rates, because Prometheus computes them.
std::string metrics_prometheus(const metrics_sample& now);

enum class metrics_format : std::uint8_t {
  json,        ///< empties the file, then appends one JSON line per sample
  prometheus,  ///< atomically replaces the whole file for each sample
};

/// Parses the value of `--metrics-format`.
///
/// @throws config_error  `name` is neither `json` nor `prometheus`.
metrics_format metrics_format_of(std::string_view name);

/// Writes the progress of a run to a file for other programs, every second and once at the end. A
/// separate thread writes the file. So if the run hangs, samples with unchanged numbers are still
/// written.
///
/// A failed write never ends a run. Samples that cannot be written are lost, and the user gets one
/// note about the first of them. Files are not synced.
class run_metrics {
 public:
  static constexpr std::chrono::milliseconds usual_period{1000};

  /// @param total_bytes  size of all inputs on disk; 0 if unknown
  run_metrics(std::filesystem::path path, metrics_format format, std::uint64_t total_bytes,
              std::chrono::milliseconds period = usual_period);
  run_metrics(const run_metrics&) = delete;
  run_metrics& operator=(const run_metrics&) = delete;
  /// If finish() was not called, writes a last sample, which says that the run has not finished.
  ~run_metrics();

  /// Sets the state for the next samples. Any thread may call this.
  void update(const progress_state& state);

  /// Writes the last sample of a successful run. After this, update() has no effect.
  void finish(const progress_state& state);

  /// If a sample could not be written, returns a line that tells the user why. Returns each such
  /// line only once. Returns nothing if there is no new line. Any thread may call this.
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

  std::mutex mutex_;  // guards the members up to `note_`
  std::condition_variable wake_;
  progress_state state_;
  bool ended_ = false;
  bool failed_ = false;
  std::optional<std::string> note_;

  // Used only by `thread_`, and by end() after it has joined `thread_`.
  io::unique_fd file_;  // opened when the first line is written
  bool torn_ = false;   // the last line is incomplete
  metrics_sample before_;
  std::thread thread_;  // last, so that all other members exist when it starts
};

}  // namespace millrace::preprocess
