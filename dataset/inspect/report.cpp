// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <millrace/command/shell_word.hpp>
#include <millrace/dataset/detail/run/source_documents.hpp>
#include <millrace/dataset/detail/sidecar_paths.hpp>
#include <millrace/dataset/detail/verify.hpp>
#include <millrace/dataset/diff.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/dataset/statistics.hpp>
#include <millrace/formats/detail/json_writer.hpp>
#include <millrace/formats/detail/sha256.hpp>
#include <millrace/io/atomic_file.hpp>
#include <millrace/tokenizer/tokenizer_flags.hpp>

#include "command_line.hpp"
#include "data_options.hpp"
#include "dataset_figures.hpp"
#include "dataset_list.hpp"
#include "dataset_tokenizer.hpp"
#include "diff.hpp"
#include "inspect.hpp"
#include "meta.hpp"
#include "progress_line.hpp"
#include "report_page.hpp"
#include "run_flags.hpp"
#include "served_run.hpp"
#include "state_flag.hpp"

namespace millrace::inspect {

namespace po = boost::program_options;

namespace {

using command::shell_word;

const std::string report_help =
    std::string(
        R"(usage: inspect_dataset report PREFIX [PREFIX_B] --output FILE.html [--verify]
           [--documents N] [--redact] [TOKENIZER FLAGS] [RUN FLAGS]

Writes one HTML page about a dataset, or about two side by side: its files,
lengths, token frequencies, inputs, duplicates, and a sample of its documents
with token boundaries. The page needs no network, and no other file.

  PREFIX, PREFIX_B  datasets, without .bin and .idx
  --output FILE     the page; replaced if it exists
  --documents N     documents in the sample (default: 20; at most 200)
  --redact          leave out all texts. Ids stay: with the tokenizer, anybody
                    can decode them; --documents 0 leaves them out
  --verify          verify the checksums in PREFIX.sum, which reads all bytes
  --workers N       threads (default: one per core); affects speed only
  --force           decode even if another tokenizer made a dataset
  --json            print one JSON object: output, bytes

The tokenizer flags are those of preprocess_data; see inspect_dataset show.
With --order and the other flags of a run, the page also has the steps, the
samples and the tokens of this run, by source. Of two datasets, it is a blend.

)") +
    run_flags_help +
    R"(
Exit codes: 0 done, 1 failed, or --verify found damage; 2 wrong flags.

