// SPDX-License-Identifier: Apache-2.0
#include <millrace/meta/dataset_meta.hpp>

#include <fmt/format.h>

#include <millrace/formats/detail/json_writer.hpp>
#include <millrace/formats/detail/utf8.hpp>

#include "meta_fields.hpp"

namespace millrace::formats {
namespace {

template <class T>
void put(json_writer& json, const char* key, const std::optional<T>& value) {
  json.key(key);
  if (value) {
    json.value(*value);
  } else {
    json.null();
  }
}

void put(json_writer& json, const task_range& tasks) {
  json.open('{').key("first").value(tasks.first).key("last").value(tasks.last);
  json.key("of").value(tasks.of);
  if (tasks.share) {
    const auto& [begin, end, names] = *tasks.share;
    json.key("share").open('{');
    json.key("begin_input").value(begin.input).key("begin_byte").value(begin.byte);
    json.key("end_input").value(end.input).key("end_byte").value(end.byte);
    json.key("names_crc32c").value(fmt::format("{:08x}", names)).close('}');
  }
  json.close('}');
}

void put(json_writer& json, const input_extent& input) {
  json.open('{').key("path").value(input.path);
  if (input.has_rows) json.key("unit").value("rows");
  if (input.begin != 0) json.key("begin").value(input.begin);
  json.key("text_bytes").value(input.text_bytes);
  json.key("crc32c").value(fmt::format("{:08x}", input.crc32c));
  json.key("lines").value(input.lines).close('}');
}

void put(json_writer& json, const meta_counts& counts) {
  json.open('{');
  for (const auto& [name, count] : count_fields) json.key(name).value(counts.*count);
  for (const auto& [name, count] : rare_count_fields) {
    if (counts.*count != 0) json.key(name).value(counts.*count);
  }
  json.key("bad_records").open('{');
  for (const auto& [kind, count] : counts.bad_records) json.key(kind).value(count);
  json.close('}').close('}');
}

// Size of a root in quotes, and of the largest number of tokens.
constexpr std::size_t most_root_bytes = 66;
constexpr std::size_t most_count_bytes = 19;

}  // namespace

std::size_t meta_bytes(const dataset_meta& meta) {
  const bool has_unknown_root = meta.mask && meta.mask->root.empty();
  return to_json(meta).size() + (meta.sum_root ? 0 : most_root_bytes) +
         (has_unknown_root ? most_root_bytes + most_count_bytes : 0);
}

std::string to_json(const dataset_meta& meta) {
  json_writer json;
  json.open('{').key("millrace_meta").value(meta_version);
  json.key("level").value(meta.level).key("key").value(meta.key).key("path").value(meta.path);
  json.key("dtype").value(name(meta.type)).key("append_eod").value(meta.append_eod);
  json.key("on_bad_record").value(meta.on_bad_record).key("options").open('{');
  for (const auto& [name, value] : meta.options) json.key(name).value(value);
  json.close('}').key("tokenizer").open('{').key("type").value(meta.tokenizer.type);
  json.key("fingerprint").value(meta.tokenizer.fingerprint);
  json.key("vocab_size").value(meta.tokenizer.vocab_size);
  put(json, "eod", meta.tokenizer.eod);
  if (!meta.tokenizer.flags.empty()) {
    json.key("flags").open('[');
    for (const std::string& each : meta.tokenizer.flags) json.value(each);
    json.close(']');
  }
  json.close('}');
  put(json, "sum", meta.sum_version);
  put(json, "src", meta.src_version);
  json.key("tasks");
  if (meta.tasks) {
    put(json, *meta.tasks);
  } else {
    json.null();
  }
  json.key("inputs").open('[');
  for (const input_extent& input : meta.inputs) put(json, input);
  json.close(']').key("counts");
  put(json, meta.counts);
  json.key("bin_bytes").value(meta.bin_bytes);
  put(json, "sum_root", meta.sum_root);
  if (meta.mask) {
    json.key("mask").open('{').key("version").value(meta.mask->version);
    json.key("trained").value(meta.mask->trained).key("root").value(meta.mask->root).close('}');
  }
  return json.close('}').text() + '\n';
}

bool is_path_of(std::string_view path, std::string_view name) {
  if (path == name) return true;
  while (!name.empty()) {
    const std::size_t length = utf8_sequence_bytes(name);
    const std::string_view expected = length == 0 ? "\xEF\xBF\xBD" : name.substr(0, length);
    if (!path.starts_with(expected)) return false;
    path.remove_prefix(expected.size());
    name.remove_prefix(length == 0 ? 1 : length);
  }
  return path.empty();
}

}  // namespace millrace::formats
