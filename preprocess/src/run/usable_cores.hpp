// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>

namespace millrace::preprocess {

/// Returns the CPU limit that control groups set for this process, in processors, or nothing if
/// there is no limit. It is the smallest limit of the process's group and of all groups above it.
/// The limit of a group is `cpu.max` (version 2), or `cpu.cfs_quota_us` divided by
/// `cpu.cfs_period_us` (version 1).
///
/// A file that cannot be read sets no limit, because a container may hide its own groups.
///
/// @param root  the folder that contains `proc` and `sys`
std::optional<double> control_group_cores(const std::filesystem::path& root = "/");

/// Returns the number of processors that this process can use, at least 1. These are the processors
/// in its affinity mask (taskset, cpusets), up to the limit of its control groups, rounded up.
///
/// More threads than that would only wait for each other. Also, when a control group has used up
/// its quota, all its threads stop until the next period.
int usable_cores(const std::filesystem::path& root = "/");

}  // namespace millrace::preprocess
