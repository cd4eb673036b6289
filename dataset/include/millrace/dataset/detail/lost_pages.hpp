// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>

#include <millrace/detail/export.hpp>

struct sigaction;  // of <csignal>, which includers need not have

/// Maps that are read entry by entry and survive the loss of a page: the file has become shorter,
/// or the page cannot be read. The kernel reports that by SIGBUS, in the middle of an access.
///
/// A lost page of a watched map becomes a page of zeros, and the map remembers the loss for good.
/// So a reader calls `check_there` after it has read an entry and before it uses it. That costs one
/// load; to jump out of each access would cost some ten nanoseconds.
///
/// Threads that read must not block SIGBUS; making a watch unblocks it (`unblock_sigbus`).
///
/// A build with MILLRACE_NO_SIGBUS_GUARD leaves signals alone: nothing is watched, and SIGBUS ends
/// the process. Where a file now ends inside a page, the rest of that page reads as zeros without a
/// signal, so a reader of such a place still has to check what it reads.
namespace millrace::dataset {

namespace detail {

/// A map that is watched. Slots are never freed, because a handler may be looking through them.
struct watched_map {
  std::atomic<std::uintptr_t> begin{0};  // 0: free
  std::atomic<std::uintptr_t> end{0};
  std::atomic<std::uintptr_t> lost{0};  // address of the first access that was lost; 0: none
  std::atomic<watched_map*> next{nullptr};
};

struct end_of_watch {
  void operator()(watched_map* w) const noexcept { w->begin.store(0); }
};

/// What a signal would have done if our handler were not there: calls the handler `before` ours, or
/// lets the signal end the process.
/// @param info  a siginfo_t; this and the others are what our handler was called with
MILLRACE_EXPORT void pass_on(const struct ::sigaction& before, int signal, void* info,
                             void* context);

/// Installs the handler, once a process. A handler that is set later must pass on signals that are
/// not its own.
MILLRACE_EXPORT void install_lost_page_handler() noexcept;

}  // namespace detail

/// Unblocks SIGBUS for the calling thread, for good. A blocked SIGBUS ends the process whatever the
/// handler is.
MILLRACE_EXPORT void unblock_sigbus() noexcept;

/// Watches a map as long as it lives, which must be no longer than the map. Moving it changes
/// nothing. Any thread.
class MILLRACE_EXPORT lost_page_watch {
 public:
  lost_page_watch() = default;
  /// @throws std::bad_alloc
  explicit lost_page_watch(std::span<const std::byte> map);

  /// The offset of the first byte that was read and could not be had; nothing if none was lost.
  std::optional<std::uint64_t> lost_at() const noexcept;
  /// Whether something was lost of what this thread has read before.
  bool has_lost() const noexcept {
#if defined(__x86_64__)
    std::atomic_signal_fence(std::memory_order_acquire);  // its loads stay in order
#else
    std::atomic_thread_fence(std::memory_order_acquire);
#endif
    return slot_ != nullptr && slot_->lost.load(std::memory_order_relaxed) != 0;
  }

  /// For a reader of a map of `path`, from the first byte of the file on.
  /// @throws io_error  some of it was lost. ENODATA: the file is shorter now; EIO: it cannot be
  ///                   read
  void check_there(const std::filesystem::path& path) const {
    if (has_lost()) [[unlikely]]
      throw_lost(path);
  }

 private:
  [[noreturn]] void throw_lost(const std::filesystem::path& path) const;

  std::unique_ptr<detail::watched_map, detail::end_of_watch> slot_;
};

}  // namespace millrace::dataset
