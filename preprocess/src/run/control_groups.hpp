// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>

namespace millrace::preprocess {

/// Where control groups keep a limit of one kind.
struct control_group_limit {
  /// Reads the limit of one group from its folder; nothing where it has none.
  using reader = std::optional<double> (*)(const std::filesystem::path& group);

  const char* controller;  ///< its name in version 1: "cpu"
  reader version_1;
  reader version_2;
};

/// The least limit of this process's control group and of all groups above it, or nothing where
/// they set none.
///
/// What cannot be read limits nothing: a container may hide the groups it lies in.
///
/// @param root  where `proc` and `sys` are
std::optional<double> least_limit(const control_group_limit& which,
                                  const std::filesystem::path& root);

}  // namespace millrace::preprocess
