// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include <millrace/formats/src.hpp>

#include "support/encode_sidecars.hpp"

/// If all groups of a file are valid, the file must equal the file that the library writes for the
/// same contents.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) try {
  using namespace millrace::formats;
  const auto file = std::as_bytes(std::span(data, size));
  const src_view view = parse_src(file);
  std::vector<source_place> places;
  src_cursor cursor(view);
  for (auto group = cursor.next(); !group.empty(); group = cursor.next()) {
    places.insert(places.end(), group.begin(), group.end());
    if (!(view.at(places.size() - 1) == places.back())) std::abort();
  }
  if (!std::ranges::equal(millrace::test::encode_src(places, view.inputs()), file)) std::abort();
  return 0;
} catch (const millrace::format_error& e) {
  if (e.offset() > size) std::abort();
  return 0;
}
