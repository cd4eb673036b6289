// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/lost_pages.hpp>

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <span>

#include <millrace/error.hpp>

namespace millrace::dataset {

namespace detail {

/// The watched mappings of the process, newest first.
MILLRACE_INLINE std::atomic<watched_map*>& watched_maps() noexcept {
  static constinit std::atomic<watched_map*> first{nullptr};
  return first;
}
MILLRACE_INLINE std::mutex& watched_maps_mutex() noexcept {
  static constinit std::mutex mutex;
  return mutex;
}

/// The handler that was installed before ours.
MILLRACE_INLINE struct ::sigaction& handler_before_watches() noexcept {
  static struct ::sigaction before {};
  return before;
}

MILLRACE_INLINE std::uintptr_t page_size() noexcept {
  static const auto size = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

/// Replaces a page of a watched mapping with zeros. Returns false if the page is in no watched
/// mapping.
MILLRACE_INLINE bool mend_lost_page(std::uintptr_t at) noexcept {
  for (watched_map* w = watched_maps().load(); w != nullptr; w = w->next.load()) {
    const std::uintptr_t begin = w->begin.load();
    if (begin == 0 || at < begin || at >= w->end.load()) continue;
    if (w->begin.load() != begin) continue;  // reused slot: `end` belongs to another mapping
    // Set `lost` before mapping the zeros: a reader that sees the zeros must also see `lost`.
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

MILLRACE_INLINE void pass_on(const struct ::sigaction& before, int signal, void* info,
                             void* context) {
  auto* const what = static_cast<::siginfo_t*>(info);
  const bool handles = (before.sa_flags & SA_SIGINFO) != 0;
  // If a process sent the signal and the signal would be ignored without our handler, ignore it.
  if (!handles && before.sa_handler == SIG_IGN && what->si_code <= 0) return;
  if (handles) {
    before.sa_sigaction(signal, what, context);
  } else if (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN) {
    // Restore the previous action. When our handler returns, the access is repeated or the raised
    // signal is delivered. In both cases, the signal ends the process, as it would without our
    // handler.
    (void)::sigaction(signal, &before, nullptr);
    if (what->si_code <= 0) (void)::raise(signal);
  } else {
    before.sa_handler(signal);
  }
}

/// Threads on which a raised signal was ignored and the failed access has not been repeated yet.
///
/// The handler can interrupt any thread, even inside malloc, so it must not use thread-local
/// variables: a shared object finds them through __tls_get_addr, which may allocate memory.
/// Variables of the TLS model initial-exec need no such call. But with one such variable, all
/// thread-local variables of the shared object must fit into a reserve of about 1.5 KiB in libc.
/// The CUDA runtime, which is linked into the shared object, needs more.
class repeating_threads {
 public:
  /// Returns false if this thread is in the list already, or if the list is full.
  bool add_this_thread() noexcept {
    const ::pthread_t self = ::pthread_self();
    for (const auto& thread : threads_) {
      if (thread.load(std::memory_order_relaxed) == self) return false;
    }
    for (auto& thread : threads_) {
      ::pthread_t none = 0;
      if (thread.compare_exchange_strong(none, self, std::memory_order_relaxed)) return true;
    }
    return false;
  }
  void remove_this_thread() noexcept {
    for (auto& thread : threads_) {
      ::pthread_t self = ::pthread_self();
      (void)thread.compare_exchange_strong(self, 0, std::memory_order_relaxed);
    }
  }

 private:
  std::array<std::atomic<::pthread_t>, 64> threads_{};
};

MILLRACE_INLINE repeating_threads& threads_that_repeat() noexcept {
  static constinit repeating_threads threads;
  return threads;
}

MILLRACE_INLINE bool is_raised_again(const void* info) noexcept {
  const auto* const what = static_cast<const ::siginfo_t*>(info);
  return what->si_code == SI_TKILL && what->si_pid == ::getpid();
}

MILLRACE_INLINE bool watches_any() noexcept {
  for (watched_map* w = watched_maps().load(); w != nullptr; w = w->next.load()) {
    if (w->begin.load() != 0) return true;
  }
  return false;
}

MILLRACE_INLINE void on_lost_page(int signal, ::siginfo_t* info, void* context) {
  // A positive si_code means that the kernel reports a failed access. For kill(2), si_addr is
  // meaningless.
  if (info->si_code > 0) {
    threads_that_repeat().remove_this_thread();
    if (mend_lost_page(reinterpret_cast<std::uintptr_t>(info->si_addr))) return;
  } else if (is_raised_again(info) && watches_any() && threads_that_repeat().add_this_thread()) {
    return;
  }
  pass_on(handler_before_watches(), signal, info, context);
}

MILLRACE_INLINE void install_lost_page_handler() noexcept {
#if !defined(MILLRACE_NO_SIGBUS_GUARD)
  static const bool installed = [] {
    (void)page_size();  // so that the page size is initialized before the handler needs it
    struct ::sigaction ours {};
    ours.sa_sigaction = on_lost_page;
    ours.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    (void)::sigaction(SIGBUS, nullptr, &handler_before_watches());
    return ::sigaction(SIGBUS, &ours, nullptr) == 0;
  }();
  (void)installed;
#endif
}

}  // namespace detail

MILLRACE_INLINE void unblock_sigbus() noexcept {
  static thread_local const bool done = [] {
    ::sigset_t bus;
    (void)::sigemptyset(&bus);
    (void)::sigaddset(&bus, SIGBUS);
    return ::pthread_sigmask(SIG_UNBLOCK, &bus, nullptr) == 0;
  }();
  (void)done;
}

MILLRACE_INLINE lost_page_watch::lost_page_watch(std::span<const std::byte> map) {
  if (map.empty()) return;
  detail::install_lost_page_handler();
  unblock_sigbus();
  const auto begin = reinterpret_cast<std::uintptr_t>(map.data());
  const std::lock_guard lock(detail::watched_maps_mutex());
  detail::watched_map* slot = detail::watched_maps().load();
  while (slot != nullptr && slot->begin.load() != 0) slot = slot->next.load();
  const bool is_new = slot == nullptr;
  if (is_new) slot = new detail::watched_map;  // NOLINT: never freed, see watched_map
  slot->lost.store(0);
  slot->end.store(begin + map.size());
  slot->begin.store(begin);
  if (is_new) {
    slot->next.store(detail::watched_maps().load());
    detail::watched_maps().store(slot);
  }
  slot_.reset(slot);
}

MILLRACE_INLINE std::optional<std::uint64_t> lost_page_watch::lost_at() const noexcept {
  if (!has_lost()) return std::nullopt;
  return slot_->lost.load() - slot_->begin.load();
}

MILLRACE_INLINE void lost_page_watch::throw_lost(const std::filesystem::path& path) const {
  const std::uint64_t at = lost_at().value_or(0);
  struct ::stat now {};
  const bool is_short =
      ::stat(path.c_str(), &now) == 0 && static_cast<std::uint64_t>(now.st_size) <= at;
  throw io_error(path, "read", is_short ? ENODATA : EIO, at,
                 "it existed when the file was opened, but can no longer be read; restore the "
                 "file, and open it again");
}

}  // namespace millrace::dataset
