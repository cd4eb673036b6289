// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/io/uring_options.hpp>

#include <cstddef>
#include <string>

#include <millrace/error.hpp>

namespace millrace::loader {

namespace detail {

MILLRACE_INLINE uring_options checked(uring_options options) {
  const auto expect = [](bool is_so, const char* name, std::size_t value, const char* range) {
    if (is_so) return;
    throw config_error(std::string("io_uring: ") + name + " is " + std::to_string(value) +
                       ", expected " + range);
  };
  expect(options.depth >= 8 && options.depth <= 4096, "depth",
         static_cast<std::size_t>(options.depth), "8 to 4096");
  expect(options.slots >= 32 && options.slots <= 65536, "slots",
         static_cast<std::size_t>(options.slots), "32 to 65536");
  expect(options.slot_bytes >= 4096 && options.slot_bytes % 4096 == 0 &&
             options.slot_bytes <= (std::size_t{1} << 24),
         "slot_bytes", options.slot_bytes, "a multiple of 4096, up to 16777216");
  expect(options.most_files >= 1 && options.most_files <= 32768, "most_files",
         static_cast<std::size_t>(options.most_files), "1 to 32768");
  return options;
}

}  // namespace detail

}  // namespace millrace::loader
