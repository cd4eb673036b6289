// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include <millrace/error.hpp>

/// Maps that are read entry by entry, and outlive a page that the file has no longer or that cannot
/// be read. The kernel says that by SIGBUS, in the middle of an access.
///
/// A lost page of a watched map becomes one of zeros, and the map remembers it, for good: so
/// whoever has read an entry asks `lost_at()` before he uses it. That is one load, where jumping
/// out of an access would cost each of them some ten nanoseconds.
///
/// Threads that read must not block SIGBUS (`unblock_sigbus`, which making a watch calls).
///
/// MILLRACE_NO_SIGBUS_GUARD leaves signals alone: nothing is watched then, and SIGBUS ends the
/// process. A map that ends inside a page shows zeros behind a new end in that page, without a
/// signal: who reads there still has to check what he reads.
namespace millrace::io {

namespace detail {

/// A map that is watched. Slots are never freed, as a handler may be looking through them.
struct watched_map {
  std::atomic<std::uintptr_t> begin{0};  // 0: free
  std::atomic<std::uintptr_t> end{0};
  std::atomic<std::uintptr_t> lost{0};  // address of the first access that was lost; 0: none
  std::atomic<watched_map*> next{nullptr};
};

/// All of a process, the last one made first.
inline std::atomic<watched_map*>& watched_maps() noexcept {
  static constinit std::atomic<watched_map*> first{nullptr};
  return first;
}
inline std::mutex& watched_maps_mutex() noexcept {
  static constinit std::mutex mutex;
  return mutex;
}

/// The handler that was there before.
inline struct ::sigaction& handler_before() noexcept {
  static struct ::sigaction before {};
  return before;
}

inline std::uintptr_t page_size() noexcept {
  static const auto size = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

/// Puts zeros where a page of a watched map was. False: it is of none.
inline bool mend_lost_page(std::uintptr_t at) noexcept {
  for (watched_map* w = watched_maps().load(); w != nullptr; w = w->next.load()) {
    const std::uintptr_t begin = w->begin.load();
    if (begin == 0 || at < begin || at >= w->end.load()) continue;
    if (w->begin.load() != begin) continue;  // another map has the slot, and that was its end
    // First: who finds zeros there must find this, too.
    std::uintptr_t none = 0;
    (void)w->lost.compare_exchange_strong(none, at);
    const int code = errno;
    const std::uintptr_t page = at / page_size() * page_size();
    void* const zeros =
        ::mmap(reinterpret_cast<void*>(page), page_size(), PROT_READ,  // NOLINT: an address
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    errno = code;
    return zeros != MAP_FAILED;
  }
  return false;
}

inline void on_lost_page(int signal, ::siginfo_t* info, void* context) {
  // A code above 0: the kernel says it of an access. Sent by kill(2), si_addr means nothing.
  if (info->si_code > 0 && mend_lost_page(reinterpret_cast<std::uintptr_t>(info->si_addr))) return;
  const struct ::sigaction& before = handler_before();
  const bool handles = (before.sa_flags & SA_SIGINFO) != 0;
  // Sent, and to be ignored: as it would have been without us.
  if (!handles && before.sa_handler == SIG_IGN && info->si_code <= 0) return;
  if (handles) {
    before.sa_sigaction(signal, info, context);
  } else if (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN) {
    // The access, made again on return, or the signal, sent again, ends the process as it would
    // have without us.
    (void)::sigaction(SIGBUS, &before, nullptr);
    if (info->si_code <= 0) (void)::raise(SIGBUS);
  } else {
    before.sa_handler(signal);
  }
}

/// Puts the handler there, once a process. One that is set later must pass on what is not its own.
inline void install_lost_page_handler() noexcept {
#if !defined(MILLRACE_NO_SIGBUS_GUARD)
  static const bool installed = [] {
    (void)page_size();  // asked for before a handler needs it
    struct ::sigaction ours {};
    ours.sa_sigaction = on_lost_page;
    ours.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    (void)::sigaction(SIGBUS, nullptr, &handler_before());
    return ::sigaction(SIGBUS, &ours, nullptr) == 0;
  }();
  (void)installed;
#endif
}

struct end_of_watch {
  void operator()(watched_map* w) const noexcept { w->begin.store(0); }
};

}  // namespace detail

/// For the calling thread and for good, on a thread that reads watched maps: SIGBUS, blocked, ends
/// the process whatever the handler.
inline void unblock_sigbus() noexcept {
  static thread_local const bool done = [] {
    ::sigset_t bus;
    (void)::sigemptyset(&bus);
    (void)::sigaddset(&bus, SIGBUS);
    return ::pthread_sigmask(SIG_UNBLOCK, &bus, nullptr) == 0;
  }();
  (void)done;
}

/// Watches a map as long as it lives, which must be no longer than the map. Moving it changes
/// nothing. Any thread.
class lost_page_watch {
 public:
  lost_page_watch() = default;
  /// @throws std::bad_alloc
  explicit lost_page_watch(std::span<const std::byte> map) {
    if (map.empty()) return;
    detail::install_lost_page_handler();
    unblock_sigbus();
    const auto begin = reinterpret_cast<std::uintptr_t>(map.data());
    const std::lock_guard lock(detail::watched_maps_mutex());
    detail::watched_map* slot = detail::watched_maps().load();
    while (slot != nullptr && slot->begin.load() != 0) slot = slot->next.load();
    const bool is_new = slot == nullptr;
    if (is_new) slot = new detail::watched_map;  // NOLINT: of the process, see there
    slot->lost.store(0);
    slot->end.store(begin + map.size());
    slot->begin.store(begin);
    if (is_new) {
      slot->next.store(detail::watched_maps().load());
      detail::watched_maps().store(slot);
    }
    slot_.reset(slot);
  }

  /// The first byte of the map that was asked for and was not to be had; nothing: all was there.
  std::optional<std::uint64_t> lost_at() const noexcept {
    if (!has_lost()) return std::nullopt;
    return slot_->lost.load() - slot_->begin.load();
  }
  /// Of what this thread has read before.
  bool has_lost() const noexcept {
#if defined(__x86_64__)
    std::atomic_signal_fence(std::memory_order_acquire);  // its loads stay in order
#else
    std::atomic_thread_fence(std::memory_order_acquire);
#endif
    return slot_ != nullptr && slot_->lost.load(std::memory_order_relaxed) != 0;
  }

 private:
  std::unique_ptr<detail::watched_map, detail::end_of_watch> slot_;
};

/// For who has read out of a map of `path`, from its first byte on.
/// @throws io_error  some of it was not there. ENODATA: the file is shorter now; EIO: it cannot be
///                   read
inline void check_there(const lost_page_watch& map, const std::filesystem::path& path) {
  if (!map.has_lost()) [[likely]]
    return;
  const std::uint64_t at = map.lost_at().value_or(0);
  struct ::stat now {};
  const bool is_short =
      ::stat(path.c_str(), &now) == 0 && static_cast<std::uint64_t>(now.st_size) <= at;
  throw io_error(path, "read", is_short ? ENODATA : EIO, at,
                 "it was there when the file was opened, and is not to be had any more; restore "
                 "the file, and open it anew");
}

}  // namespace millrace::io
