// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace millrace::loader {

/// A request to the system, and its result.
struct grant {
  std::string asked;    ///< e.g. "huge pages for web_text_document.bin", "O_DIRECT"
  std::string granted;  ///< e.g. "yes", "no", "4 of 8 GiB"
  std::string why;      ///< the reason for a refusal or for the choice; never empty
};

}  // namespace millrace::loader
