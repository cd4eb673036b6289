// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>

namespace millrace::preprocess {

/// Describes how to read one kind of control group (cgroup) limit.
struct control_group_limit {
  /// Reads the limit of one group from its folder. Returns nothing if the group has no limit.
  using reader = std::optional<double> (*)(const std::filesystem::path& group);

  const char* controller;  ///< name of the controller in version 1, such as "cpu"
  reader version_1;
  reader version_2;
};

/// Returns the smallest limit of this process's control group and of all groups above it, or
/// nothing if there is no limit.
///
/// A file that cannot be read sets no limit, because a container may hide its own groups.
///
/// @param root  the folder that contains `proc` and `sys`
std::optional<double> least_limit(const control_group_limit& which,
                                  const std::filesystem::path& root);

}  // namespace millrace::preprocess
