// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include <millrace/detail/export.hpp>
#include <millrace/loader/detail/memory/available_memory.hpp>
#include <millrace/loader/detail/memory/grant.hpp>

namespace millrace::loader {

/// Where to place the memory and threads that serve a device.
struct numa_place {
  int node = -1;          ///< -1: irrelevant or unknown
  std::vector<int> cpus;  ///< CPUs of the node that this thread may use; empty: any

  /// One row for the node and one for its CPUs. If they are unknown, the rows give the reason.
  std::vector<grant> grants;
};

/// The NUMA node that a PCI device is attached to, and its CPUs, according to sysfs. Copies from
/// memory of that node to the device cross no other socket. File pages come from the node of the
/// thread that reads them first, so threads that prefetch belong on that node too.
///
/// If the kernel does not report the node, or there is only one, the place is unrestricted and the
/// rows say why.
///
/// @param pci_address  as printed by cudaDeviceGetPCIBusId or nvidia-smi ("0000:3B:00.0",
///                     "00000000:3B:00.0"); empty: no device
MILLRACE_EXPORT numa_place place_near_device(std::string_view pci_address,
                                             const system_files& files = {});

/// Like `place_near_device`, but for an explicitly chosen node; -1: any.
MILLRACE_EXPORT numa_place place_on_node(int node, const system_files& files = {});

}  // namespace millrace::loader
