// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "record/conversation_reader.hpp"
#include "record/exact_json.hpp"
#include "support/conversations.hpp"

/// The input is a line. The JSON of conversations must be exactly what the JSON of texts is, except
/// for texts without UTF-8, deep values and long integers.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace millrace::preprocess;
  static const conversation_options options = millrace::test::plain_conversations();
  static conversation_reader reader(options);
  static exact_json exact({std::string("messages")});
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  const auto is_json_fault = [](const std::optional<record_fault>& fault) {
    return fault &&
           (fault->kind == fault_kind::invalid_utf8 || fault->kind == fault_kind::invalid_json ||
            fault->kind == fault_kind::not_an_object);
  };
  const auto found = reader.read(line);
  const auto expected = exact.parse(line);
  if (is_json_fault(found) != is_json_fault(expected)) std::abort();
  if (found && found->offset_bytes > size) std::abort();
  if (found && found->what.starts_with("JSON") &&
      found->what.find("surrogate") == std::string::npos &&
      found->what.find("nested") == std::string::npos &&
      found->what.find("digits") == std::string::npos) {
    std::abort();
  }
  if (found) return 0;
  std::size_t end = 0;
  for (const auto& span : reader.text().trained) {
    if (span.begin < end || span.begin >= span.end) std::abort();
    end = span.end;
  }
  if (end > reader.text().text.size()) std::abort();
  return 0;
}
