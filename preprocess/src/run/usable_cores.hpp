// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>

namespace millrace::preprocess {

/// CPU limit of this process by its control groups, in processors; nothing if there is no limit. It
/// is the minimum of `cpu.max` (version 2) and of `cpu.cfs_quota_us` per `cpu.cfs_period_us`
/// (version 1) over its group and all groups above.
///
/// Files that cannot be read set no limit, because a container may hide its own groups.
///
/// @param root  where `proc` and `sys` are
std::optional<double> control_group_cores(const std::filesystem::path& root = "/");

/// Number of processors that this process can use: those of its affinity mask (taskset, cpusets),
/// limited by its control groups, rounded up. At least 1.
///
/// More threads would only wait for each other, and a group that has used up its quota stops until
/// the next period.
int usable_cores(const std::filesystem::path& root = "/");

}  // namespace millrace::preprocess
