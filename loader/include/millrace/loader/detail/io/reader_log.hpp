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

/// The counters of a reader, and the results of its requests to the system, such as advice for
/// memory mappings. Each kind of request has one line for all files, which says how often the
/// system granted it and why the system first refused it.
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

  /// Records one request to the system.
  ///
  /// @param asked  the kind of request
  /// @param why    if granted, why the request was made; otherwise why it was refused
  void note(const std::string& asked, bool granted, const std::string& why) {
    const std::lock_guard lock(mutex_);
    auto at = std::ranges::find(lines_, asked, &line::asked);
    if (at == lines_.end()) at = lines_.insert(at, line{asked, why, {}, 0, 0});
    ++at->tries;
    if (granted) ++at->granted;
    if (!granted && at->why_not.empty()) at->why_not = why;
  }

  /// Adds the counters, and one grant per kind of request, to a report.
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

/// Creates a report with the requested back end, the one in use, and the reason.
///
/// @param name     reported as the requested back end if the options name no back end
/// @param granted  the back end in use
inline reader_report begin_report(const reader_options& options, const char* name,
                                  const char* granted) {
  reader_report report;
  report.asked = options.asked.empty() ? name : options.asked;
  report.granted = granted;
  report.why = options.why.empty() ? "requested by name" : options.why;
  return report;
}

/// Adds counters and grants to the report of a reader. They come from `plain`, the report of the
/// `pread_reader` that reads what the reader itself cannot.
inline void add_fallback(reader_report& report, const reader_report& plain) {
  report.bytes_read += plain.bytes_read;
  report.retries += plain.retries;
  report.grants.insert(report.grants.end(), plain.grants.begin(), plain.grants.end());
}

}  // namespace detail

}  // namespace millrace::loader
