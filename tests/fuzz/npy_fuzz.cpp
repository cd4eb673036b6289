// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>

#include <millrace/formats/npy.hpp>

/// If a file is accepted, writing its array and reading it again must give the same type, shape and
/// data. The bytes of the header may differ.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) try {
  using namespace millrace::formats;
  const npy_view read = parse_npy(std::as_bytes(std::span(data, size)));
  const auto file = encode_npy(read.type, read.shape, read.data);
  const npy_view again = parse_npy(file);
  const bool same = again.type == read.type && again.shape == read.shape;
  if (!same || !std::ranges::equal(again.data, read.data)) std::abort();
  return 0;
} catch (const millrace::format_error& e) {
  if (e.offset() > size) std::abort();
  return 0;
}
