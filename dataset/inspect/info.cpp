// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <boost/program_options.hpp>

#include <fmt/format.h>

#include <millrace/command/run_command.hpp>
#include <millrace/dataset/detail/document_sources.hpp>
#include <millrace/dataset/detail/length_statistics.hpp>
#include <millrace/dataset/detail/megatron/blend_plan.hpp>
#include <millrace/dataset/detail/megatron/gpt_plan.hpp>
#include <millrace/dataset/detail/megatron/split.hpp>
#include <millrace/dataset/detail/neighbour_statistics.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/detail/json_writer.hpp>

#include "command_line.hpp"
#include "data_options.hpp"
#include "dataset_list.hpp"
#include "inspect.hpp"
#include "meta.hpp"
#include "run_flags.hpp"
#include "text_table.hpp"

namespace millrace::inspect {

namespace {

constexpr const char* info_help =
    R"(usage: inspect_dataset info PREFIX... [--seq-length L [FLAGS]] [--json]

Prints what PREFIX.bin and PREFIX.idx hold: type, counts, sizes, lengths. With
a PREFIX.meta, also what it was made from. Never reads the .bin. Warns if
neighboring documents are alike. Prints a table of several datasets.

  PREFIX   path of a dataset, without .bin and .idx; or a folder or a quoted
           pattern, for all datasets there
  --seq-length L   also print the samples and epochs that Megatron makes of it
  --split TEXT     weights of train, valid and test (default: '969, 30, 1')
  --train-samples, --valid-samples, --test-samples N   (default: one epoch)
  --no-extra-token, --keep-partial-validation   see inspect_dataset --help run
  --json   print one JSON object: prefix, dtype, sequences, documents, tokens,
           bin_bytes, idx_bytes, multimodal, empty_sequences, empty_documents,
           sequence_tokens and document_tokens with min, median, mean and max
           (null if there are none), neighbours with length_correlation,
           same_input and same_input_shuffled (null if unknown), meta: the
           contents of PREFIX.meta (null if there is none), and with
           --seq-length megatron: seq_length, split, parts (part, sequences,
           tokens, samples, epochs). Of several: a list "datasets" of these
           without lengths and neighbours, or of prefix and error; and sums

