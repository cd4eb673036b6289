// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/io/reader_report.hpp>

#include <string>

namespace millrace::loader {

MILLRACE_INLINE std::string line(const reader_report& r) {
  std::string text = "reads by " + r.granted + " (requested: " + r.asked + ", " + r.why + ")";
  for (const grant& g : r.grants) text += "; " + g.asked + ": " + g.granted + " (" + g.why + ")";
  return text + "; " + std::to_string(r.gathers) + " gathers of " + std::to_string(r.requests) +
         " requests, " + std::to_string(r.bytes) + " bytes, " + std::to_string(r.bytes_read) +
         " read, " + std::to_string(r.retries) + " retries; " + std::to_string(r.open_files) +
         " files open, at most " + std::to_string(r.most_open_files) + ", " +
         std::to_string(r.maps) + " maps";
}

}  // namespace millrace::loader
