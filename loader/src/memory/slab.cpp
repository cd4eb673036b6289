// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/memory/slab.hpp>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <system_error>

#include <millrace/loader/detail/memory/available_memory.hpp>
#include <millrace/loader/detail/memory/memory_kind.hpp>
#include <millrace/loader/detail/memory/memory_policy.hpp>

namespace millrace::loader::detail {

MILLRACE_INLINE int populate_anyhow(std::span<std::byte> memory) noexcept {
  const int code = populate(memory);
  if (code != EINVAL) return code;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  for (std::size_t at = 0; at < memory.size(); at += page) {
    *static_cast<volatile std::byte*>(memory.data() + at) = std::byte{0};
  }
  return 0;
}

MILLRACE_INLINE std::optional<slab> cuda_slab(const pinned_memory_hook& hook,
                                              std::size_t size_bytes, std::size_t alignment,
                                              std::string& why) {
  if (!hook) {
    why = "no CUDA: the loader was given no hook for it";
    return std::nullopt;
  }
  // Allocates room to align the slab, because the runtime guarantees only its own alignment.
  void* memory = hook.allocate(hook.context, size_bytes + alignment, why);
  if (memory == nullptr) {
    if (why.empty()) why = "the CUDA runtime returned no memory and no reason";
    return std::nullopt;
  }
  slab result;
  result.hooked = unique_hooked({hook, memory});
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  auto* first = static_cast<std::byte*>(memory) + (rounded_up(address, alignment) - address);
  result.bytes = {first, size_bytes};
  why = "the CUDA runtime allocated page-locked memory";
  return result;
}

MILLRACE_INLINE std::optional<slab> hugetlb_slab(std::size_t size_bytes, int node,
                                                 const system_files& files, std::string& why) {
  const std::size_t whole = rounded_up(size_bytes, huge_page_bytes);
  const std::string pages = std::to_string(whole / huge_page_bytes);
  if (size_bytes < huge_page_bytes) {
    why = "less than one huge page of 2 MiB is needed";
    return std::nullopt;
  }
  void* address = ::mmap(nullptr, whole, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | map_huge_2mb, -1, 0);
  if (address == MAP_FAILED) {
    const int code = errno;
    const auto folder = files.sys / "kernel/mm/hugepages/hugepages-2048kB";
    const auto free = read_system_file(folder / "free_hugepages");
    const auto all = read_system_file(folder / "nr_hugepages");
    why = "mmap refused " + pages + " huge pages of 2 MiB: " + message_of(code);
    if (free && all) {
      why += "; the pool has " + *free + " free of " + *all + " (vm.nr_hugepages sets how many)";
    }
    return std::nullopt;
  }
  slab result;
  result.mapped = unique_block({address, whole});
  result.bytes = {static_cast<std::byte*>(address), whole};
  // ignores the result here, because the caller reports the node in a row of its own
  if (node >= 0) (void)prefer_node(result.bytes, node);
  // `mmap` only reserves pages. A control group or a bad page may still prevent the allocation, and
  // then touching the page would raise SIGBUS.
  if (const int code = populate(result.bytes); code != 0) {
    why = "the pool refused " + pages + " huge pages of 2 MiB when they were touched: " +
          (code == EINVAL ? "no MADV_POPULATE_WRITE before Linux 5.14" : message_of(code));
    return std::nullopt;
  }
  result.bytes = result.bytes.first(size_bytes);
  why = pages + " huge pages of 2 MiB from the pool";
  return result;
}

MILLRACE_INLINE std::optional<slab> anonymous_slab(std::size_t size_bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t inner = rounded_up(size_bytes, page);
  const std::size_t outer = inner + huge_page_bytes + 2 * page;
  void* address =
      ::mmap(nullptr, outer, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) return std::nullopt;
  slab result;
  result.mapped = unique_block({address, outer});
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  auto* first =
      static_cast<std::byte*>(address) + (rounded_up(begin + page, huge_page_bytes) - begin);
  if (::mmap(first, inner, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
             0) == MAP_FAILED) {
    return std::nullopt;
  }
  result.bytes = {first, inner};
  return result;
}

MILLRACE_INLINE std::uint64_t huge_bytes_at(const void* address, const system_files& files) {
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  std::ifstream smaps(files.proc / "self/smaps");
  bool inside = false;
  for (std::string line; std::getline(smaps, line);) {
    // A line "7f0000000000-7f0000200000 rw-p ..." starts a mapping. The lines after it, such as
    // "AnonHugePages:  2048 kB", belong to that mapping.
    std::uintptr_t begin = 0;
    const char* end = line.data() + line.size();
    const auto [rest, error] = std::from_chars(line.data(), end, begin, 16);
    if (error == std::errc() && rest != end && *rest == '-') {
      if (inside) return 0;
      inside = begin == wanted;
    } else if (inside) {
      if (const auto kib = number_behind(line, "AnonHugePages:")) return *kib * 1024;
    }
  }
  return 0;
}

MILLRACE_INLINE std::string why_no_thp(const system_files& files) {
  const auto enabled = read_system_file(files.sys / "kernel/mm/transparent_hugepage/enabled");
  if (!enabled) return "this kernel has no transparent huge pages";
  if (enabled->find("[never]") != std::string::npos) {
    return "transparent_hugepage/enabled is never: madvise or always would allow them";
  }
  if (::prctl(pr_get_thp_disable, 0, 0, 0, 0) == 1) {
    return "they are disabled for this process (prctl PR_SET_THP_DISABLE)";
  }
  return "the kernel found no contiguous free 2 MiB of memory";
}

MILLRACE_INLINE bool lock(std::span<std::byte> memory, std::string& why) {
  // Makes the system call directly, because sanitizers replace `mlock` by a function that does
  // nothing and reports success.
  if (::syscall(SYS_mlock, memory.data(), memory.size()) == 0) {
    why = "mlock took " + std::to_string(memory.size()) + " bytes";
    return true;
  }
  const int code = errno;
  why = "mlock refused " + std::to_string(memory.size()) + " bytes: " + message_of(code);
  ::rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    why += "; RLIMIT_MEMLOCK is " + std::to_string(limit.rlim_cur) +
           " bytes for the whole process (ulimit -l raises it)";
  }
  return false;
}

}  // namespace millrace::loader::detail
