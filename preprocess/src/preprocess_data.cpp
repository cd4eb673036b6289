// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string>

#include <millrace/command/run_command.hpp>
#include <millrace/tokenizer/tokenizer_flags.hpp>

#include "input_plan.hpp"
#include "options.hpp"
#include "packing.hpp"
#include "pipeline.hpp"
#include "progress.hpp"
#include "sentence_splitter.hpp"
#include "summary.hpp"

namespace {

namespace command = millrace::command;
namespace preprocess = millrace::preprocess;

int preprocess_data(int argc, const char* const* argv) {
  preprocess::command_line line = preprocess::parse_command_line(argc, argv);
  if (line.help) {
    command::answer(preprocess::help_text());
    return command::exit_done;
  }
  if (line.version) {
    const std::string icu = preprocess::icu_version();
    command::print_version("preprocess_data", millrace::tokenizer::optional_parts() + ", " +
                                                  preprocess::optional_input_parts() + ", " +
                                                  (icu.empty() ? "without ICU" : "ICU " + icu));
    return command::exit_done;
  }
  const auto tokenizer = millrace::tokenizer::open_tokenizer(line.tokenizer);
  line.run.inputs = preprocess::plan_inputs(line.inputs);
  std::uint64_t total_bytes = 0;
  for (const auto& input : line.run.inputs) total_bytes += input.size_bytes;

  preprocess::progress progress(preprocess::progress::style_of_stderr(), line.log_interval,
                                total_bytes);
  for (const std::string& note : tokenizer->notes()) progress.note("note: " + note);
  const preprocess::run_summary summary = preprocess::run(*tokenizer, line.run, progress);
  command::tell(preprocess::describe(summary));
  if (line.json) command::answer(preprocess::to_json(summary));
  return command::exit_done;
}

}  // namespace

int main(int argc, char** argv) {
  return command::run_command("preprocess_data", preprocess::usage,
                              [&] { return preprocess_data(argc, argv); });
}
