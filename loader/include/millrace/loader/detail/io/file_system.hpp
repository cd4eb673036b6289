// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/vfs.h>

#include <cstdint>
#include <filesystem>

#include <millrace/detail/export.hpp>
#include <millrace/io/detail/unique_fd.hpp>

namespace millrace::loader {

/// Kinds of file systems. They differ in whether errors can be transient and whether readahead is
/// useful.
enum class file_system_kind : std::uint8_t {
  local,    ///< a disk of this machine: errors are permanent
  memory,   ///< tmpfs, ramfs: readahead is useless
  network,  ///< NFS, SMB, Lustre, a FUSE program ...: errors may be transient
};

inline constexpr std::uint64_t fuse_magic = 0x65735546;

/// Classifies the magic number that statfs(2) returns. FUSE counts as network, because clusters use
/// it to access object stores and parallel file systems.
MILLRACE_EXPORT file_system_kind kind_of_magic(std::uint64_t magic) noexcept;

/// The magic number from statfs(2); 0 if the call fails.
inline std::uint64_t magic_of(const io::unique_fd& fd) noexcept {
  struct ::statfs status {};
  if (::fstatfs(fd.get(), &status) != 0) return 0;
  return static_cast<std::uint32_t>(status.f_type);
}

/// The kind of the file system that a file is on; `local` if statfs(2) fails.
inline file_system_kind kind_of(const io::unique_fd& fd) noexcept {
  return kind_of_magic(magic_of(fd));
}

inline file_system_kind kind_of(const std::filesystem::path& path) noexcept {
  struct ::statfs status {};
  if (::statfs(path.c_str(), &status) != 0) return file_system_kind::local;
  return kind_of_magic(static_cast<std::uint32_t>(status.f_type));
}

}  // namespace millrace::loader
