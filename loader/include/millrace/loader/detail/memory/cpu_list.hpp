// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/detail/export.hpp>

/// CPUs by their numbers, as the kernel lists them ("0-3,8") and as threads are bound to them.
namespace millrace::loader {

/// CPUs of a list of the kernel's, ascending and each once. "0-3,8" is 0, 1, 2, 3, 8; an empty text
/// none.
///
/// @throws format_error  it is no such list; at the byte of the text where that shows
MILLRACE_EXPORT std::vector<int> parse_cpu_list(std::string_view text);

/// The list as the kernel writes it.
/// @pre cpus ascend
MILLRACE_EXPORT std::string cpu_list_text(std::span<const int> cpus);

/// CPUs that the calling thread may run on, ascending; none where the kernel does not say.
MILLRACE_EXPORT std::vector<int> allowed_cpus();

/// Has the calling thread, and threads that it starts, run on these CPUs alone. The kernel drops
/// those that a control group forbids, without a word: `allowed_cpus` says what came of it.
///
/// @return 0, or the errno: EINVAL where none of them may be used
MILLRACE_EXPORT int bind_to_cpus(std::span<const int> cpus);

}  // namespace millrace::loader
