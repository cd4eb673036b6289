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

/// If `wanted`, returns a text with the sample's position in the run without edits, because edits
/// refer to these positions. Otherwise returns an empty text.
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
                   grouped(p.tokens, "token"), each.document, p.sequence, p.first,
                   text_of(places.documents(served.sample.source)->read_from(each.document)));
  }
  if (served.padding > 0) text += grouped(served.padding, "token") + " of padding\n";
  return text;
}

void write_json(formats::json_writer& json, const dataset::run_places& places,
                const std::string& prefix, const dataset::served_sample& served,
                bool with_unedited) {
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
  json.close(']').close('}');
}

struct question {
  std::int64_t source;  // the first source that reads the document's dataset
  std::int64_t document;
  std::int64_t samples;  // number of served samples
};

std::string as_text(const std::string& prefix, const question& q,
                    const std::optional<record_place>& from,
                    const std::vector<dataset::appearance>& found, bool with_unedited) {
  std::string text =
      fmt::format("{}, document {}{}: in {} of {}\n", prefix, q.document, text_of(from),
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

/// The slots that `--step` or `--iteration`, `--rank` and `--slot` select.
struct slot_question {
  std::int64_t step;
  std::optional<std::int64_t> rank;  // nullopt: all ranks
  std::optional<std::int64_t> slot;  // nullopt: all slots of a rank

  bool is_one() const { return rank && slot; }
};

/// Returns the slots that `--step` or `--iteration` asks for, with `--rank` and `--slot` if given.
/// Returns nullopt if none of these flags is given.
std::optional<slot_question> slot_question_of(const command_line& line) {
  const auto step = line.find<std::int64_t>("step");
  const auto iteration = count_of(line, "iteration", 1, where_help);
  const auto rank = line.find<std::int64_t>("rank");
  const auto slot = line.find<std::int64_t>("slot");
  if (step && iteration) {
    throw misuse("--step and --iteration exclude each other; iteration N is step N - 1",
                 where_help);
  }
  if (step) return slot_question{*step, rank, slot};
  if (iteration) return slot_question{*iteration - 1, rank, slot};
  if (rank || slot) throw misuse("--rank and --slot require --step or --iteration", where_help);
  return std::nullopt;
}

/// The slots of the step that are served, sorted by rank and slot. If some slots are not served,
/// prints a message on stderr.
///
/// @throws config_error  the step, rank or slot does not exist, or none of the slots is served
std::vector<dataset::slot_place> served_slots(const slot_question& q,
                                              const dataset::sampler& ranks) {
  const dataset::slot_place first{q.step, q.rank.value_or(0), q.slot.value_or(0)};
  if (q.is_one()) return {first};
  std::vector<dataset::slot_place> found;
  if (0 <= q.step && q.step <= ranks.last_step()) {
    const std::int64_t end = std::min(ranks.first_sample_of(q.step + 1), ranks.end_sample());
    std::int64_t sample = std::max(ranks.first_sample_of(q.step), ranks.first_sample());
    for (; sample < end; ++sample) {
      const dataset::slot_place place = ranks.slot_of(sample);
      if (q.rank.value_or(place.rank) != place.rank) continue;
      if (q.slot.value_or(place.slot) != place.slot) continue;
      found.push_back(place);
    }
  }
  if (found.empty()) {
    (void)ranks.sample_of(first);  // throws with the reason
    return {first};
  }
  std::ranges::sort(found, {}, [](const dataset::slot_place& place) {
    return std::pair(place.rank, place.slot);
  });
  const std::int64_t all =
      (q.rank ? 1 : ranks.options().world_size) * (q.slot ? 1 : ranks.slots(q.step));
  if (std::ssize(found) < all) {
    command::tell(fmt::format("{}: the run serves only {} of these {} of step {}\n", program_name,
                              grouped(std::ssize(found)), grouped(all, "slot"), q.step));
  }
  return found;
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
      write_json(json, places, prefix, row, with_unedited);
    } else {
      text += as_text(places, prefix, row, with_unedited);
    }
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
  auto add = own.add_options();
  for (const char* flag : {"step", "iteration", "rank", "slot", "document"})
    add(flag, po::value<std::int64_t>());
  add("of", po::value<std::string>());
  add_state_flag(own);
  const auto line = parse_run_options(args, own, where_help);
  if (!line) return command::exit_done;

  const auto slots = slot_question_of(*line);
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
