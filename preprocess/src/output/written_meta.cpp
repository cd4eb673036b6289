// SPDX-License-Identifier: Apache-2.0
#include "output/written_meta.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <millrace/error.hpp>
#include <millrace/io/file_mapping.hpp>

#include "input/line_ends.hpp"
#include "output/dataset_paths.hpp"
#include "record/record_parser.hpp"

namespace millrace::preprocess {

std::string stop_text(bool has_rows, std::uint64_t offset, const std::string& path) {
  return fmt::format("{} {} of {}", has_rows ? "row" : "byte", offset, path);
}

const std::string* option_of(const formats::dataset_meta& meta, std::string_view name) {
  const auto at =
      std::ranges::find(meta.options, name, [](const auto& each) { return each.first; });
  return at == meta.options.end() ? nullptr : &at->second;
}

void drop_option(formats::dataset_meta& meta, std::string_view name) {
  std::erase_if(meta.options, [&](const auto& option) { return option.first == name; });
}

const std::string* stop_of(const formats::dataset_meta& meta) {
  return option_of(meta, stopped_before);
}

void drop_stop(formats::dataset_meta& meta) {
  drop_option(meta, stopped_before);
}

const std::string* most_tokens_of(const formats::dataset_meta& meta) {
  return option_of(meta, max_tokens_option);
}

void set_counts(formats::meta_counts& to, const record_counts& found, const dataset_state& output,
                formats::dtype type) {
  to.documents = found.documents;
  to.empty_documents = output.empty_documents;
  to.sequences = output.sequences;
  to.tokens = static_cast<std::int64_t>(output.bin_bytes / formats::size_bytes(type));
  to.lines = found.lines;
  to.blank_lines = found.blank_lines;
  to.lone_surrogates = found.lone_surrogates;
  to.special_tokens = found.special_tokens;
  to.text_bytes = found.text_bytes;
  to.not_sampled = found.not_sampled;
  to.overlong = found.overlong;
  to.truncated = found.truncated;
  for (std::size_t kind = 0; kind < to.bad_records.size(); ++kind) {
    to.bad_records[kind].second = found.bad_records.at(kind);
  }
}

record_counts record_counts_of(const formats::meta_counts& said) {
  record_counts counts{.lines = said.lines,
                       .blank_lines = said.blank_lines,
                       .not_sampled = said.not_sampled,
                       .documents = said.documents,
                       .lone_surrogates = said.lone_surrogates,
                       .special_tokens = said.special_tokens,
                       .text_bytes = said.text_bytes,
                       .overlong = said.overlong,
                       .truncated = said.truncated};
  for (const auto& [kind, count] : said.bad_records) {
    const auto at = std::ranges::find(fault_names, kind);
    if (at != fault_names.end()) {
      counts.bad_records[static_cast<std::size_t>(at - fault_names.begin())] = count;
    }
  }
  return counts;
}

bool was_cut_within(const formats::dataset_meta& meta, const formats::input_extent& input) {
  const std::string* stop = stop_of(meta);
  if (stop == nullptr || input != meta.inputs.back()) return false;
  const std::uint64_t end = input.end();
  // A byte order mark belongs to the first line, which was not read.
  return *stop == stop_text(input.has_rows, end, input.path) ||
         (end == 0 && *stop == stop_text(false, byte_order_mark.size(), input.path));
}

std::vector<formats::dataset_meta> read_metas(std::span<const std::filesystem::path> prefixes) {
  std::vector<formats::dataset_meta> metas;
  for (const auto& prefix : prefixes) {
    const auto path = dataset_paths(prefix).of(sidecar::meta);
    const io::file_mapping file(path);
    const auto bytes = file.bytes();
    try {
      metas.push_back(
          formats::parse_meta({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
    } catch (const format_error& e) {
      throw e.in(path);
    }
  }
  return metas;
}

}  // namespace millrace::preprocess
