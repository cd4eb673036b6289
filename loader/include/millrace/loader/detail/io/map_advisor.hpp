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

/// Chooses the advice (madvise) for the memory mappings (maps) of each file, and gives the advice
/// to the kernel.
///
/// Huge pages do not suit random reads of a few KiB: each read would load 2 MiB. So only files that
/// will be in memory completely get huge pages. These files are read in the background, one piece
/// at a time. For all other files, the kernel prefetches only the ranges that were announced.
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

  /// True if the whole file was loaded into memory, so that its ranges need not be announced.
  bool is_in_memory(std::int64_t file) const {
    return in_memory_->flags[static_cast<std::size_t>(file)].load(std::memory_order_relaxed);
  }

  /// Gives the kernel advice for a new map whose bytes nobody has touched yet. The advice is only a
  /// hint. If memory runs out, the report may lack a line, or the file may not be read in the
  /// background.
  void advise(std::int64_t file, const open_files::held_map& map) noexcept;

 private:
  struct memory_flags {
    explicit memory_flags(std::size_t files) : flags(files) {}
    std::vector<std::atomic<bool>> flags;
  };

  /// A task that loads one piece of a map, and then queues itself to load the next piece.
  struct populate {
    static constexpr std::size_t piece = std::size_t{32} << 20;

    io_threads* threads;  // the pool that runs this task
    std::weak_ptr<const open_files::map> map;
    std::shared_ptr<std::atomic<bool>> stop;
    std::shared_ptr<reader_log> log;
    std::shared_ptr<memory_flags> in_memory;
    std::size_t file;
    bool whole;  // whether the map covers the whole file
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
  std::vector<std::uint64_t> bytes_;  // indexed by file
  std::string why_;                   // why files get the advice `resident`
  std::string why_random_;            // why files get the advice `random`
  bool populate_;
};

}  // namespace millrace::loader
