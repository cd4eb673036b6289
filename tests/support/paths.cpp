// SPDX-License-Identifier: Apache-2.0
#include "support/paths.hpp"

namespace millrace::test {

std::filesystem::path source_folder() {
  return MILLRACE_SOURCE_FOLDER;
}
std::filesystem::path build_folder() {
  return MILLRACE_BUILD_FOLDER;
}

}  // namespace millrace::test
