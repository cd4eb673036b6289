// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <string_view>

#include <millrace/error.hpp>
#include <millrace/meta/dataset_meta.hpp>

/// If a `.meta` is accepted, writing it and reading it again must keep its meaning.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) try {
  using namespace millrace::formats;
  const dataset_meta read = parse_meta({reinterpret_cast<const char*>(data), size});
  const std::string written = to_json(read);
  const dataset_meta again = parse_meta(written);
  if (!(again == read) || to_json(again) != written) std::abort();
  return 0;
} catch (const millrace::format_error& e) {
  if (e.offset() > size) std::abort();
  return 0;
}
