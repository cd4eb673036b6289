// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <millrace/loader/detail/io/open_files.hpp>
#include <millrace/loader/detail/io/reader_options.hpp>
#include <millrace/loader/detail/io/reader_report.hpp>

namespace millrace::loader {

/// Counters of a reader, and the outcome of its requests to the system. Each kind of request gets
/// one line for all files: how often it was granted, and the first reason for a refusal.
class reader_log {
 public:
  void add_gather(std::size_t requests, std::uint64_t bytes) noexcept {
    gathers_.fetch_add(1, std::memory_order_relaxed);
    requests_.fetch_add(static_cast<std::int64_t>(requests), std::memory_order_relaxed);
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }
  void add_read(std::uint64_t bytes) noexcept {
    bytes_read_.fetch_add(bytes, std::memory_order_relaxed);
  }
  void add_retry() noexcept { retries_.fetch_add(1, std::memory_order_relaxed); }

  /// @param why  why the request was made, or why it was refused
  void note(const std::string& asked, bool granted, const std::string& why) {
    const std::lock_guard lock(mutex_);
    auto at = std::ranges::find(lines_, asked, &line::asked);
    if (at == lines_.end()) at = lines_.insert(at, line{asked, why, {}, 0, 0});
    ++at->tries;
    if (granted) ++at->granted;
    if (!granted && at->why_not.empty()) at->why_not = why;
  }

  /// Adds counters and grants to a report.
  void fill(reader_report& report, const open_files& table) const {
    {
      const std::lock_guard lock(mutex_);
      for (const line& l : lines_) {
        const std::string count =
            std::to_string(l.granted) + " of " + std::to_string(l.tries) + " times";
        report.grants.push_back({l.asked,
                                 l.granted == l.tries ? "yes"
                                 : l.granted == 0     ? "no"
                                                      : count,
                                 l.why_not.empty() ? l.why : l.why_not});
      }
    }
    report.gathers = gathers_;
    report.requests = requests_;
    report.bytes = bytes_;
    report.bytes_read = bytes_read_;
    report.retries = retries_;
    const open_file_usage usage = table.usage();
    report.open_files = usage.files;
    report.most_open_files = usage.most_files;
    report.maps = usage.maps;
  }

 private:
  struct line {
    std::string asked;
    std::string why;
    std::string why_not;
    std::int64_t granted;
    std::int64_t tries;
  };

  std::atomic<std::int64_t> gathers_{0};
  std::atomic<std::int64_t> requests_{0};
  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<std::uint64_t> bytes_read_{0};
  std::atomic<std::int64_t> retries_{0};
  mutable std::mutex mutex_;
  std::vector<line> lines_;
};

namespace detail {

/// Starts a report with the requested and the granted back end.
///
/// @param name     the back end to report as requested if the options name none
/// @param granted  the back end that reads
inline reader_report begin_report(const reader_options& options, const char* name,
                                  const char* granted) {
  reader_report report;
  report.asked = options.asked.empty() ? name : options.asked;
  report.granted = granted;
  report.why = options.why.empty() ? "requested by name" : options.why;
  return report;
}

/// Adds the counters of `plain`, the pread_reader that reads what this reader cannot.
inline void add_fallback(reader_report& report, const reader_report& plain) {
  report.bytes_read += plain.bytes_read;
  report.retries += plain.retries;
  report.grants.insert(report.grants.end(), plain.grants.begin(), plain.grants.end());
}

}  // namespace detail

}  // namespace millrace::loader
