// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include <millrace/error.hpp>

#include "meta/dataset_meta.hpp"
#include "meta/json_entries.hpp"
#include "meta/meta_fields.hpp"

namespace millrace::preprocess {
namespace {

using tokenizer::detail::json_document;
using tokenizer::detail::json_value;

constexpr std::int64_t most_integer = std::numeric_limits<std::int64_t>::max();

std::string text(const json_value& value, const char* name) {
  return std::string(value.string(name));
}

std::optional<std::int64_t> number_or_null(const json_value& value, const char* name) {
  if (value.is_null()) return std::nullopt;
  return value.integer(name, most_integer);
}

bool is_hex(std::string_view digits, std::size_t size) {
  return digits.size() == size && std::ranges::all_of(digits, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

formats::dtype parse_dtype(const json_value& value) {
  const std::string_view found = value.string("\"dtype\"");
  for (std::uint8_t code = 1; code <= 8; ++code) {
    const auto type = formats::dtype_from_code(code);
    if (type && formats::name(*type) == found) return *type;
  }
  value.fail("\"dtype\" is none of the eight, such as \"uint16\"");
}

tokenizer_identity parse_tokenizer(const json_value& value) {
  json_entries in(value, "\"tokenizer\"");
  tokenizer_identity identity;
  identity.type = text(in.at("type"), "\"type\"");
  identity.fingerprint = text(in.at("fingerprint"), "\"fingerprint\"");
  identity.vocab_size = in.at("vocab_size").integer("\"vocab_size\"", most_integer);
  const json_value eod = in.at("eod");
  identity.eod = number_or_null(eod, "\"eod\"");
  if (identity.eod && *identity.eod >= identity.vocab_size) {
    eod.fail(fmt::format("\"eod\" is {}, but the vocabulary has {} ids", *identity.eod,
                         identity.vocab_size));
  }
  in.finish();
  return identity;
}

std::uint32_t parse_crc(const json_value& value, const char* name) {
  const std::string_view digits = value.string(name);
  if (!is_hex(digits, 8)) {
    value.fail(fmt::format("{} is not 8 lower-case hexadecimal digits", name));
  }
  std::uint32_t crc = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), crc, 16);
  return crc;
}

share_bounds parse_share(const json_value& value) {
  json_entries in(value, "\"share\"");
  const auto number = [&](const char* name) {
    return static_cast<std::uint64_t>(in.at(name).integer(name, most_integer));
  };
  share_bounds share;
  share.begin = {number("begin_input"), number("begin_byte")};
  share.end = {number("end_input"), number("end_byte")};
  share.names_crc32c = parse_crc(in.at("names_crc32c"), "\"names_crc32c\"");
  in.finish();
  const auto& [begin, end, names] = share;
  if (begin.input > end.input || (begin.input == end.input && begin.byte > end.byte)) {
    value.fail(
        fmt::format("\"share\" begins at byte {} of input {}, and ends at byte {} of input {}",
                    begin.byte, begin.input, end.byte, end.input));
  }
  return share;
}

task_range parse_tasks(const json_value& value) {
  json_entries in(value, "\"tasks\"");
  task_range tasks;
  tasks.first = in.at("first").integer("\"first\"", most_integer);
  tasks.last = in.at("last").integer("\"last\"", most_integer);
  tasks.of = in.at("of").integer("\"of\"", most_integer);
  if (const auto share = in.find("share")) tasks.share = parse_share(*share);
  in.finish();
  if (tasks.first > tasks.last || tasks.last >= tasks.of) {
    value.fail(fmt::format("\"tasks\" are {} to {} of {}, expected 0 <= first <= last < of",
                           tasks.first, tasks.last, tasks.of));
  }
  if (tasks.first == 0 && tasks.last == tasks.of - 1) {
    value.fail("\"tasks\" are all there are, expected null for a whole");
  }
  return tasks;
}

input_extent parse_extent(const json_value& value) {
  json_entries in(value, "an input");
  input_extent input;
  input.path = text(in.at("path"), "\"path\"");
  if (const auto begin = in.find("begin")) {
    input.begin = static_cast<std::uint64_t>(begin->integer("\"begin\"", most_integer));
    if (input.begin == 0) begin->fail("\"begin\" is 0, expected no entry for that");
  }
  const json_value bytes = in.at("text_bytes");
  input.text_bytes = static_cast<std::uint64_t>(bytes.integer("\"text_bytes\"", most_integer));
  if (input.text_bytes > static_cast<std::uint64_t>(most_integer) - input.begin) {
    bytes.fail("an input ends beyond 2^63 - 1");
  }
  input.crc32c = parse_crc(in.at("crc32c"), "\"crc32c\"");
  input.lines = in.at("lines").integer("\"lines\"", most_integer);
  in.finish();
  return input;
}

std::vector<input_extent> parse_inputs(const json_value& value, bool from_the_start) {
  std::vector<input_extent> inputs;
  for (const auto element : value.array("\"inputs\"")) {
    const json_value entry(value, element, inputs.size());
    inputs.push_back(parse_extent(entry));
    if (inputs.back().begin != 0 && (inputs.size() > 1 || from_the_start)) {
      entry.fail(from_the_start ? "an input begins in the middle, though no task is before it"
                                : "an input begins in the middle, though another is before it");
    }
  }
  return inputs;
}

meta_counts parse_counts(const json_value& value) {
  json_entries in(value, "\"counts\"");
  meta_counts counts;
  for (const auto& [name, count] : count_fields)
    counts.*count = in.at(name).integer(name, most_integer);
  const json_value kinds = in.at("bad_records");
  for (const auto& [kind, count] : json_entries(kinds, "\"bad_records\"").all()) {
    counts.bad_records.emplace_back(kind, count.integer("a count of bad records", most_integer));
  }
  in.finish();
  return counts;
}

std::vector<std::pair<std::string, std::string>> parse_options(const json_value& value) {
  std::vector<std::pair<std::string, std::string>> options;
  for (const auto& [name, option] : json_entries(value, "\"options\"").all()) {
    options.emplace_back(name, text(option, "an option"));
  }
  return options;
}

void check(const dataset_meta& meta, const json_value& root) {
  const std::uint64_t size = formats::size_bytes(meta.type);
  if (meta.bin_bytes / size != static_cast<std::uint64_t>(meta.counts.tokens) ||
      meta.bin_bytes % size != 0) {
    root.at("bin_bytes")
        .fail(fmt::format("\"bin_bytes\" is {}, but {} tokens have {} bytes each", meta.bin_bytes,
                          meta.counts.tokens, size));
  }
  if (meta.sum_version.has_value() != meta.sum_root.has_value()) {
    root.fail("expected \"sum\" and \"sum_root\" both, or both null");
  }
}

}  // namespace

dataset_meta parse_meta(std::string_view json) {
  const json_document document(json);
  const json_value root(document);
  json_entries in(root, "the meta");
  const json_value version = in.at("millrace_meta");
  if (version.integer("\"millrace_meta\"", most_integer) != meta_version) {
    version.fail(fmt::format("expected .meta version 1, found {}",
                             version.integer("\"millrace_meta\"", most_integer)));
  }
  dataset_meta meta;
  const json_value level = in.at("level");
  meta.level = text(level, "\"level\"");
  if (meta.level != "document" && meta.level != "sentence") {
    level.fail("\"level\" is neither \"document\" nor \"sentence\"");
  }
  meta.key = text(in.at("key"), "\"key\"");
  meta.path = text(in.at("path"), "\"path\"");
  meta.type = parse_dtype(in.at("dtype"));
  meta.append_eod = in.at("append_eod").boolean("\"append_eod\"");
  meta.on_bad_record = text(in.at("on_bad_record"), "\"on_bad_record\"");
  meta.options = parse_options(in.at("options"));
  meta.tokenizer = parse_tokenizer(in.at("tokenizer"));
  meta.sum_version = number_or_null(in.at("sum"), "\"sum\"");
  meta.src_version = number_or_null(in.at("src"), "\"src\"");
  const json_value tasks = in.at("tasks");
  if (!tasks.is_null()) meta.tasks = parse_tasks(tasks);
  meta.inputs = parse_inputs(in.at("inputs"), !meta.tasks || meta.tasks->first == 0);
  meta.counts = parse_counts(in.at("counts"));
  meta.bin_bytes =
      static_cast<std::uint64_t>(in.at("bin_bytes").integer("\"bin_bytes\"", most_integer));
  const json_value sum_root = in.at("sum_root");
  if (!sum_root.is_null()) {
    meta.sum_root = text(sum_root, "\"sum_root\"");
    if (!is_hex(*meta.sum_root, 64)) {
      sum_root.fail("\"sum_root\" is not 64 lower-case hexadecimal digits");
    }
  }
  in.finish();
  check(meta, root);
  return meta;
}

}  // namespace millrace::preprocess
