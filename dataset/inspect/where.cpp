// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <millrace/dataset/run/where.hpp>
#include <millrace/formats/json_writer.hpp>

#include "command_line.hpp"
#include "inspect.hpp"
#include "run_flags.hpp"
#include "served_run.hpp"
#include "state_flag.hpp"

namespace millrace::inspect {

namespace po = boost::program_options;

namespace {

const std::string where_help =
    std::string(
        R"(usage: inspect_dataset where PREFIX --order ORDER --seq-length L [RUN FLAGS]
           --step N --rank N --slot N | --document N [--of PREFIX] [--json]

Says which documents are served in a slot of a run, with input, line and bytes of each where there
is a PREFIX.src; or in which steps, ranks and slots a document is served.

)") +
    run_flags_help +
    R"(  --step N --rank N --slot N   slot: row plus micro-batch times B, in the rank's share of the step
                               without --train-samples, instant answers for any epoch
  --document N [--of PREFIX]   slots with a token of it, be it as the last label; PREFIX of a blend
)" + state_flag_help +
    R"(  --json                       one JSON object: step, rank, slot, sample, prefix, sample_of_prefix,
                               padding, documents; or prefix, document, source, samples, slots;
                               with --state also sample_without_edits

  inspect_dataset where data/web_text_document --order instant --seq-length 4096 --ranks 8 \
      --micro-batch-size 4 --global-batch-size 256 --step 1000 --rank 3 --slot 17
  inspect_dataset where --data-path 0.7 web 0.3 code --order megatron --seq-length 4096 \
      --train-samples 100000 --document 12 --of code
)";

using dataset::document_piece;
using dataset::record_place;

std::string text_of(const std::optional<record_place>& from) {
  if (!from) return "";
  return fmt::format("; from {}, line {}, bytes {} to {}", command::one_line(from->input),
                     from->line, from->begin, from->end);
}

void write_json(formats::json_writer& json, const std::optional<record_place>& from) {
  json.key("source");
  if (!from) {
    json.null();
    return;
  }
  json.open('{').key("input").value(from->input).key("line").value(from->line);
  json.key("begin").value(from->begin).key("end").value(from->end).close('}');
}

std::string at_text(const dataset::slot_place& at) {
  return fmt::format("step {}, rank {}, slot {}", at.step, at.rank, at.slot);
}

/// Which sample it is of the run without edits, which is what edits count.
std::string unedited_text(bool wanted, std::int64_t position) {
  return wanted ? fmt::format(" ({} without edits)", position) : "";
}

void write_unedited(formats::json_writer& json, bool wanted, std::int64_t position) {
  if (wanted) json.key("sample_without_edits").value(position);
}

std::string as_text(const dataset::run_places& places, const std::string& prefix,
                    const dataset::served_sample& served, bool with_unedited) {
  std::string text =
      fmt::format("{}: sample {} of the run{}, sample {} of {}\n", at_text(served.slot),
                  served.served, unedited_text(with_unedited, served.position), served.k, prefix);
  for (const document_piece& each : served.pieces) {
    const dataset::piece& p = each.tokens;
    fmt::format_to(std::back_inserter(text),
                   "token {}: {} of document {}, sequence {} from token {} on{}\n", each.at,
                   counted(p.tokens, "token"), each.document, p.sequence, p.first,
                   text_of(places.documents(served.sample.source)->read_from(each.document)));
  }
  if (served.padding > 0) text += counted(served.padding, "token") + " of padding\n";
  return text;
}

std::string as_json(const dataset::run_places& places, const std::string& prefix,
                    const dataset::served_sample& served, bool with_unedited) {
  formats::json_writer json;
  json.open('{').key("step").value(served.slot.step).key("rank").value(served.slot.rank);
  json.key("slot").value(served.slot.slot).key("sample").value(served.served);
  write_unedited(json, with_unedited, served.position);
  json.key("prefix").value(prefix).key("sample_of_prefix").value(served.k);
  json.key("padding").value(served.padding).key("documents").open('[');
  for (const document_piece& each : served.pieces) {
    const dataset::piece& p = each.tokens;
    json.open('{').key("at").value(each.at).key("document").value(each.document);
    json.key("sequence").value(p.sequence).key("first").value(p.first);
    json.key("tokens").value(p.tokens);
    write_json(json, places.documents(served.sample.source)->read_from(each.document));
    json.close('}');
  }
  return json.close(']').close('}').text() + '\n';
}

struct question {
  std::int64_t source;  // the first of those that the document is of
  std::int64_t document;
  std::int64_t samples;  // that are served
};

