// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <millrace/dataset/filter.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/formats/detail/json.hpp>
#include <millrace/formats/detail/json_writer.hpp>
#include <millrace/formats/detail/sidecar.hpp>
#include <millrace/formats/src.hpp>
#include <millrace/formats/sum.hpp>
#include <millrace/io/file_mapping.hpp>
#include <millrace/meta/dataset_meta.hpp>

#include "command_line.hpp"
#include "inspect.hpp"
#include "meta.hpp"
#include "progress_line.hpp"
#include "run_flags.hpp"

namespace millrace::inspect {

namespace po = boost::program_options;

namespace {

constexpr const char* filter_help =
    R"(usage: inspect_dataset filter PREFIX --output-prefix OUT (--keep | --drop)
           (--documents LIST | --hits-from FILE) [--dry-run] [--json]
       inspect_dataset filter PREFIX --output-prefix OUT --duplicates

Writes some documents of a dataset as a new one, without the texts. OUT.bin and
OUT.idx have the bytes that these documents alone would give. OUT.sum has new
checksums. OUT.src and OUT.meta follow if PREFIX has them; the .meta then also
says how the documents were chosen. The files appear together, or none does.

  --keep, --drop   keep the listed documents, or all others
  --documents LIST   numbers and ranges from 0, e.g. '3 10-20'; or a file with
                   them. Ranges include both ends
  --hits-from FILE   the documents in the places that search --json printed
  --duplicates     drop documents that are equal to an earlier one
  --output-prefix OUT   path of the new dataset, without .bin and .idx
  --overwrite      replace OUT if it exists
  --dry-run        print what would be kept, and write nothing
  --workers N      threads that look for duplicates (default: one per core)
  --json           print one JSON object: prefix, output_prefix, documents,
                   sequences, tokens, dropped, dropped_tokens, sum_root (null
                   with --dry-run)

Exit codes: 0 done, 1 failed, 2 wrong flags.

