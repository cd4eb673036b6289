// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a build's sanitizer cannot do, for tests that are skipped for it.
namespace millrace::test {

#if defined(__SANITIZE_THREAD__)
inline constexpr bool under_thread_sanitizer = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
inline constexpr bool under_thread_sanitizer = true;
#else
inline constexpr bool under_thread_sanitizer = false;
#endif
#else
inline constexpr bool under_thread_sanitizer = false;
#endif

}  // namespace millrace::test
