// SPDX-License-Identifier: Apache-2.0
#include "support/fail_kth_allocation.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace millrace::test {
namespace {

fail_kth_allocation now;
std::atomic<bool> armed{false};
std::atomic<std::int64_t> counted{0};
thread_local int exempt_depth = 0;

bool fails(std::size_t bytes) noexcept {
  if (!armed.load(std::memory_order_acquire) || exempt_depth > 0 || bytes < now.least_bytes) {
    return false;
  }
  const std::int64_t k = ++counted;
  return k >= now.k && k - now.k < now.failures;
}

void* allocate(std::size_t bytes, std::size_t alignment = 1) noexcept {
  if (fails(bytes)) return nullptr;
  const std::size_t size = std::max<std::size_t>(bytes, 1);
  if (alignment <= alignof(std::max_align_t)) return std::malloc(size);
  void* got = nullptr;
  return ::posix_memalign(&got, alignment, size) == 0 ? got : nullptr;
}

void* allocate_or_throw(std::size_t bytes, std::size_t alignment = 1) {
  void* const got = allocate(bytes, alignment);
  if (got == nullptr) throw std::bad_alloc();
  return got;
}

}  // namespace

void arm(const fail_kth_allocation& what) noexcept {
  now = what;
  counted = 0;
  armed.store(true, std::memory_order_release);
}

std::int64_t disarm() noexcept {
  armed = false;
  return counted;
}

exempt_allocations::exempt_allocations() noexcept {
  ++exempt_depth;
}
exempt_allocations::~exempt_allocations() {
  --exempt_depth;
}

}  // namespace millrace::test

using millrace::test::allocate;           // NOLINT: replacements of global functions
using millrace::test::allocate_or_throw;  // NOLINT

// NOLINTBEGIN: as above
void* operator new(std::size_t bytes) {
  return allocate_or_throw(bytes);
}
void* operator new[](std::size_t bytes) {
  return allocate_or_throw(bytes);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return allocate_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate(bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate(bytes);
}
void operator delete(void* p) noexcept {
  std::free(p);
}
void operator delete[](void* p) noexcept {
  std::free(p);
}
void operator delete(void* p, std::size_t) noexcept {
  std::free(p);
}
void operator delete[](void* p, std::size_t) noexcept {
  std::free(p);
}
void operator delete(void* p, std::align_val_t) noexcept {
  std::free(p);
}
void operator delete[](void* p, std::align_val_t) noexcept {
  std::free(p);
}
void operator delete(void* p, std::size_t, std::align_val_t) noexcept {
  std::free(p);
}
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept {
  std::free(p);
}
void operator delete(void* p, const std::nothrow_t&) noexcept {
  std::free(p);
}
void operator delete[](void* p, const std::nothrow_t&) noexcept {
  std::free(p);
}

// The loader allocates the memory of batches with this function.
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  return allocate(bytes, std::max(alignment, 2 * alignof(std::max_align_t)));
}
// NOLINTEND
