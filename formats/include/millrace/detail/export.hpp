// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Marks what a shared library shows to the programs that link it: everything else is hidden where
/// the library is compiled with -fvisibility=hidden. Exceptions have it too, so that a program
/// catches by type what a library throws.
#define MILLRACE_EXPORT [[gnu::visibility("default")]]
