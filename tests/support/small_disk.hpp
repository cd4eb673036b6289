// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>
#include <string>

/// Mounts disks of a few pages, to test full disks.
namespace millrace::test {

/// Gives this process its own mount namespace. Its mounts disappear when the process ends, so call
/// this function in a child process.
/// @return false if this machine does not allow it
inline bool enter_mount_namespace() {
  const int flags = ::geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER;
  return ::unshare(flags) == 0 && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

/// Mounts a tmpfs.
/// @param limits  mount options, e.g. "size=4096"
/// @param flags   MS_REMOUNT changes the options of a mounted tmpfs
inline bool mount_memory(const std::filesystem::path& folder, const std::string& limits,
                         unsigned long flags = 0) {
  return ::mount("none", folder.c_str(), "tmpfs", flags, limits.c_str()) == 0;
}

}  // namespace millrace::test