  inspect_dataset info data/web_text_document --json | jq .tokens
  inspect_dataset info 'data/*' --seq-length 4096 --split 98,2,0
)";

/// What Megatron's flags ask for.
struct megatron_question {
  std::string split_text;
  dataset::split_matrix split;
  dataset::gpt_request request;
  dataset::part_sizes samples;
};

/// Returns nullopt without `--seq-length`.
std::optional<megatron_question> megatron_question_of(const command_line& line) {
  const auto seq_length = count_of(line, "seq-length", 1, info_help);
  dataset::part_sizes samples;
  bool has_samples = false;
  for (const dataset::split_part part : dataset::split_parts) {
    auto& own = samples[static_cast<std::size_t>(part)];
    own = count_of(line, samples_flag(part), 1, info_help);
    has_samples = has_samples || own;
  }
  const auto split = line.find<std::string>("split");
  const bool no_extra = line.values["no-extra-token"].as<bool>();
  const bool partial = line.values["keep-partial-validation"].as<bool>();
  if (!seq_length) {
    if (!split && !has_samples && !no_extra && !partial) return std::nullopt;
    throw misuse("--seq-length is required to say what Megatron makes of the data", info_help);
  }
  const std::string text = split.value_or(std::string(dataset::split_matrix::default_text));
  return megatron_question{.split_text = text,
                           .split = dataset::split_matrix(text),
                           .request = {.sequence_length = *seq_length,
                                       .add_extra_token = !no_extra,
                                       .drop_last_partial_validation_sequence = !partial},
                           .samples = samples};
}

std::vector<dataset::gpt_part> parts_of(const dataset::indexed_dataset& data,
                                        const megatron_question& asked) {
  return dataset::plan_gpt_parts(data, asked.split, asked.request, asked.samples);
}

void add_megatron(formats::json_writer& json, const megatron_question& asked,
                  const std::vector<dataset::gpt_part>& parts) {
  json.key("megatron").open('{').key("seq_length").value(asked.request.sequence_length);
  json.key("split").value(asked.split_text).key("parts").open('[');
  for (const auto& [part, plan] : parts) {
    json.open('{').key("part").value(name(part)).key("sequences").value(plan.sequences.size());
    json.key("tokens").value(plan.tokens_per_epoch).key("samples").value(plan.samples);
    json.key("epochs").value(plan.epochs).close('}');
  }
  json.close(']').close('}');
}

/// The counts that the index has in its header.
void add_counts(formats::json_writer& json, const dataset::indexed_dataset& data) {
  json.key("prefix").value(data.prefix().native());
  json.key("dtype").value(formats::name(data.type()));
  json.key("sequences").value(data.sequence_count());
  json.key("documents").value(data.document_count());
  json.key("tokens").value(data.token_count());
  json.key("bin_bytes").value(data.bin_size_bytes());
  json.key("idx_bytes").value(data.idx_size_bytes());
  json.key("multimodal").value(data.is_multimodal());
}

void add_meta_or_null(formats::json_writer& json,
                      const std::optional<formats::dataset_meta>& meta) {
  json.key("meta");
  if (meta) {
    add_meta(json, *meta);
  } else {
    json.null();
  }
}

void add_lengths(formats::json_writer& json, const char* key,
                 const dataset::length_statistics& lengths) {
  json.key(key);
  if (lengths.count == 0) {
    json.null();
    return;
  }
  json.open('{').key("min").value(lengths.min).key("median").value(lengths.median);
  json.key("mean").value(lengths.mean).key("max").value(lengths.max).close('}');
}

/// Formats a nonnegative number, such as a mean, with commas and `digits` decimals.
std::string grouped_decimal(double number, int digits) {
  const std::string text = fmt::format("{:.{}f}", number, digits);
  const std::size_t whole = text.find('.');  // npos without decimals
  return grouped(std::stoll(text.substr(0, whole))) +
         (whole == std::string::npos ? "" : text.substr(whole));
}

std::string lengths_line(const dataset::length_statistics& lengths) {
  if (lengths.count == 0) return "none";
  const bool halved = lengths.median != std::floor(lengths.median);
  return fmt::format("min {}, median {}, mean {}, max {}", grouped(lengths.min),
                     grouped_decimal(lengths.median, halved ? 1 : 0),
                     grouped_decimal(lengths.mean, 2), grouped(lengths.max));
}

void add_neighbours(formats::json_writer& json, const dataset::neighbour_statistics& found) {
  const auto add = [&](const char* key, const std::optional<double>& value) {
    json.key(key);
    if (value) {
      json.value(*value);
    } else {
      json.null();
    }
  };
  json.key("neighbours").open('{');
  add("length_correlation", found.length_correlation);
  add("same_input", found.same_input);
  add("same_input_shuffled", found.same_input_shuffled);
  json.close('}');
}

std::string empty_note(const dataset::length_statistics& lengths) {
  return lengths.empty == 0 ? "" : fmt::format(" ({} empty)", grouped(lengths.empty));
}

// --- several datasets -------------------------------------------------------------------------

/// The table or the list of several datasets, one dataset at a time.
class dataset_listing {
 public:
  explicit dataset_listing(const std::optional<megatron_question>& asked)
      : asked_(asked), table_(names()) {
    json_.open('{').key("datasets").open('[');
  }

  void add(const std::string& prefix) {
    const dataset::indexed_dataset data(prefix);
    const auto meta = find_meta(data);
    std::vector<dataset::gpt_part> parts;
    if (asked_) parts = parts_of(data, *asked_);
    json_.open('{');
    add_counts(json_, data);
    if (asked_) add_megatron(json_, *asked_, parts);
    add_meta_or_null(json_, meta);
    json_.close('}');

    std::vector<std::string> row = {grouped(data.document_count()), grouped(data.token_count()),
                                    std::string(formats::name(data.type()))};
    std::array<std::string, 3> samples;
    samples.fill("-");
    for (const auto& [part, plan] : parts) {
      const auto at = static_cast<std::size_t>(part);
      samples[at] = grouped(plan.samples);
      if (plan.epochs > 1) samples[at] += fmt::format(" ({} epochs)", plan.epochs);
      total_.samples[at] += plan.samples;
    }
    if (asked_) row.insert(row.end(), samples.begin(), samples.end());
    row.push_back(prefix);
    table_.add(std::move(row));
    ++total_.datasets;
    total_.documents += data.document_count();
    total_.sequences += data.sequence_count();
    total_.tokens += data.token_count();
    total_.bin_bytes += data.bin_size_bytes();
  }

  void add_failure(const std::string& prefix, const std::string& what) {
    json_.open('{').key("prefix").value(prefix).key("error").value(what).close('}');
  }

  std::string text() {
    std::vector<std::string> row = {grouped(total_.documents), grouped(total_.tokens), ""};
    for (std::size_t i = 0; asked_ && i < 3; ++i) row.push_back(grouped(total_.samples[i]));
    row.push_back(grouped(total_.datasets, "dataset"));
    table_.add(std::move(row));
    return table_.text();
  }

  std::string json() {
    json_.close(']').key("documents").value(total_.documents);
    json_.key("sequences").value(total_.sequences).key("tokens").value(total_.tokens);
    json_.key("bin_bytes").value(total_.bin_bytes).close('}');
    return json_.text() + '\n';
  }

 private:
  std::vector<std::string> names() const {
    std::vector<std::string> all = {"documents", "tokens", "dtype"};
    if (asked_) all.insert(all.end(), {"train", "valid", "test"});
    all.push_back("dataset");
    return all;
  }

