// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <stop_token>
#include <utility>
#include <vector>

#include <millrace/detail/export.hpp>
#include <millrace/loader/detail/memory/named_thread.hpp>
#include <millrace/loader/detail/memory/one_per_process.hpp>
#include <millrace/loader/detail/verify/verify_core.hpp>

namespace millrace::loader {

/// Checks unchecked blocks in the background, at a limited rate. Blocks that were served unchecked
/// come first, then all other blocks from front to back. One thread serves all verifiers of a
/// process, at the lowest CPU and disk priority. Its reads do not evict other data from the page
/// cache (`io::page_cache::pass_through`). Thread-safe.
class MILLRACE_EXPORT scrubber {
 public:
  scrubber()
      : thread_({.name = "mr-scrubber"}, [this](const std::stop_token& stop) { run(stop); }) {}
  scrubber(const scrubber&) = delete;
  scrubber& operator=(const scrubber&) = delete;

  /// Returns the scrubber of this process. It lives until its last owner releases it.
  static std::shared_ptr<scrubber> of_process() { return one_per_process<scrubber>(); }

  void add(std::shared_ptr<detail::verify_core> core) {
    const std::lock_guard lock(mutex_);
    jobs_.push_back({.core = std::move(core)});
    wake_.notify_all();
  }

  /// Removes a verifier. After the call, the scrubber may still be finishing one block of this
  /// verifier.
  void remove(const detail::verify_core* core) {
    const std::lock_guard lock(mutex_);
    std::erase_if(jobs_, [&](const job& j) { return j.core.get() == core; });
  }

  /// Wakes the thread after a block was left to it. The thread may be idle after a complete pass.
  void wake() {
    const std::lock_guard lock(mutex_);  // so that the thread cannot miss the notification
    wake_.notify_all();
  }

 private:
  /// The files of one verifier, and how far the scrubber has checked them.
  struct job {
    std::shared_ptr<detail::verify_core> core;
    std::size_t file = 0;
    std::uint64_t block = 0;  // counts the blocks of the `.idx`, then those of the `.bin`
    bool done = false;
    bool failed = false;  // true if a read failed in this pass

    bool has_work() const { return !done || core->forgotten() || core->has_wishes(); }
  };
  using clock = std::chrono::steady_clock;

  void run(const std::stop_token& stop);
  std::uint64_t rate() const;
  /// The outcome of checking a block.
  struct outcome {
    std::uint64_t bytes = 0;  // number of bytes read; after an error, `error_bytes`
    bool failed = false;
    bool opened = true;
  };
  // An error counts as this many bytes, so that the rate limit also slows down repeated errors.
  static constexpr std::uint64_t error_bytes = 4096;

  static std::uint64_t step(job& j);
  static outcome scrub(detail::verify_core& core, std::size_t file, checked_file& in,
                       std::uint64_t block, std::int64_t sample);
  static void tell(detail::verify_core& core, std::size_t file, const std::filesystem::path& path,
                   std::int64_t block, const std::exception& e) noexcept;

  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::vector<job> jobs_;
  std::size_t next_ = 0;
  named_thread thread_;  // the last member, because it uses all others
};

}  // namespace millrace::loader
