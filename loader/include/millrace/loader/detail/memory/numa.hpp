// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include <millrace/detail/export.hpp>
#include <millrace/loader/detail/memory/grant.hpp>
#include <millrace/loader/detail/memory/system_files.hpp>

namespace millrace::loader {

/// Where memory and threads for a device belong.
struct numa_place {
  int node = -1;          ///< -1: no matter, or not known
  std::vector<int> cpus;  ///< of the node, that this thread may run on; empty: any

  /// One row each for the node and for its CPUs; why they are not known, if they are not.
  std::vector<grant> grants;
};

/// The NUMA node that a PCI device is attached to, and its CPUs, by sysfs. Memory of that node is
/// what copies to the device cross no other socket from; pages of files come from the node of the
/// thread that reads them first, so that threads which prefetch belong there too.
///
/// Where the kernel does not say, or there is one node only, the place is any and the rows say why.
///
/// @param pci_address  as cudaDeviceGetPCIBusId or nvidia-smi give it ("0000:3B:00.0",
///                     "00000000:3B:00.0"); empty: no device
MILLRACE_EXPORT numa_place place_near_device(std::string_view pci_address,
                                             const system_files& files = {});

/// The same of a node that somebody chose; -1: any.
MILLRACE_EXPORT numa_place place_on_node(int node, const system_files& files = {});

}  // namespace millrace::loader