  struct totals {
    std::int64_t datasets = 0;
    std::int64_t documents = 0;
    std::int64_t sequences = 0;
    std::int64_t tokens = 0;
    std::uint64_t bin_bytes = 0;
    std::array<std::int64_t, 3> samples = {};
  };

  const std::optional<megatron_question>& asked_;
  text_table table_;
  formats::json_writer json_;
  totals total_;
};

int list_datasets(const command_line& line, const std::vector<std::string>& words,
                  const std::optional<megatron_question>& asked) {
  for (const dataset::split_part part : dataset::split_parts) {
    if (!asked || !asked->samples[static_cast<std::size_t>(part)]) continue;
    throw misuse(
        fmt::format("--{} requires one dataset; a blend divides the samples by its weights",
                    samples_flag(part)),
        info_help);
  }
  dataset_listing listing(asked);
  std::int64_t failed = 0;
  for (const std::string& prefix : dataset_prefixes(words)) {
    try {
      listing.add(prefix);
    } catch (const error& e) {
      ++failed;
      listing.add_failure(prefix, e.what());
      command::tell(fmt::format("{}: {}\n", program_name, command::one_line(e.what())));
    }
  }
  command::answer(line.json ? listing.json() : listing.text());
  return failed == 0 ? command::exit_done : command::exit_failed;
}

}  // namespace

int info(const arguments& args) {
  boost::program_options::options_description own;
  auto add = own.add_options();
  add("split", boost::program_options::value<std::string>());
  for (const char* flag : {"seq-length", "train-samples", "valid-samples", "test-samples"}) {
    add(flag, boost::program_options::value<std::int64_t>());
  }
  add("no-extra-token", boost::program_options::bool_switch());
  add("keep-partial-validation", boost::program_options::bool_switch());
  auto line = parse_run_options(args, own, info_help);
  if (!line) return command::exit_done;
  const auto asked = megatron_question_of(*line);
  const auto words = line->find<std::vector<std::string>>("prefix");
  if (words && are_several(*words)) return list_datasets(*line, *words, asked);
  take_prefix(*line, info_help);

  const dataset::indexed_dataset data(line->prefix);
  const auto sequences = dataset::sequence_lengths(data);
  const auto documents = dataset::document_lengths(data);
  const auto meta = find_meta(data);
  const auto sources = dataset::document_sources::find(data);
  const auto neighbours = dataset::look_at_neighbours(data, sources ? &*sources : nullptr);
  if (const std::string warning = neighbours.warning(); !warning.empty()) {
    command::tell(fmt::format("inspect_dataset: {}: {}\n", data.prefix().string(), warning));
  }

  if (line->json) {
    formats::json_writer json;
    json.open('{');
    add_counts(json, data);
    json.key("empty_sequences").value(sequences.empty);
    json.key("empty_documents").value(documents.empty);
    add_lengths(json, "sequence_tokens", sequences);
    add_lengths(json, "document_tokens", documents);
    add_neighbours(json, neighbours);
    if (asked) add_megatron(json, *asked, parts_of(data, *asked));
    add_meta_or_null(json, meta);
    command::answer(json.close('}').text() + '\n');
    return command::exit_done;
  }

  std::string text;
  const auto row = [&](const char* what, const std::string& value) {
    fmt::format_to(std::back_inserter(text), "{:<17}{}\n", what, value);
  };
  row("prefix", data.prefix().native());
  row("dtype", std::string(formats::name(data.type())));
  row("sequences", grouped(data.sequence_count()) + empty_note(sequences));
  row("documents", grouped(data.document_count()) + empty_note(documents));
  row("tokens", grouped(data.token_count()));
  row("bin_bytes", grouped(static_cast<std::int64_t>(data.bin_size_bytes())));
  row("idx_bytes", grouped(static_cast<std::int64_t>(data.idx_size_bytes())));
  row("multimodal", data.is_multimodal() ? "yes" : "no");
  row("sequence_tokens", lengths_line(sequences));
  row("document_tokens", lengths_line(documents));
  if (meta) {
    for (const auto& [what, value] : describe(*meta)) row(what, value);
  }
  if (asked) {
    row("megatron", fmt::format("--seq-length {} --split '{}'", asked->request.sequence_length,
                                asked->split_text));
    for (const auto& [part, plan] : parts_of(data, *asked)) {
      row(("  " + std::string(name(part))).c_str(),
          fmt::format("{} in {}, of {} in {}", grouped(plan.samples, "sample"),
                      grouped(plan.epochs, "epoch"), grouped(plan.tokens_per_epoch, "token"),
                      grouped(plan.sequences.size(), "sequence")));
    }
  }
  command::answer(text);
  return command::exit_done;
}

}  // namespace millrace::inspect