std::string as_text(const std::string& prefix, const question& q,
                    const std::optional<record_place>& from,
                    const std::vector<dataset::appearance>& found, bool with_unedited) {
  std::string text =
      fmt::format("{}, document {}{}: in {} of {}\n", prefix, q.document, text_of(from),
                  counted(std::ssize(found), "slot"), counted(q.samples, "sample"));
  for (const dataset::appearance& each : found) {
    fmt::format_to(std::back_inserter(text), "{}: sample {}{}, {} from token {} on{}\n",
                   at_text(each.slot), each.served, unedited_text(with_unedited, each.position),
                   counted(each.tokens, "token"), each.at, each.label_only ? ", a label only" : "");
  }
  return text;
}

std::string as_json(const std::string& prefix, const question& q,
                    const std::optional<record_place>& from,
                    const std::vector<dataset::appearance>& found, bool with_unedited) {
  formats::json_writer json;
  json.open('{').key("prefix").value(prefix).key("document").value(q.document);
  write_json(json, from);
  json.key("samples").value(q.samples).key("slots").open('[');
  for (const dataset::appearance& each : found) {
    json.open('{').key("step").value(each.slot.step).key("rank").value(each.slot.rank);
    json.key("slot").value(each.slot.slot).key("sample").value(each.served);
    write_unedited(json, with_unedited, each.position);
    json.key("sample_of_prefix").value(each.k).key("at").value(each.at);
    json.key("tokens").value(each.tokens).key("label_only").value(each.label_only).close('}');
  }
  return json.close(']').close('}').text() + '\n';
}

/// The first source of the dataset that --of names.
std::int64_t source_of(const command_line& line, const dataset::run& order) {
  const auto wanted = line.find<std::string>("of");
  const std::filesystem::path prefix = wanted ? std::filesystem::path(*wanted) : order.prefix(0);
  std::int64_t first = -1;
  std::int64_t entries = 0;
  for (std::int64_t s = order.source_count() - 1; s >= 0; --s) {
    if (order.prefix(s) != prefix) continue;
    first = s;
    ++entries;
  }
  if (first < 0) throw misuse("--of " + *wanted + ": no such prefix in --data-path", where_help);
  if (!wanted && entries != order.source_count()) {
    throw misuse("a document of which dataset? --of PREFIX is missing", where_help);
  }
  return first;
}

std::string answer_of(const command_line& line, const run_configuration& run) {
  const served_run served = served_run_of(run, where_help);
  const dataset::run& order = *run.order;
  const dataset::run_places places(order, served.ranks);
  const bool with_unedited = run.has_state && run.sampler.type == dataset::sampler_type::single;
  if (const auto document = count_of(line, "document", 0, where_help)) {
    const question q{source_of(line, order), *document, served.end - served.ranks.first_sample()};
    const auto found = places.of(order.prefix(q.source), q.document, served.end);
    const auto from = places.documents(q.source)->read_from(q.document);
    const std::string prefix = order.prefix(q.source).native();
    return line.json ? as_json(prefix, q, from, found, with_unedited)
                     : as_text(prefix, q, from, found, with_unedited);
  }
  const dataset::slot_place slot{*line.find<std::int64_t>("step"),
                                 line.find<std::int64_t>("rank").value_or(0),
                                 line.find<std::int64_t>("slot").value_or(0)};
  const auto row = places.at(slot);
  const std::string prefix = order.prefix(row.sample.source).native();
  return line.json ? as_json(places, prefix, row, with_unedited)
                   : as_text(places, prefix, row, with_unedited);
}

}  // namespace

int where(const arguments& args) {
  po::options_description own;
  add_run_flags(own);
  auto add = own.add_options();
  for (const char* flag : {"step", "rank", "slot", "document"})
    add(flag, po::value<std::int64_t>());
  add("of", po::value<std::string>());
  add_state_flag(own);
  const auto line = parse_run_options(args, own, where_help);
  if (!line) return command::exit_done;

  const bool by_slot = line->find<std::int64_t>("step") || line->find<std::int64_t>("rank") ||
                       line->find<std::int64_t>("slot");
  const bool by_document = line->find<std::int64_t>("document").has_value();
  if (by_slot == by_document) {
    throw misuse("give either --step, --rank and --slot, or --document", where_help);
  }
  if (by_slot && !line->find<std::int64_t>("step")) throw misuse("--step is missing", where_help);
  command::answer(answer_of(*line, run_configuration_of(*line, where_help)));
  return command::exit_done;
}

}  // namespace millrace::inspect
