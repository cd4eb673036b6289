// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>
#include <iterator>
#include <map>
#include <new>
#include <vector>

namespace millrace::test {

/// The memory of the device and the page-locked memory of the host.
class fake_memory {
 public:
  struct block {
    std::byte* memory;
    std::size_t bytes;
    bool pinned;
    int device;
  };

  fake_memory() = default;
  fake_memory(const fake_memory&) = delete;
  fake_memory& operator=(const fake_memory&) = delete;
  ~fake_memory() {
    for (auto& [address, one] : blocks_) give_back(one.memory);
    for (std::byte* memory : kept_) give_back(memory);
  }

  void* allocate(std::size_t bytes, bool pinned, int device) {
    auto* made = new (std::align_val_t{256}) std::byte[bytes];
    std::memset(made, 0xDB, bytes);
    blocks_[made] = {made, bytes, pinned, device};
    return made;
  }
  /// Returns the block that begins at this address, or null.
  const block* at(const void* memory) const {
    const auto found = blocks_.find(static_cast<const std::byte*>(memory));
    return found == blocks_.end() ? nullptr : &found->second;
  }
  /// Returns the block that contains all of these bytes, or null.
  const block* find(const void* memory, std::size_t bytes) const {
    const auto* first = static_cast<const std::byte*>(memory);
    auto after = blocks_.upper_bound(first);
    if (after == blocks_.begin()) return nullptr;
    const block& found = std::prev(after)->second;
    return first + bytes <= found.memory + found.bytes ? &found : nullptr;
  }
  /// @param in_use  if true, the memory stays readable, so that a test can continue and report the
  ///                misuse
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

}  // namespace millrace::test
