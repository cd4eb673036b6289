// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <cstddef>
#include <span>

#include <millrace/detail/export.hpp>

// MILLRACE_NO_SIGBUS_GUARD is for programs whose signal handlers must not be changed. Define it
// when the libraries are compiled, or before the header-only form is included. Before each copy,
// the kernel is then asked to load the pages (MADV_POPULATE_READ). That takes twice the time, and
// it does not help if a file is truncated between this request and the copy. Sanitizers imply this
// macro: a jump must not leave their memcpy.
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

/// Copies from memory-mapped files and survives SIGBUS, which the kernel raises for a page that the
/// file no longer has or that cannot be read.
namespace millrace::loader {

/// Bytes to copy from a map.
struct copy_piece {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  std::size_t bytes = 0;
};

/// Copies pieces of the map [begin, end), one after another.
///
/// @return the number of pieces copied: all, or those before the first one that touches an
///         unavailable page. The destination of that piece is then undefined.
MILLRACE_EXPORT std::size_t copy_pieces(std::span<const copy_piece> pieces, const std::byte* begin,
                                        const std::byte* end) noexcept;

namespace detail {

#if defined(MILLRACE_NO_SIGBUS_GUARD)
inline constexpr bool has_sigbus_guard = false;
#else
inline constexpr bool has_sigbus_guard = true;

/// Installs the handler, once per process. A handler installed later must forward the signals that
/// it does not handle itself, or restore this handler and raise them again, as Python's
/// `faulthandler` does.
MILLRACE_EXPORT bool install_sigbus_guard() noexcept;

/// The handler that was installed before ours.
MILLRACE_EXPORT struct ::sigaction& previous_sigbus() noexcept;
#endif

/// True if another handler was installed later. That handler then decides what happens on lost
/// pages.
MILLRACE_EXPORT bool sigbus_guard_displaced() noexcept;

}  // namespace detail

}  // namespace millrace::loader
