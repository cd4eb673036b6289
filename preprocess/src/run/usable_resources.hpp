// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
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

/// Returns the CPU limit that control groups set for this process, as a number of processors, or
/// nothing if there is no limit. This is the smallest limit of the process's group and of all
/// groups above it. The limit of a group is the quota divided by the period. They are read from
/// `cpu.max` (version 2), or from `cpu.cfs_quota_us` and `cpu.cfs_period_us` (version 1).
///
/// A file that cannot be read sets no limit, because a container may hide its own groups.
///
/// @param root  the folder that contains `proc` and `sys`
std::optional<double> control_group_cores(const std::filesystem::path& root = "/");

/// Returns the number of processors that this process can use, at least 1. This is the number of
/// processors in its affinity mask (taskset, cpusets) or the limit of its control groups, rounded
/// up, whichever is smaller.
///
/// More threads would only wait for each other. Also, when the threads of a control group have used
/// up its quota, they all stop until the next period.
int usable_cores(const std::filesystem::path& root = "/");

/// Returns the memory that this process can use, in bytes: the memory of the machine (`MemTotal`),
/// limited by the process's control groups (`memory.max`, or `memory.limit_in_bytes` in version 1).
/// Returns nothing if neither limit can be read.
///
/// @param root  the folder that contains `proc` and `sys`
std::optional<std::uint64_t> usable_memory(const std::filesystem::path& root = "/");

/// Returns the default of `--zstd-memory` in bytes. This is the largest window that libzstd
/// decompresses, but at most 3/4 of this process's share of the usable memory, because a run also
/// needs memory for other purposes, such as its tokenizer. The result is never less than
/// least_zstd_window_bytes.
///
/// @param processes  number of processes that share the memory; each has its own window
std::uint64_t default_zstd_window_bytes(int processes = 1, const std::filesystem::path& root = "/");

}  // namespace millrace::preprocess
