// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include <millrace/error.hpp>

#include "input/array_lines.hpp"
#include "support/text_source.hpp"

namespace {

using namespace millrace;

// Returns the converted text. If the text is refused, also returns the byte offset of the error.
std::tuple<std::string, std::optional<std::uint64_t>> convert(const std::string& text,
                                                              std::size_t step) {
  preprocess::array_lines lines(std::make_unique<test::text_source>(text, step), "text");
  std::string made;
  std::string part(4096, '\0');
  try {
    while (const std::size_t n = lines.read(std::as_writable_bytes(std::span(part)))) {
      made.append(part, 0, n);
    }
  } catch (const format_error& e) {
    return {made, e.offset()};
  } catch (const config_error&) {  // begins like another format, e.g. UTF-16
    return {made, 0};
  }
  return {made, std::nullopt};
}

}  // namespace

/// The result must not depend on the number of bytes that each read returns. An accepted text keeps
/// its length. If the text is refused, the result has as many bytes as the text before the error.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto whole = convert(text, SIZE_MAX);
  const auto& [made, fault] = whole;
  if (made.size() != fault.value_or(size) || made.size() > size) std::abort();
  for (const std::size_t step : {1U, 7U, 17U}) {
    if (convert(text, step) != whole) std::abort();
  }
  return 0;
}
