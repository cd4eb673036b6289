// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>

#include <millrace/loader/detail/memory/available_memory.hpp>

#include "support/paths.hpp"

namespace millrace::test {

/// A folder with files that replace those of /proc and /sys. The test writes these files.
class fake_system {
 public:
  loader::system_files files() const { return {folder_ / "proc", folder_ / "sys"}; }

  /// @param name  e.g. "proc/meminfo" or "sys/devices/..."
  fake_system& put(std::string_view name, std::string_view text) {
    const auto path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    write_text(path, text);
    return *this;
  }

 private:
  temp_folder folder_;
};

}  // namespace millrace::test
