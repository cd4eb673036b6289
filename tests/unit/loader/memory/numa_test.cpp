// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/memory/cpu_list.hpp>
#include <millrace/loader/detail/memory/numa.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/loader/memory/fake_system.hpp"

namespace millrace::loader {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* device = "sys/bus/pci/devices/0000:3b:00.0/numa_node";
constexpr const char* cpus_of_1 = "sys/devices/system/node/node1/cpulist";

TEST(Numa, FindsTheNodeOfADevice) {
  const int here = allowed_cpus().front();
  test::fake_system system;
  system.put(device, "1\n").put(cpus_of_1, std::to_string(here) + "\n");
  // cudaDeviceGetPCIBusId, nvidia-smi, lspci and sysfs spell the address differently.
  for (const char* address : {"0000:3B:00.0", "00000000:3B:00.0", "3b:00.0", "0000:3b:00.0"}) {
    const numa_place place = place_near_device(address, system.files());
    EXPECT_EQ(place.node, 1) << address;
    EXPECT_THAT(place.cpus, ElementsAre(here));
    ASSERT_EQ(place.grants.size(), 2U);
    EXPECT_EQ(place.grants[0].asked, "NUMA node of device 0000:3b:00.0");
    EXPECT_EQ(place.grants[0].granted, "1");
    EXPECT_EQ(place.grants[1].granted, "yes");
  }
}

TEST(Numa, ADomainOfItsOwnIsKept) {
  test::fake_system system;
  system.put("sys/bus/pci/devices/10002:3b:00.0/numa_node", "0")
      .put("sys/devices/system/node/node0/cpulist", "0");
  EXPECT_EQ(place_near_device("00010002:3B:00.0", system.files()).node, 0);
}

TEST(Numa, TakesOnlyCpusThatItMayUse) {
  const int here = allowed_cpus().front();
  test::fake_system system;
  system.put(cpus_of_1, std::to_string(here) + ",8000-8001");
  const numa_place place = place_on_node(1, system.files());
  EXPECT_EQ(place.node, 1);
  EXPECT_THAT(place.cpus, ElementsAre(here));
  EXPECT_EQ(place.grants.at(0).granted, "1 of 3");

  system.put(cpus_of_1, "8000-8001");
  const numa_place elsewhere = place_on_node(1, system.files());
  EXPECT_EQ(elsewhere.node, 1);
  EXPECT_THAT(elsewhere.cpus, IsEmpty());
  EXPECT_THAT(elsewhere.grants.at(0).why, HasSubstr("8000-8001, and this process may use none"));

  system.put(cpus_of_1, "\n");  // the node has memory but no CPUs
  EXPECT_THAT(place_on_node(1, system.files()).grants.at(0).why, HasSubstr("it has none"));
}

TEST(Numa, SaysWhyThePlaceIsNotKnown) {
  test::fake_system system;
  const auto why = [&](std::string_view address) {
    const numa_place place = place_near_device(address, system.files());
    EXPECT_EQ(place.node, -1);
    EXPECT_THAT(place.cpus, IsEmpty());
    return place.grants.empty() ? std::string() : place.grants.front().why;
  };
  EXPECT_THAT(why(""), HasSubstr("there is no device"));
  EXPECT_THAT(why("0000:3b:00.0"), HasSubstr("check that the device exists"));
  EXPECT_THAT(why("../../../etc/passwd"), HasSubstr("not a PCI address"));
  EXPECT_THAT(why("0000:..:00.0"), HasSubstr("not a PCI address"));
  system.put(device, "-1\n");
  EXPECT_THAT(why("0000:3b:00.0"), HasSubstr("contains -1"));
  system.put(device, "1x\n");
  EXPECT_THAT(why("0000:3b:00.0"), HasSubstr("contains '1x', expected the number of a node"));
}

TEST(Numa, SaysWhyTheNodeHasNoCpus) {
  test::fake_system system;
  system.put(device, "1\n");
  const numa_place gone = place_near_device("0000:3b:00.0", system.files());
  EXPECT_EQ(gone.node, -1);
  EXPECT_THAT(gone.grants.at(1).why, HasSubstr("node1/cpulist cannot be read"));
  system.put(cpus_of_1, "0-\n");
  const numa_place broken = place_near_device("0000:3b:00.0", system.files());
  EXPECT_EQ(broken.node, 1);  // this node can still provide memory
  EXPECT_THAT(broken.grants.at(1).why, HasSubstr("cpulist: expected the number of a CPU"));
}

}  // namespace
}  // namespace millrace::loader
