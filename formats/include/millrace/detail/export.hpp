// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Exports a symbol from a shared library that is compiled with -fvisibility=hidden. Exception
/// classes need this too. Otherwise, a program could not catch them by type when a library throws
/// them.
#define MILLRACE_EXPORT [[gnu::visibility("default")]]
