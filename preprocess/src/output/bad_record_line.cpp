// SPDX-License-Identifier: Apache-2.0
#include "output/bad_record_line.hpp"

#include <span>

#include <millrace/formats/detail/hex.hpp>
#include <millrace/formats/detail/json_writer.hpp>
#include <millrace/formats/detail/utf8.hpp>

#include "record/record_parser.hpp"

namespace millrace::preprocess {
namespace {

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = formats::utf8_sequence_bytes(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace

std::string bad_record_line(const bad_record& record) {
  formats::json_writer json;
  json.open('{').key("file").value(record.file).key("line").value(record.line);
  if (record.from != 0) json.key("from_byte").value(record.from);
  json.key(record.has_rows ? "row" : "byte").value(record.begin).key("bytes").value(record.size);
  json.key("fault").value(fault_names[static_cast<std::size_t>(record.fault.kind)]);
  json.key("fault_byte").value(record.fault.offset_bytes).key("reason").value(record.fault.what);
  if (record.raw == nullptr) {
    json.key("raw").null();
  } else if (is_utf8(*record.raw)) {
    json.key("raw").value(*record.raw);
  } else {
    json.key("raw_hex").value(formats::hex(std::as_bytes(std::span(*record.raw))));
  }
  json.close('}');
  return json.text() + "\n";
}

}  // namespace millrace::preprocess
