// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>

#include <fmt/format.h>

#include <millrace/command/run_command.hpp>
#include <millrace/dataset/detail/document_sources.hpp>
#include <millrace/dataset/detail/length_statistics.hpp>
#include <millrace/dataset/detail/neighbour_statistics.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/formats/detail/json_writer.hpp>

#include "command_line.hpp"
#include "inspect.hpp"
#include "meta.hpp"

namespace millrace::inspect {

namespace {

constexpr const char* info_help = R"(usage: inspect_dataset info PREFIX [--json]

Prints what PREFIX.bin and PREFIX.idx hold: type, counts, sizes, and the
lengths of sequences and documents. With a PREFIX.meta, also prints what the
dataset was made from. Never reads the .bin. Warns if neighboring documents
have similar lengths or, by PREFIX.src, come from the same input.

  PREFIX   path of the dataset, without .bin and .idx
  --json   print one JSON object: prefix, dtype, sequences, documents, tokens,
           bin_bytes, idx_bytes, multimodal, empty_sequences, empty_documents,
           sequence_tokens and document_tokens with min, median, mean and max
           (null if there are none), neighbours with length_correlation,
           same_input and same_input_shuffled (null if unknown), and meta: the
           contents of PREFIX.meta (null if there is none)

  inspect_dataset info data/web_text_document
  inspect_dataset info data/web_text_document --json | jq .tokens
)";

void add_lengths(formats::json_writer& json, const char* key,
                 const dataset::length_statistics& lengths) {
  json.key(key);
  if (lengths.count == 0) {
    json.null();
    return;
  }
  json.open('{').key("min").value(lengths.min).key("median").value(lengths.median);
  json.key("mean").value(lengths.mean).key("max").value(lengths.max).close('}');
}

/// Formats a nonnegative number, such as a mean, with commas and `digits` decimals.
std::string grouped_decimal(double number, int digits) {
  const std::string text = fmt::format("{:.{}f}", number, digits);
  const std::size_t whole = text.find('.');  // npos without decimals
  return grouped(std::stoll(text.substr(0, whole))) +
         (whole == std::string::npos ? "" : text.substr(whole));
}

std::string lengths_line(const dataset::length_statistics& lengths) {
  if (lengths.count == 0) return "none";
  const bool halved = lengths.median != std::floor(lengths.median);
  return fmt::format("min {}, median {}, mean {}, max {}", grouped(lengths.min),
                     grouped_decimal(lengths.median, halved ? 1 : 0),
                     grouped_decimal(lengths.mean, 2), grouped(lengths.max));
}

void add_neighbours(formats::json_writer& json, const dataset::neighbour_statistics& found) {
  const auto add = [&](const char* key, const std::optional<double>& value) {
    json.key(key);
    if (value) {
      json.value(*value);
    } else {
      json.null();
    }
  };
  json.key("neighbours").open('{');
  add("length_correlation", found.length_correlation);
  add("same_input", found.same_input);
  add("same_input_shuffled", found.same_input_shuffled);
  json.close('}');
}

std::string empty_note(const dataset::length_statistics& lengths) {
  return lengths.empty == 0 ? "" : fmt::format(" ({} empty)", grouped(lengths.empty));
}

}  // namespace

int info(const arguments& args) {
  const auto line = parse(args, {}, info_help);
  if (!line) return command::exit_done;

  const dataset::indexed_dataset data(line->prefix);
  const auto sequences = dataset::sequence_lengths(data);
  const auto documents = dataset::document_lengths(data);
  const auto meta = find_meta(data);
  const auto sources = dataset::document_sources::find(data);
  const auto neighbours = dataset::look_at_neighbours(data, sources ? &*sources : nullptr);
  if (const std::string warning = neighbours.warning(); !warning.empty()) {
    command::tell(fmt::format("inspect_dataset: {}: {}\n", data.prefix().string(), warning));
  }

  if (line->json) {
    formats::json_writer json;
    json.open('{');
    json.key("prefix").value(data.prefix().native());
    json.key("dtype").value(formats::name(data.type()));
    json.key("sequences").value(data.sequence_count());
    json.key("documents").value(data.document_count());
    json.key("tokens").value(data.token_count());
    json.key("bin_bytes").value(data.bin_size_bytes());
    json.key("idx_bytes").value(data.idx_size_bytes());
    json.key("multimodal").value(data.is_multimodal());
    json.key("empty_sequences").value(sequences.empty);
    json.key("empty_documents").value(documents.empty);
    add_lengths(json, "sequence_tokens", sequences);
    add_lengths(json, "document_tokens", documents);
    add_neighbours(json, neighbours);
    json.key("meta");
    if (meta) {
      add_meta(json, *meta);
    } else {
      json.null();
    }
    command::answer(json.close('}').text() + '\n');
    return command::exit_done;
  }

  std::string text;
  const auto row = [&](const char* what, const std::string& value) {
    fmt::format_to(std::back_inserter(text), "{:<17}{}\n", what, value);
  };
  row("prefix", data.prefix().native());
  row("dtype", std::string(formats::name(data.type())));
  row("sequences", grouped(data.sequence_count()) + empty_note(sequences));
  row("documents", grouped(data.document_count()) + empty_note(documents));
  row("tokens", grouped(data.token_count()));
  row("bin_bytes", grouped(static_cast<std::int64_t>(data.bin_size_bytes())));
  row("idx_bytes", grouped(static_cast<std::int64_t>(data.idx_size_bytes())));
  row("multimodal", data.is_multimodal() ? "yes" : "no");
  row("sequence_tokens", lengths_line(sequences));
  row("document_tokens", lengths_line(documents));
  if (meta) {
    for (const auto& [what, value] : describe(*meta)) row(what, value);
  }
  command::answer(text);
  return command::exit_done;
}

}  // namespace millrace::inspect
