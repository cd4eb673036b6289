// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>

#include <millrace/formats/detail/mmidx_verify.hpp>

/// If a file passes the full check, it must equal the file that the library writes for the same
/// contents.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) try {
  using namespace millrace::formats;
  const auto file = std::as_bytes(std::span(data, size));
  const mmidx_view idx = parse_mmidx(file);
  verify_mmidx(idx, idx.bin_size_bytes);
  const auto again = encode_mmidx(idx.type, idx.lengths.to_vector(), idx.document_index.to_vector(),
                                  idx.modes.to_vector());
  if (!std::ranges::equal(again, file)) std::abort();
  return 0;
} catch (const millrace::format_error& e) {
  if (e.offset() > size) std::abort();
  return 0;
}
