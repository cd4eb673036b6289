// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include <millrace/error.hpp>
#include <millrace/formats/detail/json.hpp>
#include <millrace/meta/dataset_meta.hpp>

#include "json_entries.hpp"
#include "meta_fields.hpp"

namespace millrace::formats {
namespace {

std::optional<std::int64_t> number_or_null(const json_value& value, const char* name) {
  if (value.is_null()) return std::nullopt;
  return count_of(value, name);
}

bool is_hex(std::string_view digits, std::size_t size) {
  return digits.size() == size && std::ranges::all_of(digits, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

dtype parse_dtype(const json_value& value) {
  const std::string& found = string_of(value, "\"dtype\"");
  for (std::uint8_t code = 1; code <= 8; ++code) {
    const auto type = dtype_from_code(code);
    if (type && name(*type) == found) return *type;
  }
  fail_at(value, "\"dtype\" is not one of the eight known types, such as \"uint16\"");
}

tokenizer_identity parse_tokenizer(const json_value& value) {
  json_entries in(value, "\"tokenizer\"");
  tokenizer_identity identity;
  identity.type = string_of(in.at("type"), "\"type\"");
  identity.fingerprint = string_of(in.at("fingerprint"), "\"fingerprint\"");
  identity.vocab_size = count_of(in.at("vocab_size"), "\"vocab_size\"");
  const json_value& eod = in.at("eod");
  identity.eod = number_or_null(eod, "\"eod\"");
  if (identity.eod && *identity.eod >= identity.vocab_size) {
    fail_at(eod, fmt::format("\"eod\" is {}, but the vocabulary has {} ids", *identity.eod,
                             identity.vocab_size));
  }
  if (const auto* flags = in.find("flags")) {
    for (const json_value& each : array_of(*flags, "\"flags\"")) {
      identity.flags.push_back(string_of(each, "a flag of the tokenizer"));
    }
    if (identity.flags.empty()) {
      fail_at(*flags, "\"flags\" is empty; expected this entry only if there are flags");
    }
  }
  in.finish();
  return identity;
}

std::uint32_t parse_crc(const json_value& value, const char* name) {
  const std::string& digits = string_of(value, name);
  if (!is_hex(digits, 8)) {
    fail_at(value, fmt::format("{} is not 8 lowercase hexadecimal digits", name));
  }
  std::uint32_t crc = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), crc, 16);
  return crc;
}

share_bounds parse_share(const json_value& value) {
  json_entries in(value, "\"share\"");
  const auto number = [&](const char* name) {
    return static_cast<std::uint64_t>(count_of(in.at(name), name));
  };
  share_bounds share;
  share.begin = {number("begin_input"), number("begin_byte")};
  share.end = {number("end_input"), number("end_byte")};
  share.names_crc32c = parse_crc(in.at("names_crc32c"), "\"names_crc32c\"");
  in.finish();
  const auto& [begin, end, names] = share;
  if (begin.input > end.input || (begin.input == end.input && begin.byte > end.byte)) {
    fail_at(value,
            fmt::format("\"share\" begins at byte {} of input {}, and ends at byte {} of input {}",
                        begin.byte, begin.input, end.byte, end.input));
  }
  return share;
}

task_range parse_tasks(const json_value& value) {
  json_entries in(value, "\"tasks\"");
  task_range tasks;
  tasks.first = count_of(in.at("first"), "\"first\"");
  tasks.last = count_of(in.at("last"), "\"last\"");
  tasks.of = count_of(in.at("of"), "\"of\"");
  if (const auto* share = in.find("share")) tasks.share = parse_share(*share);
  in.finish();
  if (tasks.first > tasks.last || tasks.last >= tasks.of) {
    fail_at(value, fmt::format("\"tasks\" is {} to {} of {}, expected 0 <= first <= last < of",
                               tasks.first, tasks.last, tasks.of));
  }
  if (tasks.first == 0 && tasks.last == tasks.of - 1) {
    fail_at(value, "\"tasks\" covers all tasks, expected null for a complete dataset");
  }
  return tasks;
}

input_extent parse_extent(const json_value& value) {
  json_entries in(value, "an input");
  input_extent input;
  input.path = string_of(in.at("path"), "\"path\"");
  if (const auto* unit = in.find("unit")) {
    if (string_of(*unit, "\"unit\"") != "rows") {
      fail_at(*unit, "\"unit\" of an input is not \"rows\"; expected no entry for bytes");
    }
    input.has_rows = true;
  }
  if (const auto* begin = in.find("begin")) {
    input.begin = static_cast<std::uint64_t>(count_of(*begin, "\"begin\""));
    if (input.begin == 0) {
      fail_at(*begin, "\"begin\" is 0; expected this entry only if it is above 0");
    }
  }
  const json_value& bytes = in.at("text_bytes");
  input.text_bytes = static_cast<std::uint64_t>(count_of(bytes, "\"text_bytes\""));
  input.crc32c = parse_crc(in.at("crc32c"), "\"crc32c\"");
  input.lines = count_of(in.at("lines"), "\"lines\"");
  in.finish();
  if (input.end() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    fail_at(bytes, fmt::format("an input ends at {} {}, expected at most 2^63 - 1",
                               input.has_rows ? "row" : "byte", input.end()));
  }
  return input;
}

std::vector<input_extent> parse_inputs(const json_value& value, bool from_the_start) {
  std::vector<input_extent> inputs;
  for (const json_value& entry : array_of(value, "\"inputs\"")) {
    inputs.push_back(parse_extent(entry));
    if (inputs.back().begin != 0 && (inputs.size() > 1 || from_the_start)) {
      fail_at(entry, from_the_start ? "an input begins in the middle, but there is no earlier task"
                                    : "an input begins in the middle, but it is not the first");
    }
  }
  return inputs;
}

meta_counts parse_counts(const json_value& value) {
  json_entries in(value, "\"counts\"");
  meta_counts counts;
  for (const auto& [name, count] : count_fields) counts.*count = count_of(in.at(name), name);
  for (const auto& [name, count] : rare_count_fields) {
    if (const auto* found = in.find(name)) counts.*count = count_of(*found, name);
  }
  const json_value& kinds = in.at("bad_records");
  for (const auto& [kind, count] : value_of<json_object>(kinds, "\"bad_records\"", "an object")) {
    counts.bad_records.emplace_back(kind, count_of(count, "a count of bad records"));
  }
  in.finish();
  return counts;
}

std::vector<std::pair<std::string, std::string>> parse_options(const json_value& value) {
  std::vector<std::pair<std::string, std::string>> options;
  for (const auto& [name, option] : value_of<json_object>(value, "\"options\"", "an object")) {
    options.emplace_back(name, string_of(option, "an option"));
  }
  return options;
}

mask_identity parse_mask_identity(const json_value& value, std::int64_t tokens) {
  json_entries in(value, "\"mask\"");
  mask_identity mask;
  mask.version = count_of(in.at("version"), "\"version\"");
  const json_value& trained = in.at("trained");
  mask.trained = count_of(trained, "\"trained\"");
  if (mask.trained > tokens) {
    fail_at(trained,
            fmt::format("\"trained\" is {}, but there are {} tokens", mask.trained, tokens));
  }
  const json_value& root = in.at("root");
  mask.root = string_of(root, "\"root\"");
  if (!is_hex(mask.root, 64)) {
    fail_at(root, "\"root\" of the mask is not 64 lowercase hexadecimal digits");
  }
  in.finish();
  return mask;
}

void check(const dataset_meta& meta, const json_value& root) {
  const std::uint64_t size = size_bytes(meta.type);
  if (meta.bin_bytes / size != static_cast<std::uint64_t>(meta.counts.tokens) ||
      meta.bin_bytes % size != 0) {
    fail_at(*root.find("bin_bytes"),
            fmt::format("\"bin_bytes\" is {}, but there are {} tokens of {} bytes each",
                        meta.bin_bytes, meta.counts.tokens, size));
  }
  if (meta.sum_version.has_value() != meta.sum_root.has_value()) {
    fail_at(root, "expected both \"sum\" and \"sum_root\", or null for both");
  }
}

}  // namespace

dataset_meta parse_meta(std::string_view json) {
  if (json.empty()) throw format_error(0, "the file is empty, expected a JSON object");
  const json_value root = parse_json(json);
  json_entries in(root, "the .meta");
  const json_value& version = in.at("millrace_meta");
  if (count_of(version, "\"millrace_meta\"") != meta_version) {
    fail_at(version, fmt::format("expected .meta version 1, found {}",
                                 count_of(version, "\"millrace_meta\"")));
  }
  dataset_meta meta;
  const json_value& level = in.at("level");
  meta.level = string_of(level, "\"level\"");
  if (meta.level != "document" && meta.level != "sentence") {
    fail_at(level, "\"level\" is neither \"document\" nor \"sentence\"");
  }
  meta.key = string_of(in.at("key"), "\"key\"");
  meta.path = string_of(in.at("path"), "\"path\"");
  meta.type = parse_dtype(in.at("dtype"));
  meta.append_eod = bool_of(in.at("append_eod"), "\"append_eod\"");
  meta.on_bad_record = string_of(in.at("on_bad_record"), "\"on_bad_record\"");
  meta.options = parse_options(in.at("options"));
  meta.tokenizer = parse_tokenizer(in.at("tokenizer"));
  meta.sum_version = number_or_null(in.at("sum"), "\"sum\"");
  meta.src_version = number_or_null(in.at("src"), "\"src\"");
  const json_value& tasks = in.at("tasks");
  if (!tasks.is_null()) meta.tasks = parse_tasks(tasks);
  meta.inputs = parse_inputs(in.at("inputs"), !meta.tasks || meta.tasks->first == 0);
  meta.counts = parse_counts(in.at("counts"));
  meta.bin_bytes = static_cast<std::uint64_t>(count_of(in.at("bin_bytes"), "\"bin_bytes\""));
  const json_value& sum_root = in.at("sum_root");
  if (!sum_root.is_null()) {
    meta.sum_root = string_of(sum_root, "\"sum_root\"");
    if (!is_hex(*meta.sum_root, 64)) {
      fail_at(sum_root, "\"sum_root\" is not 64 lowercase hexadecimal digits");
    }
  }
  if (const auto* mask = in.find("mask")) {
    meta.mask = parse_mask_identity(*mask, meta.counts.tokens);
  }
  in.finish();
  check(meta, root);
  return meta;
}

}  // namespace millrace::formats
