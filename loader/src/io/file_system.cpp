// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/io/file_system.hpp>

#include <sys/vfs.h>

#include <cstdint>

namespace millrace::loader {

MILLRACE_INLINE file_system_kind kind_of_magic(std::uint64_t magic) noexcept {
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

}  // namespace millrace::loader
