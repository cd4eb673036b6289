// SPDX-License-Identifier: Apache-2.0
#include "diff.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include <millrace/command/terminal.hpp>
#include <millrace/dataset/detail/document_sources.hpp>
#include <millrace/dataset/detail/run/source_documents.hpp>
#include <millrace/dataset/detail/sidecar_paths.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/formats/sum.hpp>

#include "dataset_tokenizer.hpp"
#include "inspect.hpp"
#include "progress_line.hpp"
#include "run_flags.hpp"
#include "served_run.hpp"
#include "show_tokens.hpp"
#include "state_flag.hpp"

namespace millrace::inspect {

namespace po = boost::program_options;

const std::string diff_help =
    R"(usage: inspect_dataset diff A B [--json] [TOKENIZER FLAGS]
       inspect_dataset diff RUN FLAGS -- FLAGS THAT CHANGE [--json]

Compares A and B: two datasets, two saved states, or what a run serves with some
of its flags changed. Flags after -- replace those before it.

Datasets are the same if they have the same documents in the same order: the
same ids, in sequences of the same lengths. Types may differ. Prints the first
difference, and which documents only one of them has, wherever they are.

States: prints each field that differs, and whether a run with B's options can
resume from A. If the data is there, it also compares what the two runs serve.

Runs are the same if every step consists of the same samples in the same order.
It does not matter which rank serves a sample. So a run that resumes with
another number of ranks is the same. If B starts later (--consumed-samples),
they are compared from there on. A last step that is not complete does not
count, unless --no-drop-last serves it.

  A, B             prefixes of datasets, without .bin and .idx; or JSON files
                   with states
  RUN FLAGS        as in inspect_dataset where; see inspect_dataset --help run
  --list N         list the first N documents or ranges (default: 10)
  --context N      print N tokens around the first difference (default: 8)
  --workers N      threads (default: one per core); affects speed only
  --force          decode even if another tokenizer made a dataset
  --json           print one JSON object; its "same" is true or false

Exit codes: 0 same, 1 different, 2 wrong flags, 4 could not finish.

  inspect_dataset diff data/old_text_document data/new_text_document
  inspect_dataset diff checkpoints/100/state.json checkpoints/200/state.json
  inspect_dataset diff data/web_text_document --order megatron \
      --seq-length 4096 --global-batch-size 768 --ranks 64 -- --ranks 48
)";

std::string first_text(const dataset::first_difference& at) {
  switch (at.kind) {
    case dataset::difference_kind::token:
      return fmt::format("document {}, token {} (sequence {}, token {})", at.document,
                         at.document_token, at.sequence, at.token);
    case dataset::difference_kind::sequence_length:
      return fmt::format("document {}, the length of sequence {}, after {}", at.document,
                         at.sequence, grouped(at.token, "equal token"));
    case dataset::difference_kind::sequence_count:
      return fmt::format("document {}, the number of its sequences", at.document);
    case dataset::difference_kind::mode:
      return fmt::format("document {}, the mode of sequence {}", at.document, at.sequence);
    case dataset::difference_kind::document_count:
      break;
  }
  const bool a_ends = at.a < at.b;
  return fmt::format("{} ends here: it is the start of {}", a_ends ? 'A' : 'B', a_ends ? 'B' : 'A');
}

namespace {

constexpr std::int64_t usual_listed = 10;
constexpr std::int64_t usual_tokens_around = 8;

/// One of the two datasets, and what is known about it.
struct side {
  explicit side(const std::string& prefix) : data(prefix, {.check = dataset::check_level::full}) {
    const auto path = dataset::sidecar_paths(data.prefix()).sum;
    if (const auto file = dataset::map_sidecar(path)) {
      try {
        root = formats::root_hex(formats::parse_sum(file->bytes()));
      } catch (const format_error& e) {
        throw e.in(path);
      }
    }
  }

  std::string text() const {
    return fmt::format("{}: {}, {}, {} of {}", command::one_line(data.prefix().native()),
                       grouped(data.document_count(), "document"),
                       grouped(data.sequence_count(), "sequence"),
                       grouped(data.token_count(), "token"), name(data.type()));
  }

