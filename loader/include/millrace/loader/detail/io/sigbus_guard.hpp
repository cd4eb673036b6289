// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <cstddef>
#include <span>

#include <millrace/detail/export.hpp>

// The macro MILLRACE_NO_SIGBUS_GUARD is for programs whose signal handlers must not be changed.
// Define it when you compile the libraries, or before you include the header-only form. The kernel
// is then asked to load the pages before each copy (MADV_POPULATE_READ). This takes twice the time,
// and does not help if a file is truncated between the request and the copy. With a sanitizer, the
// macro is always defined, because a signal handler must not jump out of the sanitizer's memcpy.
#if !defined(MILLRACE_NO_SIGBUS_GUARD)
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MILLRACE_NO_SIGBUS_GUARD 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define MILLRACE_NO_SIGBUS_GUARD 1
#endif
#endif
#endif

/// Copies from memory-mapped files, and survives SIGBUS. The kernel raises SIGBUS if a copy touches
/// a lost page: a page that is no longer part of the file, or that cannot be read.
namespace millrace::loader {

/// Bytes to copy from a memory mapping (map).
struct copy_piece {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  std::size_t bytes = 0;
};

/// Copies pieces, in order, until a piece cannot be copied because it touches a lost page. The
/// destination of this piece then has undefined contents.
///
/// @param begin, end  the memory of the map that contains all pieces
/// @return the number of pieces that were copied
MILLRACE_EXPORT std::size_t copy_pieces(std::span<const copy_piece> pieces, const std::byte* begin,
                                        const std::byte* end) noexcept;

namespace detail {

#if defined(MILLRACE_NO_SIGBUS_GUARD)
inline constexpr bool has_sigbus_guard = false;
#else
inline constexpr bool has_sigbus_guard = true;

/// Installs our SIGBUS handler, once per process. If another handler is installed later, it must
/// forward the signals that it does not handle itself. Alternatively, it may restore our handler
/// and raise the signal again, as Python's `faulthandler` does.
MILLRACE_EXPORT bool install_sigbus_guard() noexcept;

/// The handler that was installed before ours.
MILLRACE_EXPORT struct ::sigaction& previous_sigbus() noexcept;
#endif

/// True if another handler was installed after ours. That handler then decides what happens if a
/// lost page is touched.
MILLRACE_EXPORT bool sigbus_guard_displaced() noexcept;

}  // namespace detail

}  // namespace millrace::loader
