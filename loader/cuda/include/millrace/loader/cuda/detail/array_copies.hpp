// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include <millrace/loader/cuda/detail/batch_work.hpp>

/// Copies arrays within the memory of a device.
namespace millrace::loader::cuda {

/// The copy of one array. The addresses and the size are multiples of 4.
struct array_copy {
  void* to = nullptr;
  const void* from = nullptr;
  std::int64_t bytes = 0;
};

/// All copies of a batch. Plain data, passed to the kernel by value.
struct array_copies {
  static constexpr int most = 7;
  array_copy arrays[most];
  int count = 0;

  /// Adds a copy, unless there is nothing to copy.
  void add(void* to, const void* from, std::int64_t bytes) noexcept {
    if (to != nullptr && bytes > 0) arrays[count++] = {to, from, bytes};
  }
};

namespace detail {

/// A word of 16 bytes, which a device reads or writes in one access.
struct alignas(16) [[gnu::may_alias]] wide_word {
  std::uint32_t parts[4];
};
using narrow_word [[gnu::may_alias]] = std::uint32_t;

MILLRACE_HOST_DEVICE inline bool is_wide(const array_copy& copy) {
  const auto bits = reinterpret_cast<std::uintptr_t>(copy.to) |
                    reinterpret_cast<std::uintptr_t>(copy.from) |
                    static_cast<std::uintptr_t>(copy.bytes);
  return bits % sizeof(wide_word) == 0;
}

template <class Word>
MILLRACE_HOST_DEVICE inline void copy_words(const array_copy& copy, std::int64_t me,
                                            std::int64_t all) {
  Word* const __restrict__ to = static_cast<Word*>(copy.to);
  const Word* const __restrict__ from = static_cast<const Word*>(copy.from);
  const auto words = copy.bytes / static_cast<std::int64_t>(sizeof(Word));
  for (std::int64_t i = me; i < words; i += all) to[i] = from[i];
}

}  // namespace detail

/// Copies one thread's share of an array. Adjacent threads copy adjacent words.
///
/// @param me   index of the thread among those that copy the array
/// @param all  number of threads that copy the array
MILLRACE_HOST_DEVICE inline void copy_share(const array_copy& copy, std::int64_t me,
                                            std::int64_t all) {
  if (detail::is_wide(copy)) {
    detail::copy_words<detail::wide_word>(copy, me, all);
  } else {
    detail::copy_words<detail::narrow_word>(copy, me, all);
  }
}

}  // namespace millrace::loader::cuda
