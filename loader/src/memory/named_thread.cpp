// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/memory/named_thread.hpp>

#include <pthread.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <span>
#include <string>
#include <vector>

#include <millrace/loader/detail/memory/cpu_list.hpp>
#include <millrace/loader/detail/memory/grant.hpp>
#include <millrace/loader/detail/memory/memory_policy.hpp>

namespace millrace::loader {

namespace detail {

MILLRACE_INLINE grant bind_thread(const std::string& name, std::span<const int> cpus) {
  const std::string asked = "CPUs " + cpu_list_text(cpus) + " for thread " + name;
  if (const int code = bind_to_cpus(cpus); code != 0) {
    return {asked, "no", "sched_setaffinity refused: " + message_of(code)};
  }
  const std::vector<int> got = allowed_cpus();
  if (got.size() == cpus.size()) return {asked, "yes", "sched_setaffinity took them"};
  return {asked, std::to_string(got.size()) + " of " + std::to_string(cpus.size()),
          "the control group leaves it " + cpu_list_text(got)};
}

}  // namespace detail

MILLRACE_INLINE std::vector<grant> set_up_this_thread(const thread_setup& setup) {
  std::vector<grant> grants;
  if (!setup.name.empty()) {
    (void)::pthread_setname_np(::pthread_self(), setup.name.substr(0, 15).c_str());
  }
  if (!setup.cpus.empty()) grants.push_back(detail::bind_thread(setup.name, setup.cpus));
  if (setup.node >= 0) {
    preferred_node near(setup.node);
    near.keep();
    const std::string asked =
        "memory of NUMA node " + std::to_string(setup.node) + " for thread " + setup.name;
    if (near.error() == 0) {
      grants.push_back({asked, "yes", "set_mempolicy prefers it"});
    } else {
      grants.push_back({asked, "no", "set_mempolicy refused: " + detail::message_of(near.error())});
    }
  }
  return grants;
}

}  // namespace millrace::loader
