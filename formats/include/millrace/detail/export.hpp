// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Exports a symbol from a shared library that is compiled with -fvisibility=hidden. Exceptions
/// need it, too, so that a program can catch by type what a library throws.
#define MILLRACE_EXPORT [[gnu::visibility("default")]]
