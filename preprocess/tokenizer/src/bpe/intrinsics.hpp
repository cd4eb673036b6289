// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Includes the vector intrinsics of x86-64 or of AArch64, the former without their warnings. GCC
/// 12 warns about its own header, because the header leaves some operands undefined on purpose.
#if defined(__x86_64__)
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
#elif defined(__AARCH64EL__)
#include <arm_neon.h>
#endif
