// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>
#include <string>

/// Disks of a few pages, for what a full one does.
namespace millrace::test {

/// In a namespace of its own, what this process mounts is gone when it ends. Of use in a child.
/// @return false: this machine does not allow it
inline bool enter_mount_namespace() {
  const int flags = ::geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER;
  return ::unshare(flags) == 0 && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

/// @param limits  options of tmpfs, e.g. "size=4096"
/// @param flags   MS_REMOUNT changes those of one that is mounted
inline bool mount_memory(const std::filesystem::path& folder, const std::string& limits,
                         unsigned long flags = 0) {
  return ::mount("none", folder.c_str(), "tmpfs", flags, limits.c_str()) == 0;
}

}  // namespace millrace::test