  inspect_dataset filter data/web_text_document --output-prefix clean/web \
      --duplicates
  inspect_dataset search data/web_text_document --text 'lorem ipsum' \
      --hits 1000000 --json > hits.json
  inspect_dataset filter data/web_text_document --output-prefix clean/web \
      --drop --hits-from hits.json
)";

/// The contents of a file.
std::string text_of_file(const std::filesystem::path& path) {
  const auto file = io::file_mapping::or_copy(path);
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

/// Reads numbers and ranges, separated by spaces, commas or line ends.
/// @param where  for messages, e.g. "--documents"
std::vector<dataset::document_numbers> read_documents(std::string_view text,
                                                      const std::string& where) {
  std::vector<dataset::document_numbers> all;
  constexpr std::string_view between = " ,\t\r\n";
  std::int64_t line = 1;
  while (!text.empty()) {
    const std::size_t skipped = std::min(text.find_first_not_of(between), text.size());
    line += std::ranges::count(text.substr(0, skipped), '\n');
    text.remove_prefix(skipped);
    const std::string_view word = text.substr(0, text.find_first_of(between));
    text.remove_prefix(word.size());
    if (word.empty()) break;
    dataset::document_numbers range;
    const char* const end = word.data() + word.size();
    auto [at, code] = std::from_chars(word.data(), end, range.first);
    bool is_valid = code == std::errc() && range.first >= 0;
    range.last = range.first;
    if (is_valid && at != end) {
      is_valid = *at == '-';
      if (is_valid) {
        const auto second = std::from_chars(at + 1, end, range.last);
        is_valid = second.ec == std::errc() && second.ptr == end && range.last >= range.first;
      }
    }
    if (!is_valid || range.last == INT64_MAX) {
      throw config_error(fmt::format(
          "{}, line {}: '{}' is no document; expected a number, or a range such as 10-20", where,
          line, command::one_line(word)));
    }
    all.push_back({range.first, range.last + 1});
  }
  if (all.empty()) throw config_error(where + ": it lists no document");
  return all;
}

/// The documents of the hits in the answer of `search --json`.
std::vector<dataset::document_numbers> documents_of_hits(const std::string& path,
                                                         const std::filesystem::path& prefix) {
  const auto fail = [&](const std::string& what) { throw config_error(path + ": " + what); };
  const formats::json_value json = [&] {
    try {
      return formats::parse_json(text_of_file(path));
    } catch (const format_error& e) {
      throw e.in(path);
    }
  }();
  const auto member = [](const formats::json_value& of, const char* name) {
    const auto* object = of.as<formats::json_object>();
    const formats::json_value* found = nullptr;
    if (object == nullptr) return found;
    for (const auto& each : *object) {
      if (each.name == name) found = &each.value;
    }
    return found;
  };
  const auto* places = member(json, "places");
  const auto* hits = member(json, "hits");
  const auto* list = places == nullptr ? nullptr : places->as<formats::json_array>();
  const auto* count = hits == nullptr ? nullptr : hits->as<std::int64_t>();
  if (list == nullptr || count == nullptr) {
    fail("expected the answer of inspect_dataset search --json, with \"hits\" and \"places\"");
  }
  if (std::ssize(*list) != *count) {
    fail(fmt::format("it has {} of {}; search again with --hits {}",
                     grouped(std::ssize(*list), "place"), grouped(*count, "hit"), *count));
  }
  std::vector<dataset::document_numbers> all;
  for (const formats::json_value& place : *list) {
    const auto* of = member(place, "prefix");
    const auto* document = member(place, "document");
    const auto* name = of == nullptr ? nullptr : of->as<std::string>();
    const auto* number = document == nullptr ? nullptr : document->as<std::int64_t>();
    if (name == nullptr || number == nullptr) {
      fail("a place has no \"prefix\" or no \"document\"");
    }
    if (*name == prefix) all.push_back({*number, *number + 1});
  }
  if (all.empty()) fail("it has no hit in " + prefix.string());
  return all;
}

/// What is kept, and the rule in words for the `.meta`.
struct selection {
  std::vector<dataset::document_numbers> keep;
  std::string rule;
};

selection selection_of(const command_line& line, const dataset::indexed_dataset& data) {
  const std::int64_t all = data.document_count();
  if (line.values["duplicates"].as<bool>()) {
    progress_line progress("hashed", "token", data.token_count());
    const auto workers = count_of(line, "workers", 1, filter_help)
                             .value_or(std::max(1U, std::thread::hardware_concurrency()));
    const auto copies =
        dataset::repeated_documents(data, static_cast<int>(std::min<std::int64_t>(workers, 1024)),
                                    [&](std::int64_t tokens) { progress.show(tokens); });
    return {dataset::other_documents(copies, all), "drop duplicates"};
  }
  const bool keep = line.values["keep"].as<bool>();
  selection made;
  made.rule = keep ? "keep " : "drop ";
  std::vector<dataset::document_numbers> listed;
  if (const auto hits = line.find<std::string>("hits-from")) {
    listed = documents_of_hits(*hits, data.prefix());
    made.rule += "hits";
  } else {
    const std::string words = *line.find<std::string>("documents");
    std::error_code ignored;
    const bool is_file = std::filesystem::is_regular_file(words, ignored);
    listed =
        is_file ? read_documents(text_of_file(words), words) : read_documents(words, "--documents");
    made.rule += "documents";
  }
  listed = dataset::joined_documents(std::move(listed));
  if (listed.back().last > all) {
    throw config_error(fmt::format(
        "{}: there is no document {}; {}", data.prefix().string(), listed.back().last - 1,
        all == 0 ? "it has none" : fmt::format("it has documents 0 to {}", all - 1)));
  }
  made.keep = keep ? std::move(listed) : dataset::other_documents(listed, all);
  return made;
}

/// Documents, sequences and tokens of a selection.
dataset::filtered_dataset counts_of(const dataset::indexed_dataset& data,
                                    const std::vector<dataset::document_numbers>& keep) {
  dataset::filtered_dataset counts;
  for (const auto& range : keep) {
    counts.documents += range.last - range.first;
    for (std::int64_t d = range.first; d < range.last; ++d) {
      counts.sequences += data.document(d).size();
      counts.tokens += data.document_tokens(d).size();
    }
  }
  return counts;
}

/// The `.meta` of the new dataset, from that of the old one.
std::string meta_of(formats::dataset_meta meta, const dataset::indexed_dataset& from,
                    const std::string& rule, const dataset::filtered_dataset& done) {
  // A line whose document was dropped counts as a bad record of its own kind.
  const std::int64_t dropped = meta.counts.documents - done.documents;
  constexpr const char* kind = "filtered";
  auto known = std::ranges::find(meta.counts.bad_records, kind,
                                 &std::pair<std::string, std::int64_t>::first);
  if (known == meta.counts.bad_records.end()) {
    known = meta.counts.bad_records.emplace(known, kind, 0);
  }
  known->second += dropped;
  std::erase_if(meta.options, [](const auto& option) {
    return option.first == "filtered_from" || option.first == "filter";
  });
  meta.options.emplace_back("filtered_from", meta.sum_root ? "root " + *meta.sum_root
                                                           : from.prefix().filename().string());
  meta.options.emplace_back(
      "filter", fmt::format("{}: {} of {} documents", rule, done.documents, from.document_count()));
  meta.counts.documents = done.documents;
  meta.counts.empty_documents = done.empty_documents;
  meta.counts.sequences = done.sequences;
  meta.counts.tokens = done.tokens;
  meta.bin_bytes = static_cast<std::uint64_t>(done.tokens) * formats::size_bytes(done.type);
  meta.sum_version = formats::sum_version;
  if (!done.places) meta.src_version.reset();
  meta.sum_root = done.sum_root;
  meta.mask.reset();
  if (!done.mask_root.empty()) meta.mask = {.trained = done.trained, .root = done.mask_root};
  return formats::to_json(meta);
}

}  // namespace

int filter(const arguments& args) {
  po::options_description own;
  for (const char* flag : {"output-prefix", "documents", "hits-from"}) {
    own.add_options()(flag, po::value<std::string>());
  }
  own.add_options()("workers", po::value<std::int64_t>());
  for (const char* flag : {"keep", "drop", "duplicates", "overwrite", "dry-run"}) {
    own.add_options()(flag, po::bool_switch());
  }
  const auto line = parse(args, own, filter_help);
  if (!line) return command::exit_done;
  const auto is_on = [&](const char* flag) { return line->values[flag].as<bool>(); };
  const bool is_dry = is_on("dry-run");
  const auto output = line->find<std::string>("output-prefix");
  if (!is_dry && (!output || output->empty())) {
    throw misuse("--output-prefix is required: the path of the new dataset, without .bin and .idx",
                 filter_help);
  }
  const int lists = (line->find<std::string>("documents") ? 1 : 0) +
                    (line->find<std::string>("hits-from") ? 1 : 0) + (is_on("duplicates") ? 1 : 0);
  if (lists != 1) {
    throw misuse(lists == 0 ? "--documents, --hits-from or --duplicates is required: which "
                              "documents"
                            : "--documents, --hits-from and --duplicates exclude each other; pass "
                              "one of them",
                 filter_help);
  }
  if (is_on("duplicates") ? is_on("keep") : is_on("keep") == is_on("drop")) {
    throw misuse(is_on("duplicates") ? "--duplicates drops documents; it takes no --keep"
                                     : "pass either --keep or --drop: what to do with the listed "
                                       "documents",
                 filter_help);
  }
  const dataset::indexed_dataset data(line->prefix, {.check = dataset::check_level::full});
  const auto meta = find_meta(data);
  const selection chosen = selection_of(*line, data);
  dataset::filtered_dataset done;
  if (is_dry) {
    done = counts_of(data, chosen.keep);
  } else {
    progress_line progress("wrote", "token", counts_of(data, chosen.keep).tokens);
    dataset::filter_options options;
    options.overwrite = is_on("overwrite");
    options.progress = [&](std::int64_t tokens) { progress.show(tokens); };
    if (meta) {
      options.meta = [&](const dataset::filtered_dataset& written) {
        return meta_of(*meta, data, chosen.rule, written);
      };
    }
    done = dataset::filter_documents(data, chosen.keep, *output, options);
  }
  const std::int64_t dropped = data.document_count() - done.documents;
  const std::int64_t dropped_tokens = data.token_count() - done.tokens;
  if (line->json) {
    formats::json_writer json;
    json.open('{').key("prefix").value(data.prefix().native()).key("output_prefix");
    is_dry ? json.null() : json.value(*output);
    json.key("documents").value(done.documents).key("sequences").value(done.sequences);
    json.key("tokens").value(done.tokens).key("dropped").value(dropped);
    json.key("dropped_tokens").value(dropped_tokens).key("sum_root");
    is_dry ? json.null() : json.value(done.sum_root);
    command::answer(json.close('}').text() + '\n');
    return command::exit_done;
  }
  command::answer(fmt::format("{}: {} {}, {}; {} {}, {}\n",
                              command::one_line(is_dry ? data.prefix().native() : *output),
                              is_dry ? "would keep" : "kept", grouped(done.documents, "document"),
                              grouped(done.tokens, "token"), is_dry ? "drop" : "dropped",
                              grouped(dropped, "document"), grouped(dropped_tokens, "token")));
  return command::exit_done;
}

}  // namespace millrace::inspect
