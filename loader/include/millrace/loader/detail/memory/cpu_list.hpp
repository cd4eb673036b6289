// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/detail/export.hpp>

/// Parses and prints the kernel's lists of CPU numbers ("0-3,8"), and sets the CPUs of a thread.
namespace millrace::loader {

/// Parses a CPU list in the kernel's format. The result is ascending, without duplicates. "0-3,8"
/// gives 0, 1, 2, 3 and 8; an empty text gives an empty list.
///
/// @throws format_error  the text is not a CPU list; the message gives the byte of the error
MILLRACE_EXPORT std::vector<int> parse_cpu_list(std::string_view text);

/// Formats a CPU list like the kernel.
/// @pre `cpus` is in ascending order
MILLRACE_EXPORT std::string cpu_list_text(std::span<const int> cpus);

/// CPUs that the calling thread may run on, ascending; empty if the kernel does not report them.
MILLRACE_EXPORT std::vector<int> allowed_cpus();

/// Restricts the calling thread, and threads that it starts later, to these CPUs. The kernel
/// silently drops CPUs that a control group forbids; `allowed_cpus` returns the remaining CPUs.
///
/// @return 0, or the errno: EINVAL if the thread may use none of these CPUs
MILLRACE_EXPORT int bind_to_cpus(std::span<const int> cpus);

}  // namespace millrace::loader
