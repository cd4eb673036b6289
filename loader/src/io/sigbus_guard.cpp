// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/io/sigbus_guard.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <csetjmp>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <millrace/dataset/detail/lost_pages.hpp>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22  // NOLINT: since Linux 5.14; C libraries may be older
#endif

namespace millrace::loader {

namespace detail {

/// Prefetches the next piece while this one is copied: a copy of a few KiB ends before the
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
    // madvise does not write to the memory. The caller uses read(2) for pieces that madvise refuses
    // (older kernels refuse all).
    auto* const begin = const_cast<std::byte*>(piece.from - skew);  // NOLINT: madvise is not const
    if (::madvise(begin, piece.bytes + skew, MADV_POPULATE_READ) != 0) return i;
    std::memcpy(piece.to, piece.from, piece.bytes);
  }
  return pieces.size();
}

#else

/// The place at which a thread resumes if it touches a lost page between `begin` and `end`.
struct sigbus_arm {
  ::sigjmp_buf back;
  const std::byte* begin;
  const std::byte* end;
  volatile bool raised = false;  ///< the signal was raised, and nothing has shown why yet
};

/// The handler reads it on every thread, and it may have interrupted malloc: the model initial-exec
/// accesses it without __tls_get_addr, which may allocate.
MILLRACE_INLINE constinit thread_local sigbus_arm* volatile armed
    [[gnu::tls_model("initial-exec")]] = nullptr;

MILLRACE_INLINE struct ::sigaction& previous_sigbus() noexcept {
  static struct ::sigaction previous {};
  return previous;
}

MILLRACE_INLINE void on_sigbus(int signal, ::siginfo_t* info, void* context) {
  sigbus_arm* const arm = armed;
  // si_code > 0: the kernel raised the signal for an access. If kill(2) sent it, si_addr has no
  // meaning.
  if (arm != nullptr && info->si_code > 0) {
    const auto* const at = static_cast<const std::byte*>(info->si_addr);
    if (at >= arm->begin && at < arm->end) {
      armed = nullptr;
      ::siglongjmp(arm->back, 1);
    }
  }
  if (arm != nullptr && dataset::detail::is_raised_again(info)) {
    arm->raised = true;  // the access is repeated, and then handled above
    return;
  }
  dataset::detail::pass_on(previous_sigbus(), signal, info, context);
}

MILLRACE_INLINE bool install_sigbus_guard() noexcept {
  static const bool installed = [] {
    dataset::detail::install_lost_page_handler();  // first, else it would displace ours later
    struct ::sigaction ours {};
    ours.sa_sigaction = on_sigbus;
    // SA_NODEFER: the handler exits by a jump, after which the signal must not remain blocked.
    ours.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
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
[[gnu::noinline]] MILLRACE_INLINE std::size_t copy_armed(const copy_piece* pieces,
                                                         std::size_t count, const std::byte* begin,
                                                         const std::byte* end) {
  volatile std::size_t done = 0;
  sigbus_arm arm;
  arm.begin = begin;
  arm.end = end;
  if (sigsetjmp(arm.back, 0) != 0) return done;  // NOLINT: signals are not masked (SA_NODEFER)
  armed = &arm;
  for (std::size_t i = 0; i < count; ++i) {
    if (i + 1 < count) fetch_ahead(pieces[i + 1]);
    std::memcpy(pieces[i].to, pieces[i].from, pieces[i].bytes);
    done = i + 1;
  }
  armed = nullptr;
  if (arm.raised) (void)::raise(SIGBUS);  // no access had failed: the signal was for someone else
  return count;
}

MILLRACE_INLINE std::size_t copy_guarded(std::span<const copy_piece> pieces, const std::byte* begin,
                                         const std::byte* end) noexcept {
  (void)install_sigbus_guard();
  dataset::unblock_sigbus();
  return copy_armed(pieces.data(), pieces.size(), begin, end);
}

#endif

}  // namespace detail

MILLRACE_INLINE std::size_t copy_pieces(std::span<const copy_piece> pieces, const std::byte* begin,
                                        const std::byte* end) noexcept {
  return detail::copy_guarded(pieces, begin, end);
}

}  // namespace millrace::loader
