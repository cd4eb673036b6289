// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>
#include <iterator>
#include <map>
#include <new>
#include <vector>

#include <millrace/loader/cuda/detail/batch_work.hpp>

#include "support/fake_cuda/fake_stream.hpp"

namespace millrace::test {

/// The memory of the device and the page-locked memory of the host.
class fake_memory {
 public:
  struct block {
    std::byte* memory;
    std::size_t bytes;
    bool pinned;
  };

  fake_memory() = default;
  fake_memory(const fake_memory&) = delete;
  fake_memory& operator=(const fake_memory&) = delete;
  ~fake_memory() {
    for (auto& [address, one] : blocks_) give_back(one.memory);
    for (std::byte* memory : kept_) give_back(memory);
  }

  void* allocate(std::size_t bytes, bool pinned) {
    auto* made = new (std::align_val_t{256}) std::byte[bytes];
    std::memset(made, 0xDB, bytes);
    blocks_[made] = {made, bytes, pinned};
    return made;
  }
  /// The block that begins here, or null.
  const block* at(const void* memory) const {
    const auto found = blocks_.find(static_cast<const std::byte*>(memory));
    return found == blocks_.end() ? nullptr : &found->second;
  }
  /// The block that contains all of these bytes, or null.
  const block* find(const void* memory, std::size_t bytes) const {
    const auto* first = static_cast<const std::byte*>(memory);
    auto after = blocks_.upper_bound(first);
    if (after == blocks_.begin()) return nullptr;
    const block& found = std::prev(after)->second;
    return first + bytes <= found.memory + found.bytes ? &found : nullptr;
  }
  /// @param in_use  the memory stays readable, so that a test can continue and report the misuse
  void release(const block& which, bool in_use) {
    std::byte* const memory = which.memory;
    blocks_.erase(memory);
    if (in_use) {
      kept_.push_back(memory);
    } else {
      give_back(memory);
    }
  }
  std::size_t size() const { return blocks_.size(); }

 private:
  static void give_back(std::byte* memory) { operator delete[](memory, std::align_val_t{256}); }

  std::map<const std::byte*, block> blocks_;
  std::vector<std::byte*> kept_;
};

/// The memory that the loader's kernel uses for a batch, as far as the host knows it: how many
/// boundaries there are, only the slot itself says.
inline std::vector<used_memory> memory_of(const loader::cuda::batch_work& work) {
  const auto rows = static_cast<std::size_t>(work.rows);
  const auto elements = rows * static_cast<std::size_t>(work.seq_len);
  std::vector<used_memory> uses;
  const auto add = [&](const void* array, std::size_t bytes) {
    if (array != nullptr) uses.push_back({array, bytes});
  };
  add(work.text, rows * static_cast<std::size_t>(work.text_len) * (work.narrow ? 2 : 4));
  add(work.real, 4 * rows);
  add(work.boundary_begin, 4 * (rows + 1));
  add(work.tokens, 8 * elements);
  add(work.labels, 8 * elements);
  add(work.position_ids, 8 * elements);
  add(work.loss_mask, 4 * elements);
  add(work.cu_seqlens, 4);
  return uses;
}

/// The rest of that memory. Reads the slot, so only the kernel itself may call it.
inline std::vector<used_memory> memory_of_boundaries(const loader::cuda::batch_work& work) {
  const auto rows = static_cast<std::size_t>(work.rows);
  const auto count = static_cast<std::size_t>(work.boundary_begin[rows]);
  std::vector<used_memory> uses;
  if (count > 0) uses.push_back({work.boundaries, 4 * count});
  if (work.document_ends != nullptr) uses.push_back({work.document_ends, 4 * count});
  if (work.cu_seqlens != nullptr) uses.push_back({work.cu_seqlens, 4 * (count - rows + 1)});
  return uses;
}

}  // namespace millrace::test
