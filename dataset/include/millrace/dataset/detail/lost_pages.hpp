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

struct sigaction;  // from <csignal>; declared here so that includers do not need that header

/// Keeps the process alive if a page of a file mapping is lost. A page is lost if the file was
/// truncated, or if the disk cannot read the page. An access to a lost page makes the kernel send
/// SIGBUS.
///
/// A signal handler replaces a lost page of a watched mapping with a page of zeros. It also marks
/// the mapping, and the mark stays. A reader therefore calls `check_there` after it reads an entry
/// and before it uses the entry. The check costs one load. The handler could instead jump out of
/// the access, but then every access would take about ten nanoseconds longer.
///
/// Threads that read must not block SIGBUS. Creating a watch unblocks SIGBUS for the calling thread
/// (see `unblock_sigbus`).
///
/// A thread can also raise SIGBUS itself, without a failed access. Our handler cannot tell such a
/// signal from one that another handler raised again. So while mappings are watched, our handler
/// ignores the first raised signal of each thread. It passes on signals that kill(2) sent.
///
/// A build with MILLRACE_NO_SIGBUS_GUARD installs no handler: nothing is watched, and SIGBUS ends
/// the process. If a truncated file ends inside a page, the rest of that page reads as zeros, and
/// no signal occurs. So readers still have to validate what they read.
namespace millrace::dataset {

namespace detail {

/// An entry (slot) of the list of watched mappings. Slots are reused but never freed, because a
/// handler may be iterating over them.
struct watched_map {
  std::atomic<std::uintptr_t> begin{0};  // 0: the slot is free
  std::atomic<std::uintptr_t> end{0};
  std::atomic<std::uintptr_t> lost{0};  // address of the first failed access; 0: none
  std::atomic<watched_map*> next{nullptr};
};

struct end_of_watch {
  void operator()(watched_map* w) const noexcept { w->begin.store(0); }
};

/// Does what the signal would have done without our handler: calls the previous handler `before`,
/// or lets the signal end the process.
/// @param info  a siginfo_t; `signal`, `info` and `context` are the arguments of our handler
MILLRACE_EXPORT void pass_on(const struct ::sigaction& before, int signal, void* info,
                             void* context);

/// True if this process raised the signal itself. A handler installed after ours may do so to pass
/// on a signal: it restores our handler and raises the signal again. Python's `faulthandler` is an
/// example. Our handler must then return. The failed access is repeated, and the new signal has the
/// address of the access.
/// @param info  a siginfo_t of a SIGBUS
MILLRACE_EXPORT bool is_raised_again(const void* info) noexcept;

/// Installs the handler, once per process. A handler that is installed later must forward signals
/// that it does not handle, or restore our handler and raise the signal again.
MILLRACE_EXPORT void install_lost_page_handler() noexcept;

}  // namespace detail

/// Unblocks SIGBUS for the calling thread, permanently. If SIGBUS occurs while it is blocked, the
/// kernel ends the process and does not call the handler.
MILLRACE_EXPORT void unblock_sigbus() noexcept;

/// Watches a mapping, which must outlive the watch. A watch may be moved. Thread-safe.
class MILLRACE_EXPORT lost_page_watch {
 public:
  lost_page_watch() = default;
  /// @throws std::bad_alloc
  explicit lost_page_watch(std::span<const std::byte> map);

  /// The offset in the mapping of the first byte that could not be read; nullopt if no page was
  /// lost.
  std::optional<std::uint64_t> lost_at() const noexcept;
  /// True if any page that this thread has read so far was lost.
  bool has_lost() const noexcept {
#if defined(__x86_64__)
    std::atomic_signal_fence(std::memory_order_acquire);  // x86 does not reorder loads
#else
    std::atomic_thread_fence(std::memory_order_acquire);
#endif
    return slot_ != nullptr && slot_->lost.load(std::memory_order_relaxed) != 0;
  }

  /// Throws if a page was lost. The mapping must begin at the first byte of `path`.
  /// @throws io_error  a page was lost. ENODATA: the file is shorter now; EIO: the disk cannot read
  ///                   the page
  void check_there(const std::filesystem::path& path) const {
    if (has_lost()) [[unlikely]]
      throw_lost(path);
  }

 private:
  [[noreturn]] void throw_lost(const std::filesystem::path& path) const;

  std::unique_ptr<detail::watched_map, detail::end_of_watch> slot_;
};

}  // namespace millrace::dataset
