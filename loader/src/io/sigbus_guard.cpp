// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/io/sigbus_guard.hpp>

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>

#include <millrace/dataset/detail/lost_pages.hpp>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22  // NOLINT: exists since Linux 5.14, but C libraries may be older
#endif

namespace millrace::loader {

namespace detail {

/// Prefetches a piece while the piece before it is copied. A copy of a few KiB ends before the
/// processor's own prefetcher starts.
MILLRACE_INLINE void fetch_ahead(const copy_piece& piece) noexcept {
  constexpr std::size_t line = 64;
  constexpr std::size_t most = 1024;
  for (std::size_t i = 0; i < piece.bytes && i < most; i += line) {
    __builtin_prefetch(piece.from + i);
  }
}

#if defined(MILLRACE_NO_SIGBUS_GUARD)

MILLRACE_INLINE bool sigbus_guard_displaced() noexcept {
  return false;
}

MILLRACE_INLINE std::size_t copy_guarded(std::span<const copy_piece> pieces, const std::byte*,
                                         const std::byte*) noexcept {
  static const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const copy_piece& piece = pieces[i];
    const auto skew = reinterpret_cast<std::uintptr_t>(piece.from) % page;
    // `madvise` does not write to the memory. The caller uses read(2) for pieces that `madvise`
    // refuses; older kernels refuse all of them.
    auto* const begin = const_cast<std::byte*>(piece.from - skew);  // NOLINT: madvise is not const
    if (::madvise(begin, piece.bytes + skew, MADV_POPULATE_READ) != 0) return i;
    std::memcpy(piece.to, piece.from, piece.bytes);
  }
  return pieces.size();
}

#else

/// Where a thread resumes if it touches a lost page between `begin` and `end`.
struct sigbus_arm {
  ::sigjmp_buf back;
  const std::byte* begin;
  const std::byte* end;
  volatile bool raised = false;  ///< the signal was raised, but its reason is not known yet
};

/// A thread that has copied from maps. The handler finds the entry by `pthread_self`, not through a
/// thread-local variable; lost_pages.cpp gives the reason. Entries of the list are reused but never
/// freed, because a handler may be iterating over the list.
struct copying_thread {
  std::atomic<bool> in_use{true};
  std::atomic< ::pthread_t> id{::pthread_self()};
  std::atomic<sigbus_arm*> arm{nullptr};  ///< null if the thread is not copying
  copying_thread* next = nullptr;
};

/// The head of the list, which is its newest entry.
MILLRACE_INLINE std::atomic<copying_thread*>& copying_threads() noexcept {
  static constinit std::atomic<copying_thread*> first{nullptr};
  return first;
}

/// Returns an entry for this thread, or null if there is no memory.
MILLRACE_INLINE copying_thread* add_copying_thread() noexcept {
  for (copying_thread* t = copying_threads().load(); t != nullptr; t = t->next) {
    bool in_use = false;
    if (!t->in_use.compare_exchange_strong(in_use, true)) continue;
    t->id.store(::pthread_self());
    return t;
  }
  auto* const added = new (std::nothrow) copying_thread;  // NOLINT: never freed
  if (added == nullptr) return nullptr;
  added->next = copying_threads().load();
  while (!copying_threads().compare_exchange_weak(added->next, added)) {
  }
  return added;
}

/// Returns this thread's entry, or null if there is no memory. The signal handler must not call it.
MILLRACE_INLINE copying_thread* this_copying_thread() noexcept {
  struct entry {
    copying_thread* thread = add_copying_thread();
    entry() = default;
    entry(const entry&) = delete;
    entry& operator=(const entry&) = delete;
    ~entry() {
      if (thread != nullptr) thread->in_use.store(false);
      thread = nullptr;
    }
  };
  static thread_local entry mine;
  return mine.thread;
}

/// Returns this thread's entry if the thread is copying, otherwise null. For the signal handler.
MILLRACE_INLINE copying_thread* interrupted_thread() noexcept {
  const ::pthread_t self = ::pthread_self();
  for (copying_thread* t = copying_threads().load(); t != nullptr; t = t->next) {
    if (t->arm.load() != nullptr && t->id.load() == self) return t;
  }
  return nullptr;
}

/// Called in a forked child. The parent's copying threads do not exist there, and new threads may
/// get their ids.
MILLRACE_INLINE void forget_threads_of_parent() noexcept {
  for (copying_thread* t = copying_threads().load(); t != nullptr; t = t->next) {
    if (t->id.load() == ::pthread_self()) continue;
    t->arm.store(nullptr);
    t->in_use.store(false);
  }
}

MILLRACE_INLINE struct ::sigaction& previous_sigbus() noexcept {
  static struct ::sigaction previous {};
  return previous;
}

MILLRACE_INLINE void on_sigbus(int signal, ::siginfo_t* info, void* context) {
  copying_thread* const thread = interrupted_thread();
  sigbus_arm* const arm = thread == nullptr ? nullptr : thread->arm.load();
  // If si_code > 0, the kernel raised the signal because of an access. If kill(2) sent the signal,
  // si_addr has no meaning.
  if (arm != nullptr && info->si_code > 0) {
    const auto* const at = static_cast<const std::byte*>(info->si_addr);
    if (at >= arm->begin && at < arm->end) {
      thread->arm.store(nullptr);
      ::siglongjmp(arm->back, 1);
    }
  }
  if (arm != nullptr && dataset::detail::is_raised_again(info)) {
    // the thread repeats the access, and the code above handles the next signal
    arm->raised = true;
    return;
  }
  dataset::detail::pass_on(previous_sigbus(), signal, info, context);
}

MILLRACE_INLINE bool install_sigbus_guard() noexcept {
  static const bool installed = [] {
    // This handler is installed first. If it were installed later, it would replace our handler.
    dataset::detail::install_lost_page_handler();
    struct ::sigaction ours {};
    ours.sa_sigaction = on_sigbus;
    // SA_NODEFER, because the handler exits by a jump and the signal must not stay blocked after
    // that.
    ours.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    (void)::pthread_atfork(nullptr, nullptr, forget_threads_of_parent);
    (void)::sigaction(SIGBUS, nullptr, &previous_sigbus());
    return ::sigaction(SIGBUS, &ours, nullptr) == 0;
  }();
  return installed;
}

MILLRACE_INLINE bool sigbus_guard_displaced() noexcept {
  struct ::sigaction now {};
  return install_sigbus_guard() && ::sigaction(SIGBUS, nullptr, &now) == 0 &&
         ((now.sa_flags & SA_SIGINFO) == 0 || now.sa_sigaction != on_sigbus);
}

// Never inlined, so that no other variables are live between sigsetjmp and the jump back to it.
[[gnu::noinline]] MILLRACE_INLINE std::size_t copy_armed(copying_thread& thread,
                                                         const copy_piece* pieces,
                                                         std::size_t count, const std::byte* begin,
                                                         const std::byte* end) {
  volatile std::size_t done = 0;
  sigbus_arm arm;
  arm.begin = begin;
  arm.end = end;
  if (sigsetjmp(arm.back, 0) != 0) return done;  // NOLINT: signals are not masked (SA_NODEFER)
  thread.arm.store(&arm, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  for (std::size_t i = 0; i < count; ++i) {
    if (i + 1 < count) fetch_ahead(pieces[i + 1]);
    std::memcpy(pieces[i].to, pieces[i].from, pieces[i].bytes);
    done = i + 1;
  }
  std::atomic_signal_fence(std::memory_order_seq_cst);
  thread.arm.store(nullptr, std::memory_order_relaxed);
  if (arm.raised) (void)::raise(SIGBUS);  // no access failed, so the signal was for another handler
  return count;
}

MILLRACE_INLINE std::size_t copy_guarded(std::span<const copy_piece> pieces, const std::byte* begin,
                                         const std::byte* end) noexcept {
  (void)install_sigbus_guard();
  dataset::unblock_sigbus();
  copying_thread* const thread = this_copying_thread();
  if (thread == nullptr) return 0;  // the caller uses read(2)
  return copy_armed(*thread, pieces.data(), pieces.size(), begin, end);
}

#endif

}  // namespace detail

MILLRACE_INLINE std::size_t copy_pieces(std::span<const copy_piece> pieces, const std::byte* begin,
                                        const std::byte* end) noexcept {
  return detail::copy_guarded(pieces, begin, end);
}

}  // namespace millrace::loader
