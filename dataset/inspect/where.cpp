// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <millrace/dataset/where.hpp>
#include <millrace/formats/detail/json_writer.hpp>

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
           (--step N | --iteration N) [--rank N] [--slot N] [--json]
           or --document N [--of PREFIX] [--json]

Prints the documents that a step of a run serves, or the slots that serve a
document. With a PREFIX.src, also prints the input, its line and its bytes.
Reports on stderr which values it assumes for omitted flags.

)") +
    run_flags_help +
    R"(  --step N                  step, counted from 0
  --iteration N             step, counted from 1 as in Megatron's logs
  --rank N, --slot N        one rank or slot (default: all); a slot is the row
                            plus B times the micro-batch in the rank's step
  --document N [--of PREFIX]   document to find; its dataset in a blend
)" + state_flag_help +
    R"(  --json                    print one JSON object: step, rank, slot, sample,
                            prefix, sample_of_prefix, padding, documents, or a
                            list "slots" of these; or prefix, document, source,
                            samples, slots; with --state sample_without_edits

  inspect_dataset where data/web_text_document --order instant --ranks 8 \
      --seq-length 4096 --iteration 1001 --rank 3
)";

using dataset::record_place;

struct question {
  std::int64_t source;  // the first source that reads the document's dataset
  std::int64_t document;
  std::int64_t samples;  // number of served samples
};

std::string as_text(const std::string& prefix, const question& q,
                    const std::optional<record_place>& from,
                    const std::vector<dataset::appearance>& found, bool with_unedited) {
  std::string text =
      fmt::format("{}, document {}{}: in {} of {}\n", prefix, q.document, origin_text(from),
                  grouped(std::ssize(found), "slot"), grouped(q.samples, "sample"));
  for (const dataset::appearance& each : found) {
    fmt::format_to(std::back_inserter(text), "{}: sample {}{}, {} from token {} on{}\n",
                   at_text(each.slot), each.served, unedited_text(with_unedited, each.position),
                   grouped(each.tokens, "token"), each.at, each.label_only ? ", a label only" : "");
  }
  return text;
}

std::string as_json(const std::string& prefix, const question& q,
                    const std::optional<record_place>& from,
                    const std::vector<dataset::appearance>& found, bool with_unedited) {
  formats::json_writer json;
  json.open('{').key("prefix").value(prefix).key("document").value(q.document);
  write_source(json, from);
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

/// The first source that reads the dataset given by `--of`.
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
  if (first < 0) {
    throw misuse("--of " + *wanted + ": expected a prefix that is in --data-path", where_help);
  }
  if (!wanted && entries != order.source_count()) {
    throw misuse("--of PREFIX is required: the dataset of the document, because this is a blend",
                 where_help);
  }
  return first;
}

std::string answer_of(const command_line& line, const slot_question& q,
                      const dataset::run_places& places, const served_run& served,
                      const dataset::run& order, bool with_unedited) {
  std::string text;
  formats::json_writer json;
  if (!q.is_one()) json.open('{').key("slots").open('[');
  for (const dataset::slot_place& slot : served_slots(q, served.ranks)) {
    const auto row = places.at(slot);
    const std::string prefix = order.prefix(row.sample.source).native();
    if (line.json) {
      json.open('{');
      write_served(json, places, prefix, row, with_unedited);
      json.close('}');
      continue;
    }
    text += served_line(prefix, row, with_unedited);
    for (const dataset::document_piece& each : row.pieces) {
      text += piece_line(places, row.sample.source, each);
    }
    if (row.padding > 0) text += grouped(row.padding, "token") + " of padding\n";
  }
  if (!line.json) return text;
  if (!q.is_one()) json.close(']').close('}');
  return json.text() + '\n';
}

std::string answer_of(const command_line& line, const std::optional<slot_question>& slots,
                      const run_configuration& run) {
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
  return answer_of(line, *slots, places, served, order, with_unedited);
}

}  // namespace

int where(const arguments& args) {
  po::options_description own;
  add_run_flags(own);
  add_slot_flags(own);
  auto add = own.add_options();
  add("document", po::value<std::int64_t>());
  add("of", po::value<std::string>());
  add_state_flag(own);
  const auto line = parse_run_options(args, own, where_help);
  if (!line) return command::exit_done;

  const auto slots = slot_question_of(*line, where_help);
  if (slots.has_value() == line->find<std::int64_t>("document").has_value()) {
    throw misuse(slots ? "--document and --step or --iteration exclude each other; pass one of them"
                       : "--step, --iteration or --document is required",
                 where_help);
  }
  const run_configuration run = run_configuration_of(*line, where_help);
  // An instant run of one dataset continues after its first epoch, so any step is valid.
  const bool any_epoch = slots && run.order->end() > run.samples;
  if (const std::string assumed = assumptions_of(*line, run, any_epoch); !assumed.empty()) {
    command::tell(fmt::format("{}: assumed {}\n", program_name, assumed));
  }
  command::answer(answer_of(*line, slots, run));
  return command::exit_done;
}

}  // namespace millrace::inspect
