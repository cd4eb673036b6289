// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>

namespace millrace::preprocess {

/// Processors' worth of time that the control groups of this process give it, or nothing where
/// they set no limit: the least of `cpu.max` (version 2) and of `cpu.cfs_quota_us` per
/// `cpu.cfs_period_us` (version 1) over its group and all groups above.
///
/// What cannot be read limits nothing: a container may hide the groups it lies in.
///
/// @param root  where `proc` and `sys` are
std::optional<double> control_group_cores(const std::filesystem::path& root = "/");

/// Processors that this process may keep busy: those of its affinity mask (taskset, cpusets), and
/// no more than its control groups pay for, rounded up. At least 1.
///
/// More threads than that would only wait for each other, and a group that used up its quota
/// stands still until the next period.
int usable_cores(const std::filesystem::path& root = "/");

}  // namespace millrace::preprocess
