// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>

namespace millrace::preprocess {

/// How to read one kind of control group limit.
struct control_group_limit {
  /// Reads the limit of one group from its folder; nothing if it has none.
  using reader = std::optional<double> (*)(const std::filesystem::path& group);

  const char* controller;  ///< its name in version 1: "cpu"
  reader version_1;
  reader version_2;
};

/// The smallest limit of this process's control group and of all groups above it; nothing if there
/// is none.
///
/// Files that cannot be read set no limit, because a container may hide its own groups.
///
/// @param root  where `proc` and `sys` are
std::optional<double> least_limit(const control_group_limit& which,
                                  const std::filesystem::path& root);

}  // namespace millrace::preprocess
