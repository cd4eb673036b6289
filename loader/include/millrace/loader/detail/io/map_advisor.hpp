// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <millrace/detail/export.hpp>
#include <millrace/loader/detail/io/io_threads.hpp>
#include <millrace/loader/detail/io/open_files.hpp>
#include <millrace/loader/detail/io/reader_log.hpp>
#include <millrace/loader/detail/io/reader_options.hpp>

namespace millrace::loader {

/// Decides, file by file, what the kernel is told of its maps, and tells it.
///
/// Huge pages and a few KiB read at random do not go together: each would bring in 2 MiB. So files
/// that will be in memory as a whole get huge pages and are read in the background, a piece at a
/// time; of the others only that is read which was announced.
class MILLRACE_EXPORT map_advisor {
 public:
  map_advisor(std::span<const data_file> files, const reader_options& options,
              std::shared_ptr<io_threads> threads)
      : threads_(std::move(threads)),
        log_(std::make_shared<reader_log>()),
        stop_(std::make_shared<std::atomic<bool>>(false)),
        populate_(options.populate) {
    choose(files, options);
  }
  map_advisor(const map_advisor&) = delete;
  map_advisor& operator=(const map_advisor&) = delete;
  ~map_advisor() { *stop_ = true; }

  reader_log& log() const noexcept { return *log_; }
  map_advice of(std::int64_t file) const { return advice_[static_cast<std::size_t>(file)]; }

  /// Whether all of the file was brought in once, so that nothing need be announced.
  bool is_in_memory(std::int64_t file) const {
    return in_memory_->flags[static_cast<std::size_t>(file)].load(std::memory_order_relaxed);
  }

  /// For a map that was made just now, of bytes that nobody has touched. A hint: without memory,
  /// the report misses a line, or the file is not read in the background.
  void advise(std::int64_t file, const open_files::held_map& map) noexcept;

 private:
  struct memory_flags {
    explicit memory_flags(std::size_t files) : flags(files) {}
    std::vector<std::atomic<bool>> flags;
  };

  /// Brings in one piece, then queues itself for the next.
  struct populate {
    static constexpr std::size_t piece = std::size_t{32} << 20;

    io_threads* threads;  // it runs on one of them
    std::weak_ptr<const open_files::map> map;
    std::shared_ptr<std::atomic<bool>> stop;
    std::shared_ptr<reader_log> log;
    std::shared_ptr<memory_flags> in_memory;
    std::size_t file;
    bool whole;  // the map is all of the file
    std::size_t done;

    void operator()() noexcept;
  };

  void choose(std::span<const data_file> files, const reader_options& options);
  void ask(const open_files::held_map& map, int advice, const char* name, const std::string& why);

  std::shared_ptr<io_threads> threads_;
  std::shared_ptr<reader_log> log_;
  std::shared_ptr<std::atomic<bool>> stop_;
  std::shared_ptr<memory_flags> in_memory_;
  std::vector<map_advice> advice_;
  std::vector<std::uint64_t> bytes_;  // [file]
  std::string why_;                   // of files that will be resident
  std::string why_random_;            // of the others
  bool populate_;
};

}  // namespace millrace::loader
