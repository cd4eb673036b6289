// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/memory/numa.hpp>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/loader/detail/memory/available_memory.hpp>
#include <millrace/loader/detail/memory/cpu_list.hpp>

namespace millrace::loader {

namespace detail {

/// Returns the address as sysfs spells it: in lower case, with four digits for the domain.
MILLRACE_INLINE std::string sysfs_pci_address(std::string_view address) {
  std::string text(address);
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  const std::size_t domain = text.find(':');
  if (domain == std::string::npos || text.find(':', domain + 1) == std::string::npos) {
    return "0000:" + text;  // lspci omits a domain of zeros
  }
  if (domain > 4) text.erase(0, std::min(domain - 4, text.find_first_not_of('0')));
  return text;
}

}  // namespace detail

MILLRACE_INLINE numa_place place_on_node(int node, const system_files& files) {
  numa_place place;
  if (node < 0) return place;
  const std::string asked = "CPUs of NUMA node " + std::to_string(node);
  const auto path = files.sys / "devices/system/node" / ("node" + std::to_string(node)) / "cpulist";
  const auto text = read_system_file(path);
  if (!text) {
    place.grants.push_back(
        {asked, "no", path.string() + " cannot be read; check that the node exists"});
    return place;
  }
  place.node = node;
  std::vector<int> all;
  try {
    all = parse_cpu_list(*text);
  } catch (const format_error& e) {
    place.grants.push_back({asked, "no", e.in(path).what()});
    return place;
  }
  std::ranges::set_intersection(all, allowed_cpus(), std::back_inserter(place.cpus));
  const std::string list = "it has " + (all.empty() ? std::string("none") : cpu_list_text(all));
  if (place.cpus.size() == all.size() && !all.empty()) {
    place.grants.push_back({asked, "yes", list});
  } else if (place.cpus.empty()) {
    place.grants.push_back({asked, "no", list + ", and this process may use none of them"});
  } else {
    place.grants.push_back({asked,
                            std::to_string(place.cpus.size()) + " of " + std::to_string(all.size()),
                            list + ", and this process may use " + cpu_list_text(place.cpus)});
  }
  return place;
}

MILLRACE_INLINE numa_place place_near_device(std::string_view pci_address,
                                             const system_files& files) {
  numa_place any;
  const auto unknown = [&](const std::string& asked, std::string why) {
    any.grants.push_back({asked, "no", std::move(why)});
    return any;
  };
  if (pci_address.empty()) return unknown("NUMA node of a device", "there is no device");
  const std::string address = detail::sysfs_pci_address(pci_address);
  const std::string asked = "NUMA node of device " + address;
  // This external input becomes part of a path, so only hexadecimal digits, dots and colons are
  // allowed.
  if (address.find_first_not_of("0123456789abcdef:.") != std::string::npos ||
      address.find("..") != std::string::npos) {
    return unknown(asked, "this is not a PCI address; expected e.g. 0000:3b:00.0");
  }
  const auto path = files.sys / "bus/pci/devices" / address / "numa_node";
  const auto text = read_system_file(path);
  if (!text) return unknown(asked, path.string() + " cannot be read; check that the device exists");
  int node = -1;
  const char* end = text->data() + text->size();
  const auto [rest, error] = std::from_chars(text->data(), end, node);
  if (error != std::errc() || rest != end) {
    return unknown(asked,
                   path.string() + " contains '" + *text + "', expected the number of a node");
  }
  if (node < 0) {
    return unknown(
        asked, path.string() + " contains -1: the machine has one node, or does not report nodes");
  }
  numa_place place = place_on_node(node, files);
  place.grants.insert(place.grants.begin(),
                      {asked, std::to_string(node), "according to " + path.string()});
  return place;
}

}  // namespace millrace::loader
