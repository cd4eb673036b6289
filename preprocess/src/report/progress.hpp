// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "process/stage_times.hpp"

namespace millrace::preprocess {

/// The values that a progress bar shows. Rates are per second.
struct bar_view {
  std::int64_t documents = 0;
  double megabytes_rate = 0;
  double documents_rate = 0;
  double tokens_rate = 0;
  std::optional<double> done;  ///< fraction from 0 to 1; empty if the size of the inputs is unknown
  std::optional<double> seconds_left;
};

/// Returns the progress bar as one line without a line end. The line is shorter than `columns`
/// characters, so that no terminal wraps it:
///
///   [=======>      ]  54%  81.2 MB/s  3214 docs/s  19.8M tokens/s  1:23 left
///
/// Fields that do not fit are omitted, the least important first.
std::string bar_line(const bar_view& view, std::size_t columns);

/// Formats a number with about three significant digits: "9999", "12.3k", "4.56M".
std::string short_number(double value);

/// Formats a duration: "42 s", "3:05", "27:00:00".
std::string short_duration(double seconds);

/// Computes the recent rate per second, as an exponentially weighted mean with a half-life of ten
/// seconds. This rate does not jump with each block, and it soon forgets the slow start of a run.
class smoothed_rate {
 public:
  /// @param total    total amount so far; never less than in the last call
  /// @param seconds  time since the start. If it has not increased since the last call, the call
  ///                 has no effect.
  void update(double total, double seconds) {
    const double passed = seconds - seconds_;
    if (!(passed > 0)) return;
    const double kept = std::exp2(-passed / half_life_seconds);
    sum_ = sum_ * kept + (total - total_) / passed * (1 - kept);
    weight_ = weight_ * kept + (1 - kept);
    total_ = total;
    seconds_ = seconds;
  }

  double per_second() const { return weight_ > 0 ? sum_ / weight_ : 0; }

 private:
  static constexpr double half_life_seconds = 10;

  double sum_ = 0;
  double weight_ = 0;  // total weight so far; used to correct the first rates
  double total_ = 0;
  double seconds_ = 0;
};

/// The progress of a run, as shown to the user and in metrics. No member except `blocks_in_flight`
/// ever decreases.
struct progress_state {
  std::int64_t documents = 0;
  std::uint64_t input_bytes = 0;      ///< committed bytes of decompressed text
  std::uint64_t read_bytes = 0;       ///< bytes read from disk, before decompression
  std::int64_t tokens = 0;            ///< total over all keys
  std::uint64_t output_bytes = 0;     ///< bytes written to all outputs
  std::int64_t bad_records = 0;       ///< bad records met so far
  std::int64_t blocks_in_flight = 0;  ///< blocks that were read but not yet committed
  stage_times busy = {};

  /// Adds the progress of another run.
  progress_state& operator+=(const progress_state& more) noexcept {
    documents += more.documents;
    input_bytes += more.input_bytes;
    read_bytes += more.read_bytes;
    tokens += more.tokens;
    output_bytes += more.output_bytes;
    bad_records += more.bad_records;
    blocks_in_flight += more.blocks_in_flight;
    busy += more.busy;
    return *this;
  }
};

/// Shows the progress of a run on stderr: a bar if stderr is a terminal, otherwise lines like
/// Megatron's. The bar shows recent rates and the remaining time computed from them. It is updated
/// at most five times per second. Each line shows average rates since the start, as Megatron's
/// lines do. At most one line is printed per second. Not thread-safe.
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
