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
  int node = -1;          ///< -1: unrestricted or unknown
  std::vector<int> cpus;  ///< the node's CPUs that this thread may use; empty: any

  /// One row about the node and one row about its CPUs. If the node or its CPUs are unknown, the
  /// rows give the reason.
  std::vector<grant> grants;
};

/// Returns the NUMA node that a PCI device is attached to, and the node's CPUs, according to sysfs.
/// Copies from that node's memory to the device do not cross the link between sockets. File pages
/// are allocated on the node of the thread that reads them first, so run prefetching threads on
/// that node too.
///
/// If the kernel does not report the node, or the machine has a single node, the place is
/// unrestricted and the rows say why.
///
/// @param pci_address  in the format of cudaDeviceGetPCIBusId or nvidia-smi ("0000:3B:00.0",
///                     "00000000:3B:00.0"); empty: no device
MILLRACE_EXPORT numa_place place_near_device(std::string_view pci_address,
                                             const system_files& files = {});

/// Like `place_near_device`, but for an explicitly chosen node; -1: any node.
MILLRACE_EXPORT numa_place place_on_node(int node, const system_files& files = {});

}  // namespace millrace::loader