  void write(formats::json_writer& json) const {
    json.open('{').key("prefix").value(data.prefix().native());
    json.key("dtype").value(formats::name(data.type()));
    json.key("documents").value(data.document_count());
    json.key("sequences").value(data.sequence_count());
    json.key("tokens").value(data.token_count()).key("sum_root");
    root ? json.value(*root) : json.null();
    json.close('}');
  }

  dataset::indexed_dataset data;
  std::optional<std::string> root;  ///< of its checksums
};

/// The surroundings of the first difference in one dataset.
struct surroundings {
  std::vector<std::int64_t> ids;
  std::int64_t first = 0;  ///< offset of the first of these ids in the document
  std::optional<std::vector<std::string>> texts;
  std::optional<dataset::record_place> source;
};

surroundings surroundings_of(const side& of, const dataset::first_difference& at,
                             std::int64_t context, dataset_tokenizers& tokenizers) {
  surroundings found;
  if (at.document >= of.data.document_count()) return found;
  if (const auto sources = dataset::document_sources::find(of.data)) {
    const formats::source_place place = sources->at(at.document);
    found.source = dataset::record_place{std::string(sources->input_name(place.input)), place.line,
                                         place.begin, place.end, sources->input_unit(place.input)};
  }
  const auto type = of.data.type();
  if (type == formats::dtype::float32 || type == formats::dtype::float64) return found;
  const dataset::token_view ids = of.data.document_tokens(at.document);
  found.first = std::clamp<std::int64_t>(at.document_token - context, 0, ids.size());
  const std::int64_t last = std::min(at.document_token + context + 1, ids.size());
  const dataset::token_view part =
      ids.subview(found.first, std::max(last, found.first) - found.first);
  found.ids.resize(static_cast<std::size_t>(part.size()));
  part.copy_to(std::span<std::int64_t>(found.ids));
  if (const auto tokenizer = tokenizers.find(of.data)) {
    found.texts = texts_of(*tokenizer, found.ids, 0, std::ssize(found.ids));
  }
  return found;
}

/// The lines about one dataset: the value, and the ids and text around it.
std::string side_text(char which, const side& of, const surroundings& near,
                      const dataset::first_difference& at, std::int64_t value,
                      std::uint64_t offset) {
  const bool colors = command::stdout_has_colors();
  std::string ids;
  std::string before;
  std::string there;
  std::string after;
  for (std::size_t i = 0; i < near.ids.size(); ++i) {
    const std::int64_t token = near.first + static_cast<std::int64_t>(i);
    const bool is_there = token == at.document_token;
    ids += i == 0 ? "" : " ";
    ids += command::inked(is_there ? command::ink::strong : command::ink::plain,
                          is_there ? fmt::format("[{}]", near.ids[i]) : std::to_string(near.ids[i]),
                          colors);
    if (near.texts) {
      (is_there ? there : token < at.document_token ? before : after) += (*near.texts)[i];
    }
  }
  const bool is_token = at.kind == dataset::difference_kind::token;
  std::string text =
      fmt::format("  {}: {}, at byte {} of {}\n", which, value, offset,
                  command::one_line((is_token ? of.data.bin_path() : of.data.idx_path()).native()));
  const auto out = std::back_inserter(text);
  if (near.source) fmt::format_to(out, "    {}\n", origin_text(near.source).substr(2));
  if (near.ids.empty()) return text;
  fmt::format_to(out, "    ids {}\n", ids);
  if (near.texts) {
    fmt::format_to(out, "    {} {} {}\n", command::escaped_text(before),
                   command::inked(command::ink::strong, command::escaped_text(there), colors),
                   command::escaped_text(after));
  }
  return text;
}

std::string numbers_text(const std::vector<std::int64_t>& numbers, std::int64_t all) {
  std::string text;
  for (const std::int64_t each : numbers) {
    text += (text.empty() ? "" : ", ") + std::to_string(each);
  }
  const std::int64_t more = all - std::ssize(numbers);
  if (numbers.empty() || more <= 0) return text;
  return text + fmt::format(" and {} more", grouped(more));
}

std::string datasets_text(const side& a, const side& b, const dataset::dataset_difference& found,
                          const surroundings& near_a, const surroundings& near_b) {
  std::string text = "A: " + a.text() + "\nB: " + b.text() + '\n';
  const auto out = std::back_inserter(text);
  if (a.root && b.root && a.root == b.root) text += "the roots of their checksums are equal\n";
  if (found.same()) {
    text += "same: all documents are equal, in the same order";
    if (a.data.type() != b.data.type()) text += "; only the types of the ids differ";
    return text + '\n';
  }
  if (!found.both_have_modes) {
    fmt::format_to(out, "only {} has modes\n", a.data.is_multimodal() ? 'A' : 'B');
  }
  if (!found.first) return text + "all else is equal\n";
  const dataset::first_difference& at = *found.first;
  text += "first difference: " + first_text(at) + '\n';
  if (at.kind != dataset::difference_kind::document_count) {
    text += side_text('A', a, near_a, at, at.a, at.a_offset);
    text += side_text('B', b, near_b, at, at.b, at.b_offset);
  }
  if (found.in_place) {
    fmt::format_to(out, "all lengths are equal; place by place differ {}, {}, {}\n",
                   grouped(found.in_place->documents, "document"),
                   grouped(found.in_place->sequences, "sequence"),
                   grouped(found.in_place->tokens, "token"));
  }
  fmt::format_to(out, "by content: {} in both, {} only in A, {} only in B\n",
                 grouped(found.common, "document"), grouped(found.only_in_a),
                 grouped(found.only_in_b));
  if (found.moved == 0) {
    text += "the documents in both have the same order\n";
  } else {
    fmt::format_to(out, "of the documents in both, {} moved\n", grouped(found.moved));
  }
  if (!found.first_only_in_a.empty()) {
    fmt::format_to(out, "only in A: {}\n", numbers_text(found.first_only_in_a, found.only_in_a));
  }
  if (!found.first_only_in_b.empty()) {
    fmt::format_to(out, "only in B: {}\n", numbers_text(found.first_only_in_b, found.only_in_b));
  }
  return text;
}

void write_list(formats::json_writer& json, const char* key,
                const std::vector<std::int64_t>& numbers) {
  json.key(key).open('[');
  for (const std::int64_t each : numbers) json.value(each);
  json.close(']');
}

void write_surroundings(formats::json_writer& json, const surroundings& of, std::int64_t value,
                        std::uint64_t offset) {
  json.open('{').key("value").value(value).key("offset_bytes").value(offset);
  write_list(json, "ids", of.ids);
  json.key("first_id").value(of.first).key("texts");
  if (of.texts) {
    json.open('[');
    for (const std::string& each : *of.texts) json.value(each);
    json.close(']');
  } else {
    json.null();
  }
  write_source(json, of.source);
  json.close('}');
}

std::string datasets_json(const side& a, const side& b, const dataset::dataset_difference& found,
                          const surroundings& near_a, const surroundings& near_b) {
  formats::json_writer json;
  json.open('{').key("same").value(found.same()).key("kind").value("datasets");
  json.key("a");
  a.write(json);
  json.key("b");
  b.write(json);
  json.key("both_have_modes").value(found.both_have_modes).key("first");
  if (found.first) {
    const dataset::first_difference& at = *found.first;
    json.open('{').key("kind").value(name(at.kind)).key("document").value(at.document);
    json.key("document_token").value(at.document_token).key("sequence").value(at.sequence);
    json.key("token").value(at.token).key("a");
    write_surroundings(json, near_a, at.a, at.a_offset);
    json.key("b");
    write_surroundings(json, near_b, at.b, at.b_offset);
    json.close('}');
  } else {
    json.null();
  }
  json.key("in_place");
  if (found.in_place) {
    json.open('{').key("documents").value(found.in_place->documents);
    json.key("sequences").value(found.in_place->sequences);
    json.key("tokens").value(found.in_place->tokens).close('}');
  } else {
    json.null();
  }
  json.key("common").value(found.common).key("only_in_a").value(found.only_in_a);
  json.key("only_in_b").value(found.only_in_b).key("moved").value(found.moved);
  write_list(json, "first_only_in_a", found.first_only_in_a);
  write_list(json, "first_only_in_b", found.first_only_in_b);
  return json.close('}').text() + '\n';
}

int diff_datasets(const command_line& line, const std::string& prefix_a,
                  const std::string& prefix_b, dataset::diff_options options) {
  for (const std::string& each : {prefix_a, prefix_b}) suggest_dataset(each);
  dataset_tokenizers tokenizers(line, diff_help);
  const side a(prefix_a);
  const side b(prefix_b);
  dataset::dataset_difference found;
  {
    progress_line progress("compared", "token",
                           std::min(a.data.token_count(), b.data.token_count()));
    options.progress = [&](std::int64_t tokens) { progress.show(tokens); };
    found = dataset::diff_datasets(a.data, b.data, options);
  }
  const std::int64_t context =
      count_of(line, "context", 0, diff_help).value_or(usual_tokens_around);
  surroundings near_a;
  surroundings near_b;
  if (found.first) {
    near_a = surroundings_of(a, *found.first, context, tokenizers);
    near_b = surroundings_of(b, *found.first, context, tokenizers);
  }
  command::answer(line.json ? datasets_json(a, b, found, near_a, near_b)
                            : datasets_text(a, b, found, near_a, near_b));
  return found.same() ? command::exit_done : command::exit_failed;
}

/// True if the word is the path of a file that is not part of a dataset, so it must be a state.
bool is_state(const std::string& word) {
  std::error_code ignored;
  if (std::filesystem::exists(word + ".idx", ignored)) return false;
  const auto extension = std::filesystem::path(word).extension();
  return extension != ".idx" && extension != ".bin" &&
         std::filesystem::is_regular_file(word, ignored);
}

std::string without_idx(const std::string& word) {
  const std::filesystem::path path(word);
  return path.extension() == ".idx" ? std::filesystem::path(path).replace_extension().string()
                                    : word;
}

int answer(const command_line& line, const arguments& before,
           const std::optional<arguments>& changes) {
  dataset::diff_options options;
  options.most_listed = count_of(line, "list", 0, diff_help).value_or(usual_listed);
  options.workers = static_cast<int>(
      std::min<std::int64_t>(count_of(line, "workers", 1, diff_help)
                                 .value_or(std::max(1U, std::thread::hardware_concurrency())),
                             1024));
  if (changes) return diff_runs(line, before, *changes, options);
  const auto words = line.find<std::vector<std::string>>("prefix").value_or(arguments());
  if (line.find<std::string>("order")) {
    throw misuse("the changed flags are required after --, e.g. -- --ranks 48", diff_help);
  }
  if (words.size() != 2) {
    throw misuse(fmt::format("expected two datasets or two states, found {}",
                             counted(std::ssize(words), "name")),
                 diff_help);
  }
  const bool states[] = {is_state(words[0]), is_state(words[1])};
  if (states[0] != states[1]) {
    throw misuse(fmt::format("{} is a file, and {} is not; expected two datasets or two states",
                             words[states[0] ? 0 : 1], words[states[0] ? 1 : 0]),
                 diff_help);
  }
  if (states[0]) return diff_states(words[0], words[1], line.json, options);
  return diff_datasets(line, without_idx(words[0]), without_idx(words[1]), options);
}

}  // namespace

