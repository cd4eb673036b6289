// SPDX-License-Identifier: Apache-2.0
#include "meta.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <fmt/format.h>

#include <millrace/command/grouped.hpp>
#include <millrace/command/text.hpp>
#include <millrace/dataset/detail/document_sources.hpp>
#include <millrace/dataset/detail/sidecar_paths.hpp>
#include <millrace/dataset/detail/token_mask.hpp>
#include <millrace/dataset/detail/verify_sources.hpp>
#include <millrace/error.hpp>

namespace millrace::inspect {

namespace {

using command::grouped;
using command::one_line;
using formats::dataset_meta;
using formats::input_extent;
using formats::json_string;
using formats::meta_counts;

/// Largest number of inputs that a line lists by name. For all further inputs, the line shows only
/// their count.
constexpr std::size_t most_names = 3;

/// @throws format_error  `meta` was not written for `data`.
void check_counts(const dataset::indexed_dataset& data, const dataset_meta& meta) {
  const auto equal = [](const auto& told, const auto& found, const char* what) {
    if (told == found) return;
    throw format_error(
        0, fmt::format("the .meta belongs to another dataset: its {} {}, but the .idx has {}", what,
                       told, found));
  };
  equal(formats::name(meta.type), formats::name(data.type()), "dtype is");
  equal(meta.counts.sequences, data.sequence_count(), "sequences are");
  equal(meta.counts.documents, data.document_count(), "documents are");
  equal(meta.counts.tokens, data.token_count(), "tokens are");
}

std::string inputs_line(const dataset_meta& meta) {
  std::uint64_t bytes = 0;  // may overflow for a hostile file, but is only displayed
  std::string names;
  for (std::size_t i = 0; i < meta.inputs.size(); ++i) {
    const input_extent& input = meta.inputs[i];
    bytes += input.text_bytes;
    if (i < most_names) names += (i == 0 ? ": " : ", ") + one_line(input.path);
    if (i < most_names && input.begin != 0) names += fmt::format(" from byte {}", input.begin);
  }
  if (meta.inputs.size() > most_names) {
    names += fmt::format(" and {} more",
                         grouped(static_cast<std::int64_t>(meta.inputs.size() - most_names)));
  }
  return fmt::format(
      "{} of {} bytes, {}{}", grouped(static_cast<std::int64_t>(meta.inputs.size()), "input"),
      grouped(static_cast<std::int64_t>(bytes)), grouped(meta.counts.lines, "line"), names);
}

std::string bad_records_line(const dataset_meta& meta) {
  std::string text;
  for (const auto& [kind, count] : meta.counts.bad_records) {
    if (count != 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", grouped(count), one_line(kind));
  }
  return (text.empty() ? "none" : text) +
         fmt::format(" (policy: {})", one_line(meta.on_bad_record));
}

std::string tokenizer_line(const dataset_meta& meta) {
  const auto& tokenizer = meta.tokenizer;
  return fmt::format(
      "{} of {} ids, {}, fingerprint {}", one_line(tokenizer.type), grouped(tokenizer.vocab_size),
      tokenizer.eod ? fmt::format("eod {}{}", *tokenizer.eod, meta.append_eod ? " appended" : "")
                    : "no eod",
      one_line(tokenizer.fingerprint));
}

}  // namespace

std::optional<dataset_meta> find_meta(const dataset::indexed_dataset& data) {
  const auto path = dataset::sidecar_paths(data.prefix()).meta;
  const auto file = dataset::map_sidecar(path);
  if (!file) return std::nullopt;
  try {
    const auto bytes = file->bytes();
    dataset_meta meta =
        formats::parse_meta({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    check_counts(data, meta);
    return meta;
  } catch (const format_error& e) {
    throw e.in(path);
  }
}

void check_root(const dataset::indexed_dataset& data, const dataset_meta& meta,
                const std::optional<std::string>& root) {
  // A .sum may have been added after the .meta.
  if (!meta.sum_root || meta.sum_root == root) return;
  throw format_error(dataset::sidecar_paths(data.prefix()).meta, 0,
                     fmt::format("the checksum root is {}, but {}", *meta.sum_root,
                                 root ? "the .sum has " + *root : "there is no .sum"));
}

void check_all_counts(const dataset::indexed_dataset& data, const dataset_meta& meta) {
  std::int64_t empty = 0;
  for (std::int64_t d = 0; d < data.document_count(); ++d)
    empty += data.document(d).empty() ? 1 : 0;
  const meta_counts& counts = meta.counts;
  std::uint64_t lines_read = 0;  // may overflow for a hostile file; the check below then fails
  for (const input_extent& input : meta.inputs) {
    lines_read += static_cast<std::uint64_t>(input.lines);
  }
  auto lines_used = static_cast<std::uint64_t>(counts.documents);
  lines_used += static_cast<std::uint64_t>(counts.blank_lines);
  lines_used += static_cast<std::uint64_t>(counts.not_sampled);
  lines_used += static_cast<std::uint64_t>(counts.duplicates);
  lines_used += static_cast<std::uint64_t>(counts.overlong);
  for (const auto& [kind, count] : counts.bad_records) {
    lines_used += static_cast<std::uint64_t>(count);
  }
  const auto fail = [&](const std::string& what) {
    throw format_error(dataset::sidecar_paths(data.prefix()).meta, 0, what);
  };
  if (counts.empty_documents != empty) {
    fail(fmt::format(
        "the .meta belongs to another dataset: its empty documents are {}, but the .idx has {}",
        counts.empty_documents, empty));
  }
  const auto lines = static_cast<std::uint64_t>(counts.lines);
  if (lines_read != lines) {
    fail(fmt::format("the line count is {}, but the lines of the inputs add up to {}", lines,
                     lines_read));
  }
  if (lines_used != lines) {
    fail(
        fmt::format("the line count is {}, but documents, blank lines, bad records and records "
                    "left out add up to {}",
                    lines, lines_used));
  }
}

std::optional<std::int64_t> check_sources(const dataset::indexed_dataset& data,
                                          const std::optional<dataset_meta>& meta) {
  const auto sources = dataset::document_sources::find(data);
  const auto meta_path = dataset::sidecar_paths(data.prefix()).meta;
  if (!sources) {
    if (!meta || !meta->src_version) return std::nullopt;
    throw format_error(meta_path, 0, "it describes a .src, but there is none; restore it");
  }
  // The .src was added after the .meta, so the order of its documents is unknown.
  if (!meta || !meta->src_version) {
    dataset::verify_sources(*sources);
    return static_cast<std::int64_t>(sources->input_count());
  }
  std::vector<dataset::source_extent> extents;
  for (const input_extent& input : meta->inputs) {
    extents.push_back({input.begin, input.end(), input.lines});
  }
  // These options change the order of the documents.
  const bool reordered = std::ranges::any_of(meta->options, [](const auto& option) {
    return option.first == "--partitions" || option.first == "shuffle_documents";
  });
  dataset::verify_sources(
      *sources, extents, reordered ? dataset::source_order::any : dataset::source_order::of_inputs);
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const std::string_view name = sources->input_name(static_cast<std::uint32_t>(i));
    const bool has_rows =
        sources->input_unit(static_cast<std::uint32_t>(i)) == formats::src_unit::rows;
    if (has_rows != meta->inputs[i].has_rows) {
      throw format_error(meta_path, 0,
                         fmt::format("input {} is counted in {} here, but in {} in the .src", i,
                                     has_rows ? "bytes" : "rows", has_rows ? "rows" : "bytes"));
    }
    if (formats::is_path_of(meta->inputs[i].path, name)) continue;
    throw format_error(meta_path, 0,
                       fmt::format("input {} is {} here, but {} in the .src", i,
                                   json_string(meta->inputs[i].path), json_string(name)));
  }
  return static_cast<std::int64_t>(extents.size());
}

std::optional<std::int64_t> check_mask(const dataset::indexed_dataset& data,
                                       const std::optional<dataset_meta>& meta) {
  const auto mask = dataset::token_mask::find(data);
  const auto fail = [&](const std::string& what) {
    throw format_error(dataset::sidecar_paths(data.prefix()).meta, 0, what);
  };
  if (!mask) {
    if (meta && meta->mask) {
      fail(
          "it describes a .mask, but there is none; restore it, or a model learns from all tokens");
    }
    return std::nullopt;
  }
  mask->verify();
  // A .mask may have been added after the .meta.
  if (meta && meta->mask && meta->mask->root != mask->root()) {
    fail(fmt::format("the root of the mask is {}, but the .mask has {}", meta->mask->root,
                     mask->root()));
  }
  if (meta && meta->mask && meta->mask->trained != mask->trained_count()) {
    fail(fmt::format("the number of trained tokens is {}, but the .mask has {}",
                     meta->mask->trained, mask->trained_count()));
  }
  return mask->trained_count();
}

std::vector<std::pair<const char*, std::string>> describe(const dataset_meta& meta) {
  std::vector<std::pair<const char*, std::string>> lines;
  lines.emplace_back("tokenizer", tokenizer_line(meta));
  lines.emplace_back("key", fmt::format("{}, by {}", one_line(meta.path), meta.level));
  std::string options;
  for (const auto& [name, value] : meta.options) {
    options += fmt::format("{}{}={}", options.empty() ? "" : ", ", one_line(name), one_line(value));
  }
  if (!options.empty()) lines.emplace_back("options", options);
  lines.emplace_back("made_of", inputs_line(meta));
  if (meta.tasks) {
    lines.emplace_back("tasks", fmt::format("{} to {} of {}, counted from 0", meta.tasks->first,
                                            meta.tasks->last, meta.tasks->of));
  }
  lines.emplace_back("bad_records", bad_records_line(meta));
  lines.emplace_back("checksums", meta.sum_root ? "root " + *meta.sum_root : "none");
  if (meta.mask) {
    lines.emplace_back(
        "mask", fmt::format("{} of {} are to be predicted, root {}", grouped(meta.mask->trained),
                            grouped(meta.counts.tokens, "token"), meta.mask->root));
  }
  return lines;
}

void add_meta(formats::json_writer& json, const dataset_meta& meta) {
  std::string text = formats::to_json(meta);
  text.pop_back();  // remove the newline
  json.raw(text);
}

}  // namespace millrace::inspect
