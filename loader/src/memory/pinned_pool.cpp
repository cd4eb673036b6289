// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/memory/pinned_pool.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include <millrace/error.hpp>
#include <millrace/loader/detail/memory/available_memory.hpp>
#include <millrace/loader/detail/memory/grant.hpp>
#include <millrace/loader/detail/memory/memory_kind.hpp>
#include <millrace/loader/detail/memory/memory_policy.hpp>
#include <millrace/loader/detail/memory/numa.hpp>
#include <millrace/loader/detail/memory/slab.hpp>

namespace millrace::loader {

MILLRACE_INLINE pinned_pool::pinned_pool(const pool_options& options)
    : slot_bytes_(options.slot_bytes) {
  refuse_nonsense(options);
  report_.slots = options.slots;
  report_.slot_bytes = detail::rounded_up(options.slot_bytes, options.alignment);
  report_.total_bytes = report_.slots * report_.slot_bytes;
  take(options);
}

MILLRACE_INLINE void pinned_pool::refuse_nonsense(const pool_options& options) const {
  const auto number = [](std::size_t n) { return std::to_string(n); };
  if (options.slots < 1 || options.slot_bytes < 1) {
    throw config_error("a pinned pool of " + number(options.slots) + " slots of " +
                       number(options.slot_bytes) + " bytes, expected 1 or more of both");
  }
  const std::size_t alignment = options.alignment;
  if (alignment < 64 || (alignment & (alignment - 1)) != 0 || alignment > detail::huge_page_bytes) {
    throw config_error("the alignment of a pinned pool is " + number(alignment) +
                       ", expected a power of two from 64 to 2097152");
  }
  // Divides instead of multiplying, because the product may overflow.
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max() / 2;
  const bool fits =
      options.slot_bytes <= most - alignment &&
      detail::rounded_up(options.slot_bytes, alignment) <= options.budget_bytes / options.slots;
  if (!fits) {
    throw config_error(
        "a pinned pool of " + number(options.slots) + " slots of " + number(options.slot_bytes) +
        " bytes, aligned to " + number(alignment) + ", does not fit its budget of " +
        number(options.budget_bytes) +
        " bytes: use fewer slots (look_ahead) or smaller micro-batches, or raise budget_bytes");
  }
}

MILLRACE_INLINE void pinned_pool::take(const pool_options& options) {
  const auto skip = [&](memory_kind kind) {
    if (kind >= options.best) return false;
    add(kind, false,
        std::string("not requested: the best requested kind is ") + name_of(options.best));
    return true;
  };
  if (!skip(memory_kind::cuda) && take_cuda(options)) return;
  if (!skip(memory_kind::hugetlb) && take_hugetlb(options)) return;
  take_anonymous(options);
}

MILLRACE_INLINE bool pinned_pool::take_cuda(const pool_options& options) {
  std::string why;
  // Sets the node for this thread, because CUDA touches the memory's pages on this thread at once.
  const preferred_node near(options.node);
  auto got = detail::cuda_slab(options.cuda, report_.total_bytes, options.alignment, why);
  add(memory_kind::cuda, got.has_value(), std::move(why));
  if (!got) return false;
  slab_ = std::move(*got);
  report_.granted = memory_kind::cuda;
  report_.locked = true;
  if (options.node >= 0) add_node(options.node, near.error(), "set_mempolicy");
  return true;
}

MILLRACE_INLINE bool pinned_pool::take_hugetlb(const pool_options& options) {
  std::string why;
  auto got = detail::hugetlb_slab(report_.total_bytes, options.node, options.files, why);
  add(memory_kind::hugetlb, got.has_value(), std::move(why));
  if (!got) return false;
  slab_ = std::move(*got);
  report_.granted = memory_kind::hugetlb;
  report_.locked = true;
  report_.huge_bytes = report_.total_bytes;
  place(options);
  return true;
}

// Creates one mapping for the last three kinds of memory. Which kind the mapping is depends on
// whether its pages turn out to be huge and locked.
MILLRACE_INLINE void pinned_pool::take_anonymous(const pool_options& options) {
  // Checks the available memory first. The kernel would grant memory that does not exist, and would
  // kill the process later.
  const auto room = available_memory(options.files);
  if (room && room->bytes < report_.total_bytes) {
    fail_for_memory(room->by + " leaves " + std::to_string(room->bytes) + " bytes", "memory",
                    ENOMEM);
  }
  auto got = detail::anonymous_slab(report_.total_bytes);
  if (!got) fail_for_memory("", "mmap", errno);
  slab_ = std::move(*got);
  place(options);

  const std::size_t whole = slab_.bytes.size() / detail::huge_page_bytes * detail::huge_page_bytes;
  const bool ask_huge = options.best <= memory_kind::thp && whole > 0;
  const int advised = ask_huge ? ::madvise(slab_.bytes.data(), slab_.bytes.size(), MADV_HUGEPAGE)
                               : ::madvise(slab_.bytes.data(), slab_.bytes.size(), MADV_NOHUGEPAGE);
  if (const int code = detail::populate_anyhow(slab_.bytes); code != 0) {
    fail_for_memory("", "madvise (MADV_POPULATE_WRITE)", code);
  }
  if (options.best > memory_kind::thp) {
    add(memory_kind::thp, false,
        std::string("not requested: the best requested kind is ") + name_of(options.best));
  } else if (!ask_huge) {
    add(memory_kind::thp, false, "less than one huge page of 2 MiB is needed");
  } else {
    report_.huge_bytes = std::min<std::uint64_t>(
        detail::huge_bytes_at(slab_.bytes.data(), options.files), report_.total_bytes);
    const bool huge = report_.huge_bytes >= whole / 2 && report_.huge_bytes > 0;
    std::string why = std::to_string(report_.huge_bytes) + " of " +
                      std::to_string(report_.total_bytes) + " bytes are in huge pages";
    if (report_.huge_bytes < whole) {
      why += "; " + (advised != 0 ? std::string("the kernel refused the advice MADV_HUGEPAGE")
                                  : detail::why_no_thp(options.files));
    }
    add(memory_kind::thp, huge, std::move(why));
    if (huge) report_.granted = memory_kind::thp;
  }
  if (options.best > memory_kind::locked) {
    add(memory_kind::locked, false, "not requested: the best requested kind is plain");
  } else {
    std::string why;
    report_.locked = detail::lock(slab_.bytes, why);
    add(memory_kind::locked, report_.locked, std::move(why));
    if (report_.locked && report_.granted == memory_kind::plain) {
      report_.granted = memory_kind::locked;
    }
  }
  if (report_.granted == memory_kind::plain) {
    add(memory_kind::plain, true, "touched beforehand; the kernel may still swap it out");
  }
}

// This is best effort: without NUMA, or without this node, any memory is acceptable.
MILLRACE_INLINE void pinned_pool::place(const pool_options& options) {
  if (options.node < 0) return;
  add_node(options.node, prefer_node(slab_.bytes, options.node), "mbind");
}

MILLRACE_INLINE void pinned_pool::add_node(int node, int code, const std::string& call) {
  report_.grants.push_back({"memory of NUMA node " + std::to_string(node), code == 0 ? "yes" : "no",
                            code == 0 ? call + " prefers it, and others serve where it is full"
                                      : call + " refused: " + detail::message_of(code)});
}

MILLRACE_INLINE void pinned_pool::fail_for_memory(const std::string& said, const char* call,
                                                  int code) const {
  std::string what = "a pinned pool of " + std::to_string(report_.slots) + " slots, " +
                     std::to_string(report_.total_bytes) + " bytes in all";
  ::rlimit limit{};
  if (!said.empty()) {
    what += ", but " + said;
  } else if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    what += ", with RLIMIT_AS at " + std::to_string(limit.rlim_cur);
  }
  throw io_error(what + " (use fewer slots or smaller micro-batches)", call, code);
}

MILLRACE_INLINE std::string pool_report::text() const {
  std::string line = "pinned pool: " + std::to_string(slots) + " slots of " +
                     std::to_string(slot_bytes) + " bytes, " + std::to_string(total_bytes) +
                     " in all, granted " + name_of(granted) + (locked ? ", locked" : "");
  const char* between = " (";
  for (const grant& row : grants) {
    line += between + row.asked + ": " + row.granted + ", " + row.why;
    between = "; ";
  }
  return line + (grants.empty() ? "" : ")");
}

}  // namespace millrace::loader
