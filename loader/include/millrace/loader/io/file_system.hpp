// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/vfs.h>

#include <cstdint>
#include <filesystem>

#include <millrace/io/unique_fd.hpp>

namespace millrace::loader {

/// What a file lies on, as far as reading it is another matter.
enum class file_system_kind : std::uint8_t {
  local,    ///< a disk of this machine: an error of it stays
  memory,   ///< tmpfs, ramfs: nothing to read ahead
  network,  ///< NFS, SMB, Lustre, a FUSE program ...: an error of it may pass
};

inline constexpr std::uint64_t fuse_magic = 0x65735546;

/// By the magic number of statfs(2). FUSE counts as network: what it shows are, in a cluster,
/// object stores and parallel file systems.
inline file_system_kind kind_of_magic(std::uint64_t magic) noexcept {
  switch (magic) {
    case 0x01021994:  // tmpfs
    case 0x858458f6:  // ramfs
    case 0x958458f6:  // hugetlbfs
      return file_system_kind::memory;
    case 0x6969:      // NFS
    case 0x517b:      // SMB
    case 0xff534d42:  // CIFS
    case 0xfe534d42:  // SMB 2
    case 0x0bd00bd0:  // Lustre
    case fuse_magic:
    case 0x00c36400:  // Ceph
    case 0x47504653:  // GPFS
    case 0x19830326:  // BeeGFS
    case 0x5346414f:  // AFS
    case 0x01021997:  // 9p
    case 0x73757245:  // Coda
    case 0x20030528:  // OrangeFS
      return file_system_kind::network;
    default:
      return file_system_kind::local;
  }
}

/// Of statfs(2); 0 where it cannot be asked.
inline std::uint64_t magic_of(const io::unique_fd& fd) noexcept {
  struct ::statfs status {};
  if (::fstatfs(fd.get(), &status) != 0) return 0;
  return static_cast<std::uint32_t>(status.f_type);
}

/// Local where it cannot be asked.
inline file_system_kind kind_of(const io::unique_fd& fd) noexcept {
  return kind_of_magic(magic_of(fd));
}

inline file_system_kind kind_of(const std::filesystem::path& path) noexcept {
  struct ::statfs status {};
  if (::statfs(path.c_str(), &status) != 0) return file_system_kind::local;
  return kind_of_magic(static_cast<std::uint32_t>(status.f_type));
}

}  // namespace millrace::loader
