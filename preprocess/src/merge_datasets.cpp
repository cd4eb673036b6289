// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <boost/program_options.hpp>

#include <millrace/command/grouped.hpp>
#include <millrace/command/parse_flags.hpp>
#include <millrace/command/run_command.hpp>
#include <millrace/formats/detail/json_writer.hpp>
#include <millrace/io/file_ops.hpp>

#include "merge/content_key.hpp"
#include "merge/merge.hpp"
#include "merge/shuffle_documents.hpp"
#include "output/dataset_paths.hpp"
#include "process/stop_flag.hpp"
#include "report/summary.hpp"

namespace {

namespace command = millrace::command;
namespace formats = millrace::formats;
namespace po = boost::program_options;
namespace preprocess = millrace::preprocess;

constexpr const char* usage = "usage: merge_datasets --input DIR --output-prefix PREFIX [OPTIONS]";

po::options_description flags() {
  po::options_description flags("Options");
  auto add = flags.add_options();
  add("input", po::value<std::string>()->value_name("DIR"),
      "folder with .bin/.idx pairs and their sidecar files, and no other files");
  add("output-prefix", po::value<std::string>()->value_name("PREFIX"),
      "write PREFIX.bin and PREFIX.idx, in another folder");
  add("multimodal", "keep the mode of each sequence");
  add("shuffle-documents", po::value<std::uint64_t>()->value_name("SEED"),
      "shuffle the documents with this seed");
  add("drop-duplicates", "leave out documents whose ids are those of an earlier one");
  add("memory", po::value<std::int64_t>()->value_name("MB"),
      "memory to find duplicates, in MB (default: 1024)");
  add("overwrite", "replace the output if it exists");
  add("json", "print the summary as JSON on stdout");
  add("help,h", "show this text");
  add("version", "show the version");
  return flags;
}

std::string help_text() {
  std::ostringstream text;
  text
      << usage
      << "\n\nConcatenates all datasets of a folder, sorted by name, in constant memory. Also "
         "merges\n"
         "their .meta, .sum, .src, .bad and .mask files, each if all datasets have it (.src and "
         ".bad\n"
         "only with the .meta of all). Reports each kind of file that it drops, with the "
         "reason.\n\n"
         "--shuffle-documents shuffles the documents of all inputs once, in the output. Use it "
         "for\n"
         "data whose neighboring documents are alike. While it runs, it needs twice the disk "
         "space.\n"
         "The .bad files stay with the inputs.\n\n"
         "--drop-duplicates keeps the first of the documents with equal ids, and writes where the\n"
         "others came from to the .duplicates file, if all datasets have .src files and the\n"
         "documents are not shuffled. It needs 40 bytes of disk space per document while it "
         "runs.\n\n"
         "Tasks of a run with --drop-duplicates are merged all at once, without those duplicates.\n"
         "Tasks of a run with --max-tokens are merged all at once, with their .cuts files. The\n"
         "output ends where one process would have ended. This needs space for a copy of one\n"
         "input.\n\n"
         "Before copying, it checks that the disk has space for all files, and reports how many\n"
         "bytes are missing if not.\n\n"
         "SIGHUP, SIGINT, SIGTERM or SIGUSR1 stops it: it removes the files that it wrote, keeps "
         "an\n"
         "existing output unchanged, and exits with 1. A signal that was ignored when the program\n"
         "started (nohup) stays ignored.\n\n"
         "Example:\n"
         "  merge_datasets --input parts --output-prefix merged/web_text_document\n"
         "  merge_datasets --input parts --output-prefix mixed/web_text_document \\\n"
         "      --shuffle-documents 1234\n\n"
      << flags() << "\nExit codes: 0 done, 1 failed or stopped by a signal, 2 wrong flags.\n";
  return text.str();
}

std::string to_json(const preprocess::merge_options& options,
                    const preprocess::merge_summary& summary) {
  formats::json_writer json;
  json.open('{').key("prefix").value(options.output_prefix.string());
  json.key("dtype").value(name(summary.type)).key("sequences").value(summary.sequences);
  json.key("documents").value(summary.documents).key("tokens").value(summary.tokens);
  json.key("inputs").open('[');
  for (const auto& prefix : summary.prefixes) json.value(prefix.string());
  json.close(']');
  if (summary.duplicates) json.key("duplicates").value(*summary.duplicates);
  if (summary.stopped_before) json.key("stopped_before").value(*summary.stopped_before);
  json.key("dropped").open('[');
  for (const auto& [which, why] : summary.dropped) {
    json.open('{').key("sidecar").value(suffix_of(which)).key("why").value(why).close('}');
  }
  json.close(']').close('}');
  return json.text() + "\n";
}

preprocess::output_summary output_of(const std::filesystem::path& prefix,
                                     const preprocess::merge_summary& summary) {
  const preprocess::dataset_paths paths(prefix);
  preprocess::output_summary output{.prefix = prefix.string(),
                                    .sequences = summary.sequences,
                                    .documents = summary.documents,
                                    .tokens = summary.tokens};
  output.bin_bytes =
      static_cast<std::uint64_t>(summary.tokens) * millrace::formats::size_bytes(summary.type);
  output.files = {paths.bin.string(), paths.idx.string()};
  for (const preprocess::sidecar which : preprocess::all_sidecars) {
    if (const auto path = paths.of(which); millrace::io::is_there(path)) {
      output.files.push_back(path.string());
    }
  }
  return output;
}

int merge_datasets(int argc, const char* const* argv) {
  const po::variables_map given = command::parse_flags(argc, argv, flags());
  if (given.count("help") != 0) {
    command::answer(help_text());
    return command::exit_done;
  }
  if (given.count("version") != 0) {
    command::print_version("merge_datasets", preprocess::optional_xxhash());
    return command::exit_done;
  }
  if (given.count("input") == 0) {
    throw command::usage_error("--input is required: the folder with the datasets to merge");
  }
  if (given.count("output-prefix") == 0) {
    throw command::usage_error("--output-prefix is required: the path of the merged dataset");
  }
  const std::filesystem::path prefix = given["output-prefix"].as<std::string>();
  if (const auto name = prefix.filename(); name.empty() || name == "." || name == "..") {
    throw command::usage_error(
        fmt::format("--output-prefix '{}': expected a folder and the start of a file name, e.g. "
                    "out/web_text_document",
                    prefix.string()));
  }
  std::optional<std::uint64_t> memory_bytes;
  if (given.count("memory") != 0) {
    memory_bytes = preprocess::duplicates_bytes_of(given["memory"].as<std::int64_t>());
  }
  const preprocess::merge_options options{.input = given["input"].as<std::string>(),
                                          .output_prefix = given["output-prefix"].as<std::string>(),
                                          .multimodal = given.count("multimodal") != 0,
                                          .overwrite = given.count("overwrite") != 0,
                                          .drop_duplicates = given.count("drop-duplicates") != 0,
                                          .memory_bytes = memory_bytes,
                                          .stop = &preprocess::catch_stop_signals()};
  std::optional<std::uint64_t> seed;
  if (given.count("shuffle-documents") != 0) seed = given["shuffle-documents"].as<std::uint64_t>();
  const preprocess::merge_summary summary =
      seed ? preprocess::merge_shuffled(options, *seed) : preprocess::merge(options);
  command::tell(fmt::format(
      "merged {}{}: {}, {} ({})\n", command::grouped(std::ssize(summary.prefixes), "dataset"),
      seed ? ", shuffled" : "", command::grouped(summary.documents, "document"),
      command::grouped(summary.tokens, "token"), name(summary.type)));
  if (summary.duplicates) {
    command::tell(fmt::format("{} dropped\n", command::grouped(*summary.duplicates, "duplicate")));
  }
  if (summary.stopped_before) command::tell(preprocess::budget_line(*summary.stopped_before));
  for (const auto& [which, why] : summary.dropped) {
    command::tell(fmt::format("{} was not written: {}\n", suffix_of(which), why));
  }
  if (summary.tasks) {
    command::tell(fmt::format("the output holds only tasks {} to {} of {}, counted from 0\n",
                              summary.tasks->first, summary.tasks->last, summary.tasks->of));
  }
  command::tell(preprocess::wrote_line(output_of(options.output_prefix, summary)));
  command::tell(preprocess::data_path_line(
      summary.tokens == 0 ? std::vector<std::string>()
                          : std::vector<std::string>{options.output_prefix.string()}));
  if (given.count("json") != 0) command::answer(to_json(options, summary));
  return command::exit_done;
}

}  // namespace

int main(int argc, char** argv) {
  return command::run_command("merge_datasets", usage, argc, argv,
                              [&] { return merge_datasets(argc, argv); });
}
