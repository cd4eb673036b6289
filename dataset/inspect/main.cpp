// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <string>

#include <fmt/format.h>

#include <millrace/command/run_command.hpp>
#include <millrace/loader/detail/io/uring_probe.hpp>
#include <millrace/tokenizer/tokenizer.hpp>

#include "inspect.hpp"
#include "run_flags.hpp"

namespace millrace::inspect {

namespace {

constexpr const char* usage = R"(usage: inspect_dataset VERB PREFIX [OPTIONS]
       inspect_dataset VERB --help
       inspect_dataset --help [run | json] | --version)";

struct verb {
  const char* name;
  int (*run)(const arguments&);
  const char* help;
};
constexpr verb verbs[] = {
    {"info", info, "print type, counts, sizes and lengths"},
    {"verify", verify, "check every entry; report the first fault and its byte"},
    {"show", show, "print a document, sequence, sample or batch: ids and text"},
    {"search", search, "find a text, ids or a regular expression"},
    {"stats", stats, "count ids and lengths; find duplicates, n-grams, contamination"},
    {"diff", diff, "compare two datasets, two states or two runs"},
    {"plan", plan, "compute what a run needs from the machines of a cluster"},
    {"report", report, "write an HTML page about one dataset, or two side by side"},
    {"filter", filter, "write some documents of a dataset as a new one"},
    {"convert", convert, "convert from and to files of nanotron, OLMo, llm.c and nanoGPT"},
    {"prepare-cache", prepare_cache,
     "build the index caches of Megatron before the training starts"},
    {"where", where, "find the documents of a step, or the steps of a document"},
    {"audit", audit, "check that a run serves each token once per epoch"},
    {"simulate", simulate, "estimate how well the loader keeps accelerators busy"},
};

constexpr const char* purpose = R"(

Inspects a dataset, PREFIX.bin and PREFIX.idx, without changing it.

)";

constexpr const char* common_help = R"(
--help run shows the flags that describe a run, for show, search, diff, plan,
report, where, audit and simulate; --help json the keys of show --json.
Answers go to stdout, everything else to stderr. With --json, the answer is one
JSON object. Exit codes: 0 done, 1 failed, 2 wrong flags. For verify, search
and diff: 1 damaged, not found or different; 4 could not finish.

  inspect_dataset info data/web_text_document
  inspect_dataset verify data/web_text_document --vocab-size 50257 --json
  inspect_dataset show data/web_text_document --doc 0
)";

std::string whole_help() {
  std::string text = std::string(usage) + purpose;
  for (const verb& each : verbs) text += fmt::format("  {:<13}  {}\n", each.name, each.help);
  return text + common_help;
}

std::string names_of_verbs() {
  std::string text;
  for (const verb& each : verbs) {
    if (&each != verbs) text += &each == std::end(verbs) - 1 ? " or " : ", ";
    text += each.name;
  }
  return text;
}

int run(arguments args) {
  if (args.empty()) throw command::usage_error("expected a verb and a PREFIX");
  const std::string first = args.front();
  args.erase(args.begin());
  if (first == "--help" || first == "-h") {
    if (args.empty()) {
      command::answer(whole_help());
    } else if (args.front() == "run") {
      command::answer(all_run_flags_help);
    } else if (args.front() == "json") {
      command::answer(show_json_help);
    } else {
      throw command::usage_error(
          "--help " + args.front() +
          ": expected run, json or nothing; the help of a verb is VERB --help");
    }
    return command::exit_done;
  }
  if (first == "--version") {
    command::print_version(program_name,
                           tokenizer::optional_parts() + ", " + loader::optional_parts());
    return command::exit_done;
  }
  const auto found = std::ranges::find_if(verbs, [&](const verb& v) { return first == v.name; });
  if (found == std::end(verbs)) {
    throw command::usage_error("unknown verb '" + first + "': expected " + names_of_verbs());
  }
  return found->run(args);
}

}  // namespace

}  // namespace millrace::inspect

int main(int argc, char** argv) {
  using namespace millrace;
  return command::run_command(inspect::program_name, inspect::usage, argc, argv, [&] {
    // argc is 0 if the caller did not even pass a program name.
    return inspect::run(argc > 1 ? inspect::arguments(argv + 1, argv + argc)
                                 : inspect::arguments());
  });
}
