// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/memory/cpu_list.hpp>

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/error.hpp>

namespace millrace::loader {

namespace detail {

inline constexpr int most_cpus = 8192;  // the most CPUs that Linux kernels are built for

struct free_cpu_set {
  void operator()(::cpu_set_t* set) const noexcept { CPU_FREE(set); }
};

using unique_cpu_set = std::unique_ptr<::cpu_set_t, free_cpu_set>;

MILLRACE_INLINE unique_cpu_set no_cpus() {
  unique_cpu_set set(CPU_ALLOC(most_cpus));
  if (set) CPU_ZERO_S(CPU_ALLOC_SIZE(most_cpus), set.get());
  return set;
}

}  // namespace detail

MILLRACE_INLINE std::vector<int> parse_cpu_list(std::string_view text) {
  std::vector<int> cpus;
  std::size_t at = 0;
  const auto number = [&] {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
    if (error != std::errc() || value < 0 || value >= detail::most_cpus) {
      throw format_error(
          at, "expected the number of a CPU, 0 to 8191, in the list '" + std::string(text) + "'");
    }
    at = static_cast<std::size_t>(end - text.data());
    return value;
  };
  while (at < text.size()) {
    const int first = number();
    int last = first;
    if (at < text.size() && text[at] == '-') {
      ++at;
      last = number();
    }
    if (last < first) {
      throw format_error(at, "the CPUs " + std::to_string(first) + " to " + std::to_string(last) +
                                 " of the list '" + std::string(text) + "' do not ascend");
    }
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
    if (at == text.size()) break;
    if (text[at] != ',' || at + 1 == text.size()) {
      throw format_error(at, "expected a comma and a CPU in the list '" + std::string(text) + "'");
    }
    ++at;
  }
  std::ranges::sort(cpus);
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

MILLRACE_INLINE std::string cpu_list_text(std::span<const int> cpus) {
  std::string text;
  for (std::size_t i = 0; i < cpus.size();) {
    std::size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += std::to_string(cpus[i]);
    if (last > i) text += '-' + std::to_string(cpus[last]);
    i = last + 1;
  }
  return text;
}

MILLRACE_INLINE std::vector<int> allowed_cpus() {
  std::vector<int> cpus;
  const auto set = detail::no_cpus();
  constexpr std::size_t size = CPU_ALLOC_SIZE(detail::most_cpus);
  if (!set || ::sched_getaffinity(0, size, set.get()) != 0) return cpus;
  for (int cpu = 0; cpu < detail::most_cpus; ++cpu) {
    if (CPU_ISSET_S(static_cast<std::size_t>(cpu), size, set.get())) cpus.push_back(cpu);
  }
  return cpus;
}

MILLRACE_INLINE int bind_to_cpus(std::span<const int> cpus) {
  const auto set = detail::no_cpus();
  constexpr std::size_t size = CPU_ALLOC_SIZE(detail::most_cpus);
  if (!set) return ENOMEM;
  for (const int cpu : cpus) {
    if (cpu < 0 || cpu >= detail::most_cpus) return EINVAL;
    CPU_SET_S(static_cast<std::size_t>(cpu), size, set.get());
  }
  return ::sched_setaffinity(0, size, set.get()) == 0 ? 0 : errno;
}

}  // namespace millrace::loader
