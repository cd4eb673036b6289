// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/verify/verify_options.hpp>

#include <string>

#include <millrace/error.hpp>

namespace millrace::loader {

MILLRACE_INLINE const verify_options& check(const verify_options& options) {
  const auto refuse = [](const std::string& what) { throw config_error(what); };
  if (options.vocab_size < 0) {
    refuse("vocab_size is " + std::to_string(options.vocab_size) +
           ", expected the number of ids, or 0 to skip the check");
  }
  if (options.scrub_parts < 1 || options.scrub_part < 0 ||
      options.scrub_part >= options.scrub_parts) {
    refuse("scrub_part is " + std::to_string(options.scrub_part) + " of scrub_parts " +
           std::to_string(options.scrub_parts) + ", expected 0 to scrub_parts - 1");
  }
  return options;
}

}  // namespace millrace::loader