  inspect_dataset report data/web_text_document --output web.html --verify
)";

constexpr std::size_t most_ids = 12;
constexpr std::size_t most_inputs = 25;
constexpr std::int64_t most_documents = 200;

/// What the page shows.
struct report_question {
  std::vector<std::string> prefixes;
  std::string output;
  std::int64_t documents = 20;
  bool redact = false;
  bool verify = false;
  int workers = 1;
  std::string command;          ///< the command line that makes this page
  std::string tokenizer_words;  ///< the tokenizer flags, with a space before each
};

/// The given flags among `flags`, as a shell reads them, with a space before each word.
std::string words_of(const command_line& line, const po::options_description& flags) {
  std::string words;
  for (const auto& flag : flags.options()) {
    const po::variable_value& given = line.values[flag->long_name()];
    if (given.empty() || given.defaulted()) continue;
    words += " --" + flag->long_name();
    const auto add = [&](const auto& each) { words += ' ' + shell_word(fmt::format("{}", each)); };
    const boost::any& value = given.value();
    if (const auto* text = boost::any_cast<std::string>(&value)) add(*text);
    if (const auto* number = boost::any_cast<std::int64_t>(&value)) add(*number);
    if (const auto* texts = boost::any_cast<std::vector<std::string>>(&value)) {
      for (const std::string& each : *texts) add(each);
    }
    if (const auto* numbers = boost::any_cast<std::vector<std::int64_t>>(&value)) {
      for (const std::int64_t each : *numbers) add(each);
    }
  }
  return words;
}

report_question question_of(const command_line& line, const arguments& args) {
  report_question asked;
  asked.prefixes =
      line.find<std::vector<std::string>>("prefix").value_or(std::vector<std::string>());
  if (asked.prefixes.empty()) {
    throw misuse("PREFIX is required: the path of a dataset, without .bin and .idx", report_help);
  }
  if (asked.prefixes.size() > 2) {
    throw misuse(fmt::format("expected one PREFIX or two, found {}; stats counts any number",
                             asked.prefixes.size()),
                 report_help);
  }
  for (const std::string& prefix : asked.prefixes) suggest_dataset(prefix);
  const auto output = line.find<std::string>("output");
  if (!output) throw misuse("--output is required: the HTML file to write", report_help);
  asked.output = *output;
  asked.documents = count_of(line, "documents", 0, report_help).value_or(asked.documents);
  if (asked.documents > most_documents) {
    throw misuse(fmt::format("--documents {}: expected at most {}, so that the page stays small",
                             asked.documents, most_documents),
                 report_help);
  }
  asked.redact = line.values["redact"].as<bool>();
  asked.verify = line.values["verify"].as<bool>();
  asked.workers = static_cast<int>(
      std::min<std::int64_t>(count_of(line, "workers", 1, report_help)
                                 .value_or(std::max(1U, std::thread::hardware_concurrency())),
                             1024));
  asked.command = std::string(program_name) + " report";
  for (const std::string& word : args) asked.command += ' ' + shell_word(word);
  po::options_description tokenizer_flags;
  add_tokenizer_flags(tokenizer_flags);
  asked.tokenizer_words = words_of(line, tokenizer_flags);
  return asked;
}

// --- one dataset --------------------------------------------------------------------------------

/// What is known about the checksums of a dataset.
struct checksum_state {
  const char* state = "none";
  std::string text = "no .sum, so nothing proves that the files are unchanged";
};

checksum_state checksums_of(const std::filesystem::path& prefix, bool verify, int workers) {
  if (!std::filesystem::exists(dataset::sidecar_paths(prefix).sum)) return {};
  if (!verify) return {"present", "present, not verified; --verify does it"};
  std::int64_t total = 0;
  for (const char* suffix : {".idx", ".bin"}) {
    auto path = prefix;
    total += static_cast<std::int64_t>(std::filesystem::file_size(path += suffix));
  }
  progress_line progress("verified", "byte", total);
  try {
    const auto sums =
        dataset::verify_sums(prefix, {.workers = workers, .progress = [&](std::uint64_t bytes) {
                                        progress.show(static_cast<std::int64_t>(bytes));
                                      }});
    if (!sums) return {};
    return {
        "verified",
        fmt::format("all bytes match, root {}{}", sums->root,
                    sums->are_original ? "" : "; computed by a repair, earlier changes unknown")};
  } catch (const format_error& e) {
    return {"damaged", e.what()};
  }
}

/// Some ranks of all, the closer to each other the lower they are, with the counts of their ids.
void write_ranks(formats::json_writer& json, const std::vector<std::int64_t>& ranked) {
  json.key("ranks").open('[');
  for (std::size_t rank = 1; rank <= ranked.size();) {
    json.open('[').value(rank).value(ranked[rank - 1]).close(']');
    if (rank == ranked.size()) break;
    rank = std::min(ranked.size(), std::max(rank + 1, rank * 21 / 20));
  }
  json.close(']');
}

/// The numbers of `count` documents, evenly spread.
std::vector<std::int64_t> spread(std::int64_t count, std::int64_t documents) {
  std::vector<std::int64_t> numbers;
  count = std::min(count, documents);
  for (std::int64_t i = 0; i < count; ++i) {
    numbers.push_back(count == 1 ? 0 : i * (documents - 1) / (count - 1));
  }
  return numbers;
}

void write_documents(formats::json_writer& json, const dataset::indexed_dataset& data,
                     const dataset_figures& figures, const report_question& asked) {
  const auto tokens_each =
      std::clamp<std::int64_t>(24'000 / std::max<std::int64_t>(asked.documents, 1), 60, 600);
  const dataset::source_documents sources(data.prefix());
  json.key("documents").open('[');
  for (const std::int64_t number : spread(asked.documents, data.document_count())) {
    const dataset::token_view tokens = data.document_tokens(number);
    std::vector<std::int64_t> ids;
    for (std::int64_t i = 0; i < std::min(tokens.size(), tokens_each); ++i) {
      ids.push_back(tokens[i]);
    }
    json.open('{').key("document").value(number).key("tokens").value(tokens.size());
    json.key("ids").open('[');
    for (const std::int64_t id : ids) json.value(id);
    json.close(']').key("texts");
    if (figures.tokenizer && !asked.redact) {
      json.open('[');
      for (const std::string& text : tokenizer::decode_each(*figures.tokenizer, ids)) {
        json.value(text);
      }
      json.close(']');
    } else {
      json.null();
    }
    write_source(json, sources.read_from(number));
    json.key("command").value(fmt::format("{} show {} --doc {}{}", program_name,
                                          shell_word(data.prefix().native()), number,
                                          asked.tokenizer_words));
    json.close('}');
  }
  json.close(']');
}

void write_duplicates(formats::json_writer& json, const std::vector<dataset::indexed_dataset>& data,
                      int workers) {
  progress_line progress("compared", "token", data.front().token_count());
  const auto found = dataset::find_duplicates(
      data, {}, {.workers = workers, .progress = [&](std::int64_t done, std::int64_t total) {
                   progress.show(done, total);
                 }});
  json.key("duplicates").open('{').key("documents").value(found.documents);
  json.key("tokens").value(found.tokens).key("group_count").value(found.group_count);
  json.key("groups").open('[');
  for (const dataset::duplicate_group& group : found.groups) {
    json.open('{').key("copies").value(group.copies).key("tokens").value(group.tokens);
    json.key("places").open('[');
    for (const dataset::document_place& place : group.places) json.value(place.document);
    json.close(']').close('}');
  }
  json.close(']').close('}');
}

void write_commands(formats::json_writer& json, const std::string& prefix,
                    const report_question& asked) {
  const std::string word = shell_word(prefix);
  const auto add = [&](const char* key, const std::string& rest) {
    json.key(key).value(fmt::format("{} {}", program_name, rest));
  };
  json.key("commands").open('{');
  add("info", "info " + word);
  add("verify", "verify " + word);
  add("stats", "stats " + word + asked.tokenizer_words);
  add("frequencies", "stats " + word + " --frequencies ids.tsv" + asked.tokenizer_words);
  add("duplicates", "stats " + word + " --duplicates" + asked.tokenizer_words);
  json.close('}');
}

/// Writes all about one dataset. Returns its checksum state.
checksum_state write_side(formats::json_writer& json, const std::string& prefix,
                          dataset_tokenizers& tokenizers, const report_question& asked) {
  std::vector<dataset::indexed_dataset> data;
  data.emplace_back(prefix);
  const auto meta = find_meta(data.front());
  dataset_figures figures = figures_of(data, tokenizers, std::nullopt, asked.workers);
  const std::size_t input_count = figures.inputs ? figures.inputs->size() : 0;
  if (input_count > most_inputs) figures.inputs->resize(most_inputs);
  if (asked.redact) figures.hide_texts = true;
  json.open('{').key("prefix").value(prefix).key("figures").open('{');
  write_figures(json, figures, most_ids);
  json.close('}').key("input_count").value(input_count);
  json.key("files").open('{').key("dtype").value(formats::name(data.front().type()));
  json.key("bin_bytes").value(data.front().bin_size_bytes());
  json.key("idx_bytes").value(data.front().idx_size_bytes()).key("tokenizer");
  if (meta) {
    json.open('{').key("type").value(meta->tokenizer.type);
    json.key("vocab_size").value(meta->tokenizer.vocab_size).close('}');
  } else {
    json.null();
  }
  json.close('}');
  checksum_state sums = checksums_of(data.front().prefix(), asked.verify, asked.workers);
  json.key("checksums").open('{').key("state").value(sums.state).key("text").value(sums.text);
  json.close('}');
  write_ranks(json, figures.counts.ids.ranked());
  write_duplicates(json, data, asked.workers);
  write_documents(json, data.front(), figures, asked);
  write_commands(json, prefix, asked);
  json.close('}');
  return sums;
}

// --- two datasets -------------------------------------------------------------------------------

/// What `diff` finds out about the two datasets of a page. Null if it cannot compare them.
void write_difference(formats::json_writer& json, const report_question& asked) {
  json.key("difference");
  if (asked.prefixes.size() != 2) return (void)json.null();
  const dataset::open_options checked{.check = dataset::check_level::full};
  const dataset::indexed_dataset a(asked.prefixes[0], checked);
  const dataset::indexed_dataset b(asked.prefixes[1], checked);
  const auto is_float = [](const dataset::indexed_dataset& data) {
    return data.type() == formats::dtype::float32 || data.type() == formats::dtype::float64;
  };
  if (is_float(a) != is_float(b)) return (void)json.null();
  progress_line progress("compared", "token", std::min(a.token_count(), b.token_count()));
  const auto found = dataset::diff_datasets(
      a, b,
      {.workers = asked.workers, .progress = [&](std::int64_t tokens) { progress.show(tokens); }});
  json.open('{').key("same").value(found.same());
  json.key("both_have_modes").value(found.both_have_modes).key("first");
  if (!found.first) {
    json.null();
  } else if (found.first->kind == dataset::difference_kind::document_count) {
    const bool a_ends = found.first->a < found.first->b;
    json.value(fmt::format("{} ends after {} and is the start of the other",
                           asked.prefixes[a_ends ? 0 : 1],
                           grouped(found.first->document, "document")));
  } else {
    json.value(first_text(*found.first));
  }
  json.key("in_place");
  if (found.in_place) {
    json.open('{').key("documents").value(found.in_place->documents);
    json.key("tokens").value(found.in_place->tokens).close('}');
  } else {
    json.null();
  }
  json.key("common").value(found.common).key("only_in_a").value(found.only_in_a);
  json.key("only_in_b").value(found.only_in_b).key("moved").value(found.moved);
  json.key("command").value(fmt::format("{} diff {} {}{}", program_name,
                                        shell_word(asked.prefixes[0]),
                                        shell_word(asked.prefixes[1]), asked.tokenizer_words));
  json.close('}');
}

// --- a run --------------------------------------------------------------------------------------

/// The flags of the run. Of two datasets, the run serves a blend, unless --data-path names another.
command_line run_line_of(command_line line, const report_question& asked) {
  if (line.find<std::vector<std::string>>("data-path")) {
    line.values.erase("prefix");
  } else if (asked.prefixes.size() > 1) {
    line.values.erase("prefix");
    line.values.insert_or_assign("data-path",
                                 po::variable_value(boost::any(asked.prefixes), false));
  }
  return line;
}

/// What a run serves, from the flags of the run, as JSON.
std::string run_json(const command_line& line) {
  const run_configuration run = run_configuration_of(line, report_help);
  const served_run served = served_run_of(run, report_help);
  const std::int64_t samples = std::min(run.samples, run.order->end());
  const std::int64_t per_step = run.sampler.samples_of_step();
  formats::json_writer json;
  json.open('{').key("order").value(*line.find<std::string>("order"));
  json.key("seq_length").value(run.order->seq_len()).key("ranks").value(run.sampler.world_size);
  json.key("samples").value(samples).key("samples_per_step").value(per_step);
  json.key("steps").value(served.ranks.end_of_whole_steps(served.end));
  json.key("assumed").value(assumptions_of(line, run, false)).key("sources").open('[');
  for (std::int64_t s = 0; s < run.order->source_count(); ++s) {
    const std::string prefix = run.order->prefix(s).native();
    json.open('{').key("prefix").value(prefix).key("samples").value(run.order->taken(s, samples));
    json.key("tokens").value(dataset::indexed_dataset(prefix).token_count()).close('}');
  }
  json.close(']');
  std::string command = std::string(program_name) + " audit";
  if (const auto prefixes = line.find<std::vector<std::string>>("prefix")) {
    command += ' ' + shell_word(prefixes->front());
  }
  po::options_description flags;
  add_run_flags(flags);
  add_state_flag(flags);
  command += words_of(line, flags);
  return json.key("command").value(command).close('}').text();
}

// --- the page -----------------------------------------------------------------------------------

/// JSON that is safe inside a script element: it has no character that could end the element.
std::string safe_json(const std::string& json) {
  std::string safe;
  for (const char c : json) {
    if (c == '<' || c == '>' || c == '&') {
      safe += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      safe += c;
    }
  }
  return safe;
}

/// The source of a content security policy that allows this text only.
std::string hash_source(std::string_view text) {
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto digest = formats::sha256().update(text).finish();
  std::string base64;
  for (std::size_t i = 0; i < digest.size(); i += 3) {
    const auto byte = [&](std::size_t k) {
      return i + k < digest.size() ? std::uint32_t{digest[i + k]} : 0U;
    };
    const std::uint32_t bits = byte(0) << 16 | byte(1) << 8 | byte(2);
    for (std::size_t k = 0; k < 4; ++k) {
      base64 += i + k > digest.size() ? '=' : digits[bits >> (18 - 6 * k) & 63];
    }
  }
  return "'sha256-" + base64 + "'";
}

std::string page_of(const std::string& json) {
  constexpr std::string_view style_begin = "<style>";
  const std::size_t style = report_page.find(style_begin) + style_begin.size();
  const std::string_view style_text =
      report_page.substr(style, report_page.find("</style>", style) - style);
  const std::pair<std::string_view, std::string> parts[] = {
      {"@POLICY@", fmt::format("default-src 'none'; style-src {}; script-src {}; base-uri 'none'; "
                               "form-action 'none'",
                               hash_source(style_text), hash_source(report_script))},
      {"@DATA@", safe_json(json)},
      {"@SCRIPT@", std::string(report_script)},
  };
  std::string page;
  std::string_view rest = report_page;
  for (const auto& [mark, text] : parts) {
    const std::size_t at = rest.find(mark);
    page += rest.substr(0, at);
    page += text;
    rest.remove_prefix(at + mark.size());
  }
  return page += rest;
}

int write_report(const command_line& line, const report_question& asked) {
  dataset_tokenizers tokenizers(line, report_help);
  const std::string run =
      line.find<std::string>("order") ? run_json(run_line_of(line, asked)) : "null";
  io::atomic_file file(asked.output);  // fails early if it cannot be written
  formats::json_writer json;
  json.open('{').key("version").value(std::string_view(MILLRACE_VERSION));
  json.key("command").value(asked.command).key("redacted").value(asked.redact);
  json.key("run").raw(run).key("sides").open('[');
  bool is_damaged = false;
  for (const std::string& prefix : asked.prefixes) {
    const checksum_state sums = write_side(json, prefix, tokenizers, asked);
    if (std::string_view(sums.state) != "damaged") continue;
    is_damaged = true;
    command::tell(fmt::format("{}: {}\n", program_name, command::one_line(sums.text)));
  }
  json.close(']');
  write_difference(json, asked);
  const std::string page = page_of(json.close('}').text());
  file.append(std::as_bytes(std::span(page)));
  file.commit();
  if (line.json) {
    formats::json_writer answer;
    answer.open('{').key("output").value(asked.output).key("bytes").value(page.size());
    command::answer(answer.close('}').text() + '\n');
  } else {
    command::answer(fmt::format("{}: {}\n", command::one_line(asked.output),
                                grouped(static_cast<std::int64_t>(page.size()), "byte")));
  }
  return is_damaged ? command::exit_failed : command::exit_done;
}

}  // namespace

int report(const arguments& args) {
  po::options_description own;
  add_run_flags(own);
  add_state_flag(own);
  add_tokenizer_flags(own);
  auto add = own.add_options();
  add("output", po::value<std::string>());
  for (const char* flag : {"documents", "workers"}) add(flag, po::value<std::int64_t>());
  for (const char* flag : {"redact", "verify"}) add(flag, po::bool_switch());
  const auto line = parse_run_options(args, own, report_help);
  if (!line) return command::exit_done;
  return write_report(*line, question_of(*line, args));
}

}  // namespace millrace::inspect
