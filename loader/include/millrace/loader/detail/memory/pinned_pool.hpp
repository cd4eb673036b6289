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

/// What is asked of a pool.
struct pool_options {
  std::size_t slots = 4;
  std::size_t slot_bytes = 0;  ///< of each, at least 1

  /// Of the first byte of every slot, a power of two of at least 64. 4096 is what direct reads
  /// (O_DIRECT, registered buffers) of every device want.
  std::size_t alignment = 4096;

  /// The most that the slots, aligned, may take in all.
  std::size_t budget_bytes = std::size_t{256} << 20;

  /// The best kind that is tried; those before it are not.
  memory_kind best = memory_kind::cuda;

  pinned_memory_hook cuda = {};  ///< how CUDA's memory is had; empty: it is not

  /// NUMA node to take the memory from where it can be; -1: where the calling thread's comes from.
  int node = -1;

  system_files files = {};
};

/// What a pool got, and why nothing better.
struct MILLRACE_EXPORT pool_report {
  memory_kind granted = memory_kind::plain;
  bool locked = false;  ///< it stays in memory: cuda, hugetlb, or mlock took it
  std::size_t slots = 0;
  std::size_t slot_bytes = 0;  ///< from one slot to the next
  std::size_t total_bytes = 0;
  std::uint64_t huge_bytes = 0;  ///< of those in huge pages
  std::vector<grant> grants;     ///< a row for each kind, in the order they were tried

  /// One line: "pinned pool: 4 slots of 69632 bytes, 278528 in all, granted mlock (...)".
  std::string text() const;
};

/// Host memory for batches on their way: one slab, taken and touched once, carved into slots.
///
/// The kinds of `memory_kind` are tried in their order, and the first that the machine grants is
/// taken. A limit that forbids one is no failure but a row of the report; only memory that is not
/// there is. Every kind serves O_DIRECT and io_uring. Transparent huge pages are locked as well,
/// where that is allowed.
///
/// Who may use which slot when is the ring's matter, not the pool's. Any thread may ask; the slots
/// end with the pool, which must outlive the copies and reads into them. Their bytes are not
/// cleared between uses, and begin as zeros but for CUDA's.
class MILLRACE_EXPORT pinned_pool {
 public:
  /// @throws config_error  the options contradict themselves, or the budget does not hold the
  ///                       slots: with the numbers
  /// @throws io_error      (ENOMEM) the machine, the control group or the address space
  ///                       (RLIMIT_AS) has no such memory: with the numbers
  explicit pinned_pool(const pool_options& options);
  pinned_pool(const pinned_pool&) = delete;
  pinned_pool& operator=(const pinned_pool&) = delete;

  std::size_t slots() const noexcept { return report_.slots; }

  /// The bytes of slot i: exactly `slot_bytes` as asked.
  /// @pre i < slots()
  std::span<std::byte> slot(std::size_t i) const noexcept {
    return slab_.bytes.subspan(i * report_.slot_bytes, slot_bytes_);
  }

  /// All slots and what lies between them: what io_uring registers.
  std::span<std::byte> bytes() const noexcept { return slab_.bytes.first(report_.total_bytes); }

  /// Whether CUDA can copy from it without a stop.
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
