// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Shows which sanitizers this build uses, for tests that must be skipped under a sanitizer. GCC
/// defines a macro for each sanitizer; Clang has __has_feature.
#ifndef __has_feature
#define __has_feature(feature) 0
#endif

namespace millrace::test {

#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
inline constexpr bool under_thread_sanitizer = true;
#else
inline constexpr bool under_thread_sanitizer = false;
#endif

#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
inline constexpr bool under_address_sanitizer = true;
#else
inline constexpr bool under_address_sanitizer = false;
#endif

}  // namespace millrace::test
