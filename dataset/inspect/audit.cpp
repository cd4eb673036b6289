// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <iterator>
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

const std::string audit_help =
    std::string(
        R"(usage: inspect_dataset audit PREFIX --order ORDER --seq-length L [RUN FLAGS]
           [--first-step N] [--last-step N] [--state FILE] [--json]

Counts how often each token is an input, over every step, rank and slot of a
run. Accounts for all tokens of each dataset per epoch (order megatron: over
all epochs): served, left out, missing, replayed and repeated. Fails if tokens
are missing or repeated for no known reason.

)") +
    run_flags_help +
    R"(  --first-step N            first step to audit (default: first complete step)
  --last-step N             step at which to stop, not audited itself
                            (default: after the last complete step)
)" + state_flag_help +
    R"(  --json                    print one JSON object: first_step, last_step, sound
                            and ledgers, each with prefix, round, tokens,
                            times, samples, served, trained (with a mask),
                            not_in_steps, left_out, missing, replayed,
                            repeated, label_only, padding, faults (16)

  inspect_dataset audit data/web_text_document --order instant --ranks 8 \
      --seq-length 4096
)";

using dataset::audit_fault;
using dataset::audit_ledger;

struct audited {
  std::int64_t first_step;
  std::int64_t last_step;
  std::vector<std::string> prefixes;
  std::vector<audit_ledger> ledgers;
  bool sound;
};

void add_row(std::string& text, std::int64_t tokens, const std::string& what) {
  fmt::format_to(std::back_inserter(text), "{:>18}  {}\n", grouped(tokens), what);
}

std::string text_of(const audit_ledger& ledger, const std::string& prefix) {
  std::string text = fmt::format(
      "{}, {}: {}{}\n", prefix, ledger.round.name, grouped(ledger.tokens, "token"),
      ledger.round.times == 1 ? std::string() : fmt::format(", {} times", ledger.round.times));
  add_row(text, ledger.served, "served the expected number of times");
  if (ledger.trained) add_row(text, *ledger.trained, "of these are trained, by the dataset's mask");
  add_row(text, ledger.not_in_steps, "only in samples before or after these steps");
  for (const auto& [why, tokens] : ledger.left_out) add_row(text, tokens, "left out: " + why);
  add_row(text, ledger.holes, "missing for no known reason");
  for (const auto& [why, tokens] : ledger.replayed) add_row(text, tokens, "replayed: " + why);
  fmt::format_to(std::back_inserter(text),
                 "not counted above ({}): {} repeated, {} only as the last label, {} of padding\n",
                 grouped(ledger.samples, "sample"), grouped(ledger.repeated),
                 grouped(ledger.label_only), grouped(ledger.padding));
  for (const audit_fault& each : ledger.faults) {
    fmt::format_to(std::back_inserter(text),
                   "fault: {} starting at token {} of sequence {}: served {}, expected {}\n",
                   grouped(each.tokens, "token"), each.first, each.sequence,
                   counted(each.times, "time"), each.expected);
  }
  return text;
}

void write_json(formats::json_writer& json, const char* key,
                const std::vector<dataset::explained_tokens>& all) {
  json.key(key).open('[');
  for (const auto& [why, tokens] : all) {
    json.open('{').key("why").value(why).key("tokens").value(tokens).close('}');
  }
  json.close(']');
}

void write_json(formats::json_writer& json, const audit_ledger& ledger, const std::string& prefix) {
  json.open('{').key("prefix").value(prefix).key("round").value(ledger.round.name);
  json.key("tokens").value(ledger.tokens).key("times").value(ledger.round.times);
  json.key("samples").value(ledger.samples).key("served").value(ledger.served);
  if (ledger.trained) json.key("trained").value(*ledger.trained);
  json.key("not_in_steps").value(ledger.not_in_steps);
  write_json(json, "left_out", ledger.left_out);
  json.key("missing").value(ledger.holes);
  write_json(json, "replayed", ledger.replayed);
  json.key("repeated").value(ledger.repeated);
  json.key("label_only").value(ledger.label_only).key("padding").value(ledger.padding);
  json.key("faults").open('[');
  for (const audit_fault& each : ledger.faults) {
    json.open('{').key("sequence").value(each.sequence).key("first").value(each.first);
    json.key("tokens").value(each.tokens).key("times").value(each.times);
    json.key("expected").value(each.expected).close('}');
  }
  json.close(']').close('}');
}

audited audit_of(const command_line& line, const run_configuration& run) {
  const dataset::run& order = *run.order;
  const served_run served = served_run_of(run, audit_help);
  const std::int64_t first = served.ranks.first_whole_step();
  const std::int64_t last = served.ranks.end_of_whole_steps(served.end);
  audited result{count_of(line, "first-step", 0, audit_help).value_or(first),
                 count_of(line, "last-step", 0, audit_help).value_or(last),
                 {},
                 {},
                 true};
  if (first >= last) {
    throw config_error(fmt::format(
        "the run has {}, expected at least the {} of one step; pass more data or a smaller "
        "--global-batch-size",
        grouped(served.end - served.ranks.first_sample(), "sample"),
        grouped(served.ranks.steps().samples_of(first))));
  }
  for (std::int64_t s = 0; s < order.source_count(); ++s) {
    result.prefixes.push_back(order.prefix(s).string());
  }
  result.ledgers = dataset::audit_run(order, served.ranks, result.first_step, result.last_step);
  result.sound = std::ranges::all_of(result.ledgers, &audit_ledger::sound);
  return result;
}

std::string as_text(const audited& found) {
  std::string text = fmt::format("steps {} to {}\n", found.first_step, found.last_step - 1);
  for (const audit_ledger& each : found.ledgers) {
    text += text_of(each, found.prefixes[static_cast<std::size_t>(each.source)]);
  }
  return text + (found.sound ? "sound\n" : "not sound\n");
}

std::string as_json(const audited& found) {
  formats::json_writer json;
  json.open('{').key("first_step").value(found.first_step);
  json.key("last_step").value(found.last_step).key("sound").value(found.sound);
  json.key("ledgers").open('[');
  for (const audit_ledger& each : found.ledgers) {
    write_json(json, each, found.prefixes[static_cast<std::size_t>(each.source)]);
  }
  return json.close(']').close('}').text() + '\n';
}

}  // namespace

int audit(const arguments& args) {
  po::options_description own;
  add_run_flags(own);
  auto add = own.add_options();
  for (const char* flag : {"first-step", "last-step"}) add(flag, po::value<std::int64_t>());
  add_state_flag(own);
  const auto line = parse_run_options(args, own, audit_help);
  if (!line) return command::exit_done;

  const audited found = audit_of(*line, run_configuration_of(*line, audit_help));
  command::answer(line->json ? as_json(found) : as_text(found));
  return found.sound ? command::exit_done : command::exit_failed;
}

}  // namespace millrace::inspect
