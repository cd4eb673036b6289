// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include <millrace/error.hpp>

namespace millrace::io {

/// A new folder. The destructor removes it with all that is in it; a kill leaves it.
class temporary_folder {
 public:
  /// @param start  the start of its name, which six random characters follow
  /// @throws io_error  it cannot be created.
  temporary_folder(const std::filesystem::path& parent, std::string_view start) {
    std::string name = (parent / start).string() + "XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw io_error(name, "mkdtemp", errno);
    path_ = name;
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;
  ~temporary_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace millrace::io
