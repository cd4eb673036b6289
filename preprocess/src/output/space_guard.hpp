// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "output/committer.hpp"

namespace millrace::preprocess {

/// Finds out early that a disk will be full: once enough of the input is done to foretell the
/// outputs, most of what they will take is set aside. For the committer's thread.
class space_guard {
 public:
  /// @param total_bytes  on disk, of all inputs; 0 where it is not known: then it does nothing
  explicit space_guard(std::uint64_t total_bytes) : total_bytes_(total_bytes) {}

  /// Call it after each commit.
  ///
  /// @param read_bytes  on disk, of what was committed
  /// @throws error  the disk has less than the outputs are going to take.
  void update(committer& committer, std::uint64_t read_bytes);

 private:
  std::uint64_t total_bytes_;
  bool done_ = false;
};

}  // namespace millrace::preprocess
