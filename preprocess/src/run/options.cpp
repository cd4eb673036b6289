// SPDX-License-Identifier: Apache-2.0
#include "run/options.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <initializer_list>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <boost/program_options.hpp>

#include <millrace/command/parse_flags.hpp>
#include <millrace/command/run_command.hpp>
#include <millrace/parquet/file.hpp>
#include <millrace/tokenizer/tokenizer_flags.hpp>

#include "input/file_format.hpp"
#include "input/task_split.hpp"
#include "input/zstd_frames.hpp"
#include "merge/content_key.hpp"
#include "output/part_joiner.hpp"
#include "record/sentence_splitter.hpp"
#include "record/text_key.hpp"
#include "run/fim_flags.hpp"
#include "run/output_names.hpp"
#include "run/parse_number.hpp"
#include "run/usable_resources.hpp"

namespace millrace::preprocess {
namespace {

namespace po = boost::program_options;
using command::usage_error;

constexpr int most_workers = 1024;

constexpr const char* what_it_does =
    "Tokenizes JSON lines into Megatron's .bin and .idx files.\n\n";

constexpr const char* what_they_do =
    "Tokenizes JSON lines into Megatron's .bin and .idx files with all processes of an MPI job.\n"
    "The output is byte for byte what preprocess_data writes, for any number of processes. All\n"
    "processes must see the same inputs and the same output folder.\n\n";

// The flags that most runs need. `--help GROUP` lists all flags.
constexpr const char* first_screen =
    "  --input FILE ...        JSON lines, plain or compressed, or Parquet: files, patterns,\n"
    "                          folders, - for stdin\n"
    "  --output-prefix PREFIX  write PREFIX_text_document.bin and .idx\n"
    "  --json-keys KEY ...     keys to tokenize, one dataset per key (default: text)\n"
    "  --tokenizer-type TYPE   tokenizer, with its files:\n"
    "      GPT2BPETokenizer        --vocab-file vocab.json --merge-file merges.txt\n"
    "      HuggingFaceTokenizer    --tokenizer-model: a tokenizer.json, or its folder\n"
    "      SentencePieceTokenizer  --tokenizer-model: a .model\n"
    "      TikTokenizer            --tokenizer-model: a .tiktoken, with --tiktoken-pattern NAME\n"
    "      others                  see --help tokenizer\n"
    "  --messages-key KEY      tokenize conversations and write masks; see --help chat\n"
    "  --append-eod            end each document with the tokenizer's end-of-document token\n"
    "  --on-bad-record fail|skip|quarantine   how to treat bad lines (default: fail)\n"
    "  --workers N             threads (default: all available processors)\n"
    "  --resume, --overwrite   continue an unfinished run, or start again\n";

constexpr const char* flags_of_one =
    "  --dry-run               estimate documents, tokens, disk space and time; write nothing\n"
    "  --task I/N              process part I of N, e.g. on another machine\n";

constexpr const char* example_of_one =
    "\n  preprocess_data --input 'web/*.jsonl.zst' --output-prefix out/web --append-eod \\\n"
    "      --tokenizer-type HuggingFaceTokenizer --tokenizer-model llama/\n";

constexpr const char* example_of_many =
    "\n  mpirun -n 8 preprocess_data_mpi --input 'web/*.jsonl.zst' --output-prefix out/web \\\n"
    "      --append-eod --tokenizer-type HuggingFaceTokenizer --tokenizer-model llama/\n";

constexpr const char* last_lines =
    "\nMore flags: --help files, --help choice, --help work, --help tokenizer, --help chat,\n"
    "--help sentences, --help fim, --help all\n"
    "SIGHUP, SIGINT, SIGTERM or SIGUSR1 stops the run and keeps the finished work. A signal that\n"
    "was ignored when the program started (nohup) stays ignored.\n"
    "Exit codes: 0 done, 1 failed, 2 wrong flags, 3 stopped by a signal (--resume continues).\n";

template <class T>
po::typed_value<T>* value(const char* name) {
  return po::value<T>()->value_name(name);
}

po::options_description files_group() {
  po::options_description group("Files");
  auto add = group.add_options();
  add("input", value<std::vector<std::string>>("FILE ...")->multitoken(),
      "JSON lines, or one JSON array; plain, gzip, zstd, bzip2 or xz; or Parquet. Accepts files, "
      "patterns such "
      "as 'data/*.jsonl', folders, @FILE for a list of these, and - for stdin. Inputs are read in "
      "this order; files of a pattern or folder are sorted");
  add("json-keys", value<std::vector<std::string>>("KEY ...")->multitoken(),
      "keys whose text to tokenize, one dataset per key (default: text)");
  add("text-key", value<std::vector<std::string>>("PATH ...")->multitoken(),
      "like --json-keys, for text in nested objects: meta.text is the key text in the object meta");
  add("output-prefix", value<std::string>("PREFIX"), "write PREFIX_KEY_document.bin and .idx");
  add("overwrite", "replace these files if they exist, and start an unfinished run again");
  add("resume", "continue an unfinished run; the result is the same as without the interruption");
  add("trust-inputs",
      "with --resume: treat an input as unchanged if its size and modification time are the same, "
      "even if its inode changed (default: read it again and compare its checksum)");
  add("no-provenance", "do not write PREFIX_KEY_document.src (the origin of each document)");
  add("no-checksums", "do not write PREFIX_KEY_document.sum (checksums of the output)");
  return group;
}

po::options_description choice_group(program which) {
  po::options_description group("Choice of records");
  auto add = group.add_options();
  add("sample-rate", value<std::string>("P"),
      "take a random part of the records, e.g. 0.01 for about one in 100. The choice depends on "
      "the seed, the name of the input and the place in it, so workers, tasks and --resume do not "
      "change it. A higher rate takes all that a lower one takes, and more");
  add("sample-seed", value<std::string>("N"), "with --sample-rate: another choice (default: 0)");
  add("max-tokens", value<std::int64_t>("N"),
      which == program::alone
          ? "end before the first document, in input order, with which a dataset would have more "
            "than N tokens; the summary and PREFIX_KEY_document.meta say where that is. With "
            "--task, merge_datasets ends the whole there"
          : "end before the first document, in input order, with which a dataset would have more "
            "than N tokens; the summary and PREFIX_KEY_document.meta say where that is");
  add("drop-duplicates", value<std::string>("ids|text"),
      which == program::alone
          ? "drop each document that repeats an earlier one, in input order: in all its token ids, "
            "or in its text before tokenizing. PREFIX_KEY_document.duplicates says where they came "
            "from. Writes all documents first, so the run needs twice the disk space. With --task, "
            "merge_datasets drops them. With --max-tokens, only the documents that stay count, and "
            "all inputs are read"
          : "drop each document that repeats an earlier one, in input order: in all its token ids, "
            "or in its text before tokenizing. PREFIX_KEY_document.duplicates says where they came "
            "from. One process merges the parts. With --max-tokens, only the documents that stay "
            "count, and all inputs are read");
  add("memory", value<std::int64_t>("MB"),
      "with --drop-duplicates: memory to find them, in MB (default: 1024)");
  return group;
}

po::options_description work_group(program which) {
  po::options_description group("Work");
  auto add = group.add_options();
  add("split-sentences",
      "make each sentence one sequence of its document, and write PREFIX_KEY_sentence.bin and "
      ".idx; see --help sentences");
  add("keep-newlines", "with --split-sentences: keep the white space after sentences");
  add("lang", value<std::string>("NAME"),
      "with --split-sentences: language, e.g. german (default: english)");
  add("append-eod", "end each non-empty document with the tokenizer's end-of-document id");
  add("on-bad-record", value<std::string>("fail|skip|quarantine"),
      "how to treat a line that is not a JSON object with text under every key: fail stops the run "
      "(default), skip drops and counts the line, quarantine also keeps it in "
      "PREFIX_KEY_document.bad");
  add("max-bad-records", value<std::int64_t>("N"),
      "stop after more than N bad records (default: no limit)");
  add("workers", value<int>("N"),
      which == program::alone
          ? "number of threads, at most the processors that CPU affinity and control groups allow "
            "(default: all of them); does not affect the output"
          : "threads per process, at most the processors that CPU affinity and control groups "
            "allow "
            "(default: these, divided among the processes that share them); does not affect the "
            "output");
  add("tokenizer-memory", value<std::int64_t>("MB"),
      fmt::format("pretoken cache per thread, in MB (default: {}); affects speed only",
                  tokenizer::tokenizer::default_encoder_bytes >> 20)
          .c_str());
  add("zstd-memory", value<std::int64_t>("MB"),
      "largest zstd window, in MB (default: 2048, or 3/4 of the memory if less)");
  add("log-interval", value<std::int64_t>("N"),
      "documents between progress lines, at most one line per second (default: 1000)");
  add("metrics", value<std::string>("FILE"), "write run metrics to FILE once per second");
  add("metrics-format", value<std::string>("json|prometheus"),
      "json: append one JSON line per update (default); prometheus: replace the file with "
      "Prometheus text");
  add("json", "print the summary as JSON on stdout");
  add("padded-vocab-size", value<std::int64_t>("N"), "accepted without effect, as in Megatron");
  add("no-pad-vocab-size", "accepted without effect, as in Megatron");
  add("use-gigatoken", "accepted without effect: the tokenizer is fast, and its ids are the same");
  if (which == program::together) return group;
  add("find-optimal-num-workers",
      "measure how fast the run would be with several numbers of workers; write nothing");
  add("workers-to-check", value<std::vector<int>>("N ...")->multitoken(),
      "with --find-optimal-num-workers: the numbers to try (default: 1, 2, 4 and so on, up to the "
      "number of processors)");
  add("max-documents", value<std::int64_t>("N"),
      "with --find-optimal-num-workers: documents per trial (default: 100000); it does not limit a "
      "run");
  add("performance-dir", value<std::string>("DIR"),
      "with --find-optimal-num-workers: also write DIR/N_workers.json");
  add("partitions", value<int>("P"),
      "write documents in the order that Megatron's --partitions gives: lines are numbered from 0 "
      "across all files, including blank and bad lines; first come the lines whose number is 0 "
      "modulo P, then those with 1, and so on. While the run lasts, tokens need twice the disk "
      "space. Works with any --workers");
  add("keep-sequential-samples",
      "with --partitions: keep the input order, as Megatron does with this flag");
  add("task", value<std::string>("I/N|slurm"),
      "process part I of N, counted from 0, into PREFIX_0000I-of-0000N_...; start all parts with "
      "the same flags; merge_datasets then writes what a single run would have written; "
      "slurm: take I and N from Slurm");
  add("dry-run",
      "sample the input and estimate documents, tokens, bytes on disk, time and memory; write "
      "nothing");
  return group;
}

po::options_description all_groups(program which) {
  po::options_description all;
  all.add(files_group())
      .add(choice_group(which))
      .add(work_group(which))
      .add(tokenizer::tokenizer_flags());
  all.add(conversation_group(which == program::alone));
  all.add(fim_group());
  auto add = all.add_options();
  add("help,h", value<std::vector<std::string>>("GROUP")->multitoken()->zero_tokens(),
      "show one screen, or all flags of a group: files, choice, work, tokenizer, chat, sentences, "
      "fim or all");
  add("version", "show the version");
  return all;
}

template <class T, class To>
bool take(const po::variables_map& given, const char* name, To& to) {
  if (given.count(name) == 0) return false;
  to = given[name].as<T>();
  return true;
}

// Returns the result of `read()`. If `read()` throws a config_error, throws a usage_error with the
// same message.
template <class Read>
auto or_misuse(Read&& read) {
  try {
    return read();
  } catch (const config_error& e) {
    throw usage_error(e.what());
  }
}

void take_keys(const po::variables_map& given, run_options& run) {
  std::vector<std::string> names;
  const bool plain = take<std::vector<std::string>>(given, "json-keys", names);
  if (plain) run.keys = plain_keys(names);
  if (take<std::vector<std::string>>(given, "text-key", names)) {
    if (!plain) run.keys.clear();
    for (const std::string& name : names) {
      run.keys.push_back(or_misuse([&] { return key_of_path(name); }));
    }
  }
  std::set<std::string> seen;
  for (const text_key& key : run.keys) {
    if (seen.insert(key.name).second) continue;
    throw usage_error(
        fmt::format("--json-keys, --text-key: {} is given twice; give each key once", key.name));
  }
}

void take_conversations(const po::variables_map& given, program_flags& line) {
  line.conversations = conversation_flags_of(given);
  if (line.conversations) prepare_tokenizer(line.tokenizer);
  if (given.count("preview") == 0) return;
  if (!line.conversations) throw usage_error("--preview requires --messages-key");
  line.preview = given["preview"].as<std::int64_t>();
  if (*line.preview < 1) {
    throw usage_error(
        fmt::format("--preview {}: expected the number of a line, from 1", *line.preview));
  }
}

// Returns the options of the requested tokenizer. There is no default: a user who names no
// tokenizer rarely wants the byte tokenizer.
tokenizer::tokenizer_options required_tokenizer(const po::variables_map& given) {
  if (auto options = tokenizer::tokenizer_options_of(given)) return *std::move(options);
  throw usage_error(fmt::format("--tokenizer-type is required: {}", tokenizer::types_and_files));
}

// Megatron's flags that have no effect without other flags, or none at all on the output.
std::vector<std::string> unused_flags(const po::variables_map& given) {
  std::vector<std::string> names = {"padded-vocab-size", "no-pad-vocab-size", "use-gigatoken"};
  const auto depends = [&](const char* on, std::initializer_list<const char*> flags) {
    if (given.count(on) == 0) names.insert(names.end(), flags.begin(), flags.end());
  };
  depends("split-sentences", {"keep-newlines", "lang"});
  depends("find-optimal-num-workers", {"workers-to-check", "max-documents", "performance-dir"});
  std::erase_if(names, [&](const std::string& name) { return given.count(name) == 0; });
  for (std::string& name : names) name.insert(0, "--");
  return names;
}

void take_tokenizer(const po::variables_map& given, program_flags& line) {
  line.tokenizer = required_tokenizer(given);
  line.unused = unused_flags(given);
  for (const char* flag : {"tokenizer-hf-no-use-fast", "trust-remote-code"}) {
    if (given.count(flag) != 0) line.unused.push_back(std::string("--") + flag);
  }
  for (std::string& flag : or_misuse([&] { return drop_unused_flags(line.tokenizer); })) {
    line.unused.push_back(std::move(flag));
  }
}

void take_sentences(const po::variables_map& given, run_options& run) {
  if (given.count("split-sentences") == 0) return;
  run.sentences.emplace();
  run.sentences->keep_newlines = given.count("keep-newlines") != 0;
  take<std::string>(given, "lang", run.sentences->language);
  or_misuse([&] { return locale_of_language(run.sentences->language); });
  // Only for its exception: in a build without ICU, throw before the run starts.
  (void)sentence_splitter(run.sentences->language, run.sentences->keep_newlines);
}

void take_watching(const po::variables_map& given, program_flags& line) {
  line.dry_run = given.count("dry-run") != 0;
  std::string text;
  if (take<std::string>(given, "metrics", text)) line.metrics = text;
  if (!take<std::string>(given, "metrics-format", text)) return;
  if (!line.metrics) throw usage_error("--metrics-format requires --metrics");
  line.metrics_as = or_misuse([&] { return metrics_format_of(text); });
}

void take_zstd_memory(const po::variables_map& given, program_flags& line) {
  std::int64_t megabytes = 0;
  if (!take<std::int64_t>(given, "zstd-memory", megabytes)) return;
  constexpr auto least = static_cast<std::int64_t>(least_zstd_window_bytes >> 20);
  constexpr auto most = static_cast<std::int64_t>(most_zstd_window_bytes >> 20);
  if (megabytes < least || megabytes > most) {
    throw usage_error(
        fmt::format("--zstd-memory {}: expected {} to {} MB", megabytes, least, most));
  }
  line.zstd_window_bytes = static_cast<std::uint64_t>(megabytes) << 20;
}

void take_trials(const po::variables_map& given, program_flags& line) {
  if (given.count("find-optimal-num-workers") == 0) return;
  for (const char* flag : {"task", "resume", "dry-run", "preview", "metrics"}) {
    if (given.count(flag) == 0) continue;
    throw usage_error(
        fmt::format("--find-optimal-num-workers measures short trials; omit --{}", flag));
  }
  if (given.count("workers") != 0) line.unused.emplace_back("--workers");
  trial_options trials{.workers = usual_workers(std::min(usable_cores(), most_workers))};
  if (take<std::vector<int>>(given, "workers-to-check", trials.workers)) {
    for (const int workers : trials.workers) {
      if (workers >= 1 && workers <= most_workers) continue;
      throw usage_error(
          fmt::format("--workers-to-check {}: expected 1 to {}", workers, most_workers));
    }
    std::ranges::sort(trials.workers);
    trials.workers.erase(std::unique(trials.workers.begin(), trials.workers.end()),
                         trials.workers.end());
  }
  take<std::int64_t>(given, "max-documents", trials.documents);
  if (trials.documents < 1) {
    throw usage_error(fmt::format("--max-documents {}: expected 1 or more", trials.documents));
  }
  if (given.count("tokenizer-memory") != 0) trials.tokenizer_bytes = line.run.tokenizer_bytes;
  std::string folder;
  if (take<std::string>(given, "performance-dir", folder)) line.performance_in = folder;
  line.trials = std::move(trials);
}

void take_task(const po::variables_map& given, program_flags& line) {
  std::string text;
  if (!take<std::string>(given, "task", text)) return;
  if (line.dry_run) throw usage_error("--dry-run estimates all tasks together; omit --task");
  line.task =
      or_misuse([&] { return task_of(text, [](const char* name) { return std::getenv(name); }); });
  line.run.output_prefix = task_prefix(line.run.output_prefix, *line.task);
}

void take_partitions(const po::variables_map& given, run_options& run) {
  if (take<int>(given, "partitions", run.partitions) &&
      (run.partitions < 1 || run.partitions > most_partitions)) {
    throw usage_error(
        fmt::format("--partitions {}: expected 1 to {}", run.partitions, most_partitions));
  }
  if (given.count("keep-sequential-samples") != 0) run.partitions = 1;
  if (run.partitions > 1 && given.count("task") != 0) {
    throw usage_error(
        "--partitions depends on line numbers, and a task does not know how many lines precede its "
        "own; omit --task, or keep the input order with --keep-sequential-samples");
  }
}

void take_sample(const po::variables_map& given, run_options& run) {
  std::string text;
  const bool seeded = take<std::string>(given, "sample-seed", text);
  sample_options sample;
  if (seeded && !parse_number(text, sample.seed)) {
    throw usage_error(fmt::format("--sample-seed {}: expected 0 to 2^64 - 1", text));
  }
  if (!take<std::string>(given, "sample-rate", text)) {
    if (seeded) throw usage_error("--sample-seed requires --sample-rate");
    return;
  }
  if (!parse_number(text, sample.rate) || !(sample.rate > 0 && sample.rate <= 1)) {
    throw usage_error(
        fmt::format("--sample-rate {}: expected a number above 0, at most 1, e.g. 0.01", text));
  }
  if (sample.rate < 1) run.sample = sample;  // a rate of 1 is no sample
}

void take_most_tokens(const po::variables_map& given, run_options& run) {
  std::int64_t most = 0;
  if (!take<std::int64_t>(given, "max-tokens", most)) return;
  if (most < 1) throw usage_error(fmt::format("--max-tokens {}: expected 1 or more", most));
  run.most_tokens = most;
}

void take_duplicates(const po::variables_map& given, run_options& run) {
  std::string by;
  std::int64_t megabytes = 0;
  const bool is_limited = take<std::int64_t>(given, "memory", megabytes);
  if (!take<std::string>(given, "drop-duplicates", by)) {
    if (is_limited) throw usage_error("--memory requires --drop-duplicates");
    return;
  }
  for (const duplicates_by each : {duplicates_by::ids, duplicates_by::text}) {
    if (by == name_of(each)) run.drop_duplicates = each;
  }
  if (!run.drop_duplicates) {
    throw usage_error(fmt::format("--drop-duplicates {}: expected ids or text", by));
  }
  if (is_limited) run.duplicates_bytes = duplicates_bytes_of(megabytes);
  if (run.keys.size() > 1) {
    throw usage_error(
        "--drop-duplicates: a document may be a duplicate for one key and not for another, so the "
        "datasets would not fit together; run it for each key, or give one key");
  }
  if (run.partitions > 1) {
    throw usage_error(
        "--drop-duplicates keeps the first of equal documents in input order, which --partitions "
        "changes; omit one of them, or keep the input order with --keep-sequential-samples");
  }
  if (run.drop_duplicates == duplicates_by::ids) expect_xxhash();
}

void take_run(const po::variables_map& given, run_options& run) {
  // A preview, which writes nothing, needs no prefix.
  run.output_prefix = "preview";
  take<std::string>(given, "output-prefix", run.output_prefix);
  const auto name = run.output_prefix.filename();
  if (name.empty() || name == "." || name == "..") {
    throw usage_error(
        fmt::format("--output-prefix '{}': expected a folder and the start of a "
                    "file name, e.g. out/web",
                    run.output_prefix.string()));
  }
  take_keys(given, run);
  take_sentences(given, run);
  (void)or_misuse([&] { return output_prefixes(run); });
  take_partitions(given, run);
  run.fim = fim_options_of(given);
  take_sample(given, run);
  take_most_tokens(given, run);
  take_duplicates(given, run);
  run.append_eod = given.count("append-eod") != 0;
  run.overwrite = given.count("overwrite") != 0;
  run.resume = given.count("resume") != 0;
  if (run.overwrite && run.resume) {
    throw usage_error("--resume and --overwrite exclude each other; pass one of them");
  }
  run.trust_inputs = given.count("trust-inputs") != 0;
  if (run.trust_inputs && !run.resume) throw usage_error("--trust-inputs requires --resume");
  run.provenance = given.count("no-provenance") == 0;
  run.checksums = given.count("no-checksums") == 0;
  run.cores = usable_cores();
  run.workers = std::min(run.cores, most_workers);
  take<int>(given, "workers", run.workers);
  if (run.workers < 1 || run.workers > most_workers) {
    throw usage_error(fmt::format("--workers {}: expected 1 to {}", run.workers, most_workers));
  }
  std::int64_t megabytes = 0;
  if (take<std::int64_t>(given, "tokenizer-memory", megabytes)) {
    constexpr std::int64_t most = 1 << 20;
    if (megabytes < 0 || megabytes > most) {
      throw usage_error(fmt::format("--tokenizer-memory {}: expected 0 to {} MB", megabytes, most));
    }
    run.tokenizer_bytes = static_cast<std::size_t>(megabytes) << 20;
  }
  std::string policy = "fail";
  take<std::string>(given, "on-bad-record", policy);
  if (policy == "skip") {
    run.on_bad_record = bad_record_policy::skip;
  } else if (policy == "quarantine") {
    run.on_bad_record = bad_record_policy::quarantine;
  } else if (policy != "fail") {
    throw usage_error(fmt::format("--on-bad-record {}: expected fail, skip or quarantine", policy));
  }
  std::int64_t most = 0;
  if (take<std::int64_t>(given, "max-bad-records", most)) {
    if (most < 0) throw usage_error(fmt::format("--max-bad-records {}: expected 0 or more", most));
    if (policy == "fail") {
      throw usage_error("--max-bad-records requires --on-bad-record skip or quarantine");
    }
    run.most_bad_records = most;
  }
}

// Returns the requested help group, or an empty string for the first screen.
std::string help_group_of(const po::variables_map& given) {
  const auto words = given["help"].as<std::vector<std::string>>();
  if (words.empty()) return "";
  constexpr std::array groups = {"files", "choice",    "work", "tokenizer",
                                 "chat",  "sentences", "fim",  "all"};
  if (words.size() == 1 && std::ranges::find(groups, words.front()) != groups.end()) {
    return words.front();
  }
  throw usage_error(fmt::format(
      "--help {}: expected files, choice, work, tokenizer, chat, sentences, fim, all or no value",
      words.front()));
}

}  // namespace

program_flags parse_command_line(int argc, const char* const* argv, program which) {
  const po::variables_map given = command::parse_flags(argc, argv, all_groups(which));
  program_flags line;
  line.help = given.count("help") != 0;
  line.version = given.count("version") != 0;
  if (line.help) line.help_group = help_group_of(given);
  if (line.help || line.version) return line;
  if (given.count("input") == 0) {
    throw usage_error("--input is required: files, patterns or folders of JSON lines");
  }
  if (given.count("output-prefix") == 0 && given.count("preview") == 0) {
    throw usage_error("--output-prefix is required: the start of the names of the output files");
  }
  line.inputs = given["input"].as<std::vector<std::string>>();
  line.json = given.count("json") != 0;
  take<std::int64_t>(given, "log-interval", line.log_interval);
  if (line.log_interval < 1) {
    throw usage_error(fmt::format("--log-interval {}: expected 1 or more", line.log_interval));
  }
  take_tokenizer(given, line);
  take_conversations(given, line);
  take_watching(given, line);
  take_zstd_memory(given, line);
  if (line.conversations && given.count("drop-duplicates") != 0 &&
      given["drop-duplicates"].as<std::string>() == name_of(duplicates_by::text)) {
    throw usage_error(
        "--drop-duplicates text compares the texts of documents, and a conversation has several; "
        "pass --drop-duplicates ids");
  }
  if (line.conversations) line.run.keys = {plain_key(line.conversations->training.messages_key)};
  take_run(given, line.run);
  line.workers_told = given.count("workers") != 0;
  take_task(given, line);
  take_trials(given, line);
  line.run.tokenizer_type = line.tokenizer.type;
  line.run.tokenizer_flags = tokenizer::flags_for_files(line.tokenizer);
  return line;
}

table_columns columns_of(const program_flags& line) {
  table_columns columns;
  if (!line.conversations) {
    for (const text_key& key : line.run.keys) columns.paths.push_back(key.path);
    return columns;
  }
  const auto& training = line.conversations->training;
  columns.paths = {{training.messages_key},
                   {training.tools_key},
                   {"prompt"},
                   {"completion"},
                   {"instruction"},
                   {"input"},
                   {"output"}};
  columns.all = false;
  return columns;
}

std::optional<std::string> note_on_unused(const program_flags& line) {
  if (line.unused.empty()) return std::nullopt;
  return fmt::format("note: these flags have no effect here: {}", fmt::join(line.unused, ", "));
}

void expect_eod(const tokenizer::tokenizer& tokenizer, const program_flags& line) {
  if (!line.run.append_eod || tokenizer.eod()) return;
  throw config_error("--append-eod: " + tokenizer::missing_eod(line.tokenizer));
}

const char* usage_of(program which) {
  return which == program::alone
             ? "usage: preprocess_data --input FILE ... --output-prefix PREFIX "
               "--tokenizer-type TYPE [OPTIONS]"
             : "usage: mpirun -n N preprocess_data_mpi --input FILE ... --output-prefix PREFIX "
               "--tokenizer-type TYPE [OPTIONS]";
}

std::string optional_parts() {
  const std::string icu = icu_version();
  return tokenizer::optional_parts() + ", " + optional_input_parts() + ", " +
         parquet::optional_codecs() + ", " + (icu.empty() ? "without ICU" : "ICU " + icu) + ", " +
         optional_xxhash() + ", " + MILLRACE_MPI_PART;
}

std::string help_text(program which, const std::string& group) {
  std::ostringstream text;
  const bool all = group == "all";
  if (group.empty()) {
    const bool alone = which == program::alone;
    text << usage_of(which) << "\n\n"
         << (alone ? what_it_does : what_they_do) << first_screen << (alone ? flags_of_one : "")
         << (alone ? example_of_one : example_of_many) << last_lines;
    return text.str();
  }
  if (all) text << usage_of(which) << "\n\n";
  if (all || group == "files") text << files_group();
  if (all) text << '\n';
  if (all || group == "choice") text << choice_group(which);
  if (all) text << '\n';
  if (all || group == "work") text << work_group(which);
  if (all) text << '\n';
  if (all || group == "tokenizer") text << tokenizer::tokenizer_flags();
  if (all) text << '\n';
  if (all || group == "chat") text << conversation_group(which == program::alone);
  if (all) text << '\n';
  if (all || group == "fim") text << fim_group();
  if (all) text << "\nOthers:\n  --help [GROUP]\n  --version\n\n";
  if (all || group == "sentences") text << sentence_splitter_words();
  if (all) text << last_lines;
  return text.str();
}

}  // namespace millrace::preprocess
