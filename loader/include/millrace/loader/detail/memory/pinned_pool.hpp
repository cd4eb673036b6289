// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <millrace/detail/export.hpp>
#include <millrace/loader/detail/memory/grant.hpp>
#include <millrace/loader/detail/memory/memory_kind.hpp>
#include <millrace/loader/detail/memory/slab.hpp>

namespace millrace::loader {

/// Options of a `pinned_pool`.
struct pool_options {
  std::size_t slots = 4;
  std::size_t slot_bytes = 0;  ///< size of a slot, at least 1

  /// Alignment of every slot: a power of two, at least 64. 4096 is enough for direct reads
  /// (O_DIRECT, registered buffers) on every device.
  std::size_t alignment = 4096;

  /// Upper bound on the total size of the aligned slots.
  std::size_t budget_bytes = std::size_t{256} << 20;

  /// The first kind of memory to try; better kinds are skipped.
  memory_kind best = memory_kind::cuda;

  pinned_memory_hook cuda = {};  ///< allocates CUDA memory; empty: CUDA is not used

  /// Preferred NUMA node of the memory; -1: the calling thread's memory policy decides.
  int node = -1;

  system_files files = {};
};

/// Describes the memory that a pool got, and why it did not get a better kind.
struct MILLRACE_EXPORT pool_report {
  memory_kind granted = memory_kind::plain;
  bool locked = false;  ///< cannot be swapped out: cuda, hugetlb, or mlock succeeded
  std::size_t slots = 0;
  std::size_t slot_bytes = 0;  ///< distance from the start of a slot to the next
  std::size_t total_bytes = 0;
  std::uint64_t huge_bytes = 0;  ///< part of `total_bytes` that is in huge pages
  std::vector<grant> grants;     ///< one row per kind, in the order in which the kinds were tried

  /// The report on one line: "pinned pool: 4 slots of 69632 bytes, 278528 in all, granted mlock
  /// (...)".
  std::string text() const;
};

/// Host memory for batches in flight: one slab, allocated and touched once, divided into slots.
///
/// The pool tries the kinds of `memory_kind` in order and takes the first kind that the machine
/// grants. If a limit forbids a kind, that is not an error: a row of the report says so. Only a
/// lack of memory is an error. Every kind works with O_DIRECT and io_uring. Transparent huge pages
/// are also locked if the system allows it.
///
/// The slot ring decides who uses which slot. All members may be called from any thread. The pool's
/// destructor frees the slots, so the pool must outlive all copies from its slots and all reads
/// into them. Slots are not cleared between uses. Initially they are zero, except in memory from
/// CUDA.
class MILLRACE_EXPORT pinned_pool {
 public:
  /// @throws config_error  the options contradict each other, or the slots exceed the budget; the
  ///                       message gives the numbers
  /// @throws io_error      (ENOMEM) the machine, the control group or the address space (RLIMIT_AS)
  ///                       lacks the memory; the message gives the numbers
  explicit pinned_pool(const pool_options& options);
  pinned_pool(const pinned_pool&) = delete;
  pinned_pool& operator=(const pinned_pool&) = delete;

  std::size_t slots() const noexcept { return report_.slots; }

  /// The memory of slot i: exactly the requested `slot_bytes`.
  /// @pre i < slots()
  std::span<std::byte> slot(std::size_t i) const noexcept {
    return slab_.bytes.subspan(i * report_.slot_bytes, slot_bytes_);
  }

  /// All slots and the padding between them, for registration with io_uring.
  std::span<std::byte> bytes() const noexcept { return slab_.bytes.first(report_.total_bytes); }

  /// The granted kind of memory. Only with `cuda`, copies to a device do not block the calling
  /// thread.
  memory_kind kind() const noexcept { return report_.granted; }

  const pool_report& report() const noexcept { return report_; }

 private:
  void refuse_nonsense(const pool_options& options) const;
  void take(const pool_options& options);
  bool take_cuda(const pool_options& options);
  bool take_hugetlb(const pool_options& options);
  void take_anonymous(const pool_options& options);
  void place(const pool_options& options);
  void add_node(int node, int code, const std::string& call);
  [[noreturn]] void fail_for_memory(const std::string& said, const char* call, int code) const;
  void add(memory_kind kind, bool granted, std::string why) {
    report_.grants.push_back({name_of(kind), granted ? "yes" : "no", std::move(why)});
  }

  std::size_t slot_bytes_;
  detail::slab slab_;
  pool_report report_;
};

}  // namespace millrace::loader