void add_diff_flags(po::options_description& own) {
  add_run_flags(own);
  add_state_flag(own);
  add_tokenizer_flags(own);
  for (const char* flag : {"list", "context", "workers"}) {
    own.add_options()(flag, po::value<std::int64_t>());
  }
}

std::string ranges_text(const std::vector<dataset::position_range>& ranges, std::int64_t all) {
  std::string text;
  for (const auto& [first, last] : ranges) {
    text += text.empty() ? "" : ", ";
    text += last == first + 1 ? grouped(first)
                              : fmt::format("{} to {}", grouped(first), grouped(last - 1));
  }
  const std::int64_t more = all - std::ssize(ranges);
  if (ranges.empty() || more <= 0) return text;
  return text + fmt::format(" and {}", grouped(more, "more range"));
}

int diff(const arguments& args) {
  po::options_description own;
  add_diff_flags(own);
  const auto separator = std::ranges::find(args, "--");
  const arguments before(args.begin(), separator);
  std::optional<arguments> changes;
  if (separator != args.end()) changes.emplace(separator + 1, args.end());
  auto line = parse_run_options(before, own, diff_help);
  if (!line) return command::exit_done;
  // A program may append this flag to any arguments.
  if (changes && std::ranges::find(*changes, "--json") != changes->end()) line->json = true;
  try {
    return answer(*line, before, changes);
  } catch (const command::usage_error&) {
    throw;
  } catch (const std::exception& e) {
    command::tell_error(program_name, e, line->json);
    return command::exit_unfinished;
  }
}

}  // namespace millrace::inspect
