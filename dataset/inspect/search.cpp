// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <millrace/command/terminal.hpp>
#include <millrace/dataset/detail/run/source_documents.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/dataset/search.hpp>
#include <millrace/dataset/where.hpp>
#include <millrace/formats/detail/json_writer.hpp>
#include <millrace/io/file_ops.hpp>
#include <millrace/tokenizer/text_pattern.hpp>

#include "command_line.hpp"
#include "data_options.hpp"
#include "dataset_list.hpp"
#include "dataset_tokenizer.hpp"
#include "inspect.hpp"
#include "progress_line.hpp"
#include "run_flags.hpp"
#include "served_run.hpp"
#include "state_flag.hpp"

namespace millrace::inspect {

namespace po = boost::program_options;

namespace {

constexpr std::int64_t usual_hits = 10;
constexpr std::int64_t usual_context = 40;

const std::string search_help =
    std::string(
        R"(usage: inspect_dataset search PREFIX... (--text TEXT | --ids 'ID ...' | --regex RE)
           [--hits N] [--json] [TOKENIZER FLAGS] [RUN FLAGS]

Finds a text, a sequence of ids, or a regular expression in documents. Prints
how often and in how many documents it occurs, and its first places.

  PREFIX...         datasets: prefixes, folders, quoted patterns, or the words
                    of --data-path
  --text TEXT       text to find; may be repeated; --text=TEXT if it begins with
                    two dashes
  --texts-from FILE   also the texts in FILE, one per line
  --ids 'ID ...'    ids that follow each other; may be repeated
  --ids-from FILE   also the ids in FILE, one sequence per line
  --regex RE        regular expression of PCRE2, over Unicode characters; (?i)
                    ignores case, (?m) lets ^ and $ match at lines
  --hits N          print the first N places (default: 10)
  --context N       print N bytes of text around each (default: 40)
  --workers N       threads (default: one per core); affects speed only
  --force           decode even if another tokenizer made a dataset
  --json            print one JSON object: prefixes, documents, tokens, hits,
                    hit_documents, queries (text, ids or regex; hits, documents)
                    and places: query, prefix, document, token, tokens, begin,
                    end, begins_inside, ends_inside, before, text, after,
                    source, and served (step, rank, slot, sample, at, tokens,
                    label_only; null without RUN FLAGS)

A text is searched in what the tokenizer makes of a whole document, so a hit may
begin and end inside tokens, with or without a space before it. Special tokens
are part of this text, e.g. <|endoftext|>. With WordPiece, words are separated
by single spaces, as decoded. SentencePiece and similar decoders drop the space
at the start. Hits of texts and ids may overlap. No hit crosses documents.

The tokenizer flags are those of preprocess_data; see inspect_dataset show.
With --order and the other flags of a run, search also prints the slots that
served the tokens of each place:

)") +
    run_flags_help + state_flag_help +
    R"(
Exit codes: 0 found, 1 not found, 2 wrong flags, 4 could not finish.

  inspect_dataset search data/web_text_document --text 'to be or not to be'
  inspect_dataset search 'data/*_document' --ids '464 3290' --hits 0 --json
  inspect_dataset search data/web_text_document --regex '(?i)colou?r' \
      --order megatron --seq-length 4096 --train-samples 100000 --ranks 8
)";

enum class query_kind : std::uint8_t { text, ids, regex };

/// What to find.
struct query_list {
  query_kind kind = query_kind::text;
  std::vector<std::string> texts = {};  ///< the one of --regex, too
  std::vector<std::vector<std::int64_t>> ids = {};

  std::size_t size() const noexcept { return kind == query_kind::ids ? ids.size() : texts.size(); }

  std::string name(std::size_t q) const {
    if (kind != query_kind::ids) {
      return (kind == query_kind::regex ? "regex " : "text ") + command::escaped_text(texts[q]);
    }
    return fmt::format("ids {}", fmt::join(ids[q], " "));
  }
};

/// The ids in a line: decimal numbers, separated by spaces, tabs or commas.
/// @param from  where the line comes from, for messages
std::vector<std::int64_t> read_ids(std::string_view line, const std::string& from) {
  constexpr std::string_view between = " \t,";
  std::vector<std::int64_t> ids;
  for (std::size_t at = 0; (at = line.find_first_not_of(between, at)) != line.npos;) {
    const std::size_t end = std::min(line.find_first_of(between, at), line.size());
    const std::string_view word = line.substr(at, end - at);
    const auto read = std::from_chars(word.data(), word.data() + word.size(), ids.emplace_back());
    if (read.ec != std::errc() || read.ptr != word.data() + word.size()) {
      throw misuse(fmt::format("{}: '{}' is not an id; expected integers, e.g. '464 3290'", from,
                               command::one_line(word)),
                   search_help);
    }
    at = end;
  }
  return ids;
}

/// Calls use(line, number) for each line of a file, without its line end.
template <class Use>
void for_each_line(const std::string& path, Use&& use) {
  const io::unique_fd file = io::open_read_only(path);  // throws io_error with the reason
  std::ifstream in(path, std::ios::binary);
  std::int64_t number = 0;
  for (std::string line; std::getline(in, line);) {
    if (line.ends_with('\r')) line.pop_back();
    use(line, ++number);
  }
  if (in.bad()) throw io_error(path, "read", EIO);
}

query_list queries_of(const command_line& line) {
  using words = std::vector<std::string>;
  const auto texts = line.find<words>("text");
  const auto ids = line.find<words>("ids");
  const auto regexes = line.find<words>("regex");
  const auto texts_from = line.find<std::string>("texts-from");
  const auto ids_from = line.find<std::string>("ids-from");
  const int kinds = (texts || texts_from ? 1 : 0) + (ids || ids_from ? 1 : 0) + (regexes ? 1 : 0);
  if (kinds != 1) {
    throw misuse(kinds == 0 ? "--text, --ids or --regex is required: what to find"
                            : "--text, --ids and --regex exclude each other; pass one of them",
                 search_help);
  }
  query_list all;
  if (regexes) {
    all.kind = query_kind::regex;
    if (regexes->size() > 1) {
      throw misuse("--regex is given twice; pass one, e.g. --regex 'one|another'", search_help);
    }
    all.texts = *regexes;
    return all;
  }
  if (ids || ids_from) {
    all.kind = query_kind::ids;
    for (const std::string& each : ids.value_or(words())) {
      all.ids.push_back(read_ids(each, "--ids"));
      if (all.ids.back().empty()) throw misuse("--ids: expected at least one id", search_help);
    }
    if (ids_from) {
      for_each_line(*ids_from, [&](const std::string& each, std::int64_t number) {
        auto found = read_ids(each, fmt::format("{}, line {}", *ids_from, number));
        if (!found.empty()) all.ids.push_back(std::move(found));
      });
    }
  } else {
    all.texts = texts.value_or(words());
    if (std::ranges::any_of(all.texts, &std::string::empty))
      throw misuse("--text is empty; expected at least one character", search_help);
    if (texts_from) {
      for_each_line(*texts_from, [&](const std::string& each, std::int64_t) {
        if (!each.empty()) all.texts.push_back(each);
      });
    }
  }
  if (all.size() == 0) {
    throw config_error((texts_from ? *texts_from : *ids_from) +
                       ": has only blank lines; expected one query per line");
  }
  return all;
}

/// The datasets to search.
std::vector<std::string> prefixes_of(const command_line& line) {
  if (const auto words = line.find<std::vector<std::string>>("prefix")) {
    return dataset_prefixes(*words);
  }
  const auto flags = data_flags_of(line);
  if (flags.data_path) return dataset_prefixes(*flags.data_path);
  const auto data = dataset::resolve_data_flags(flags);
  std::vector<std::string> all;
  const auto add = [&](const std::optional<dataset::blend_list>& list) {
    if (list) all.insert(all.end(), list->prefixes.begin(), list->prefixes.end());
  };
  add(data.blend);
  for (const auto& list : data.per_part) add(list);
  if (all.empty()) {
    throw misuse("PREFIX is required: the path of a dataset, without .bin and .idx", search_help);
  }
  return dataset_prefixes(all);
}

/// A hit, and the dataset that it is in.
struct place {
  std::string prefix;
  dataset::search_hit hit;
  std::optional<dataset::record_place> source = {};
  std::vector<dataset::appearance> served = {};
};

struct found_places {
  std::vector<std::string> prefixes;
  std::int64_t documents = 0;
  std::int64_t tokens = 0;
  std::int64_t hits = 0;
  std::int64_t hit_documents = 0;
  std::vector<dataset::query_count> queries;
  std::vector<place> places;
  bool has_run = false;
};

/// Searches one dataset after another, with one tokenizer or several.
class searcher {
 public:
  searcher(const query_list& queries, dataset_tokenizers& tokenizers)
      : queries_(&queries), tokenizers_(&tokenizers) {
    if (queries.kind != query_kind::regex) return;
    try {
      pattern_.emplace(queries.texts.front());
    } catch (const config_error& e) {
      throw misuse(std::string("--regex: ") + e.what(), search_help);
    }
  }

  dataset::search_result in(const dataset::indexed_dataset& data,
                            const dataset::search_options& options) {
    if (queries_->kind == query_kind::ids) {
      return dataset::search_ids(data, queries_->ids, options);
    }
    auto [at, is_new] = by_tokenizer_.try_emplace(tokenizers_->find(data));
    prepared& with = at->second;
    if (is_new) {
      if (at->first == nullptr) {
        throw config_error(data.prefix().string() +
                           ": the tokenizer is unknown, so there is no text; pass "
                           "--tokenizer-type and the files that the dataset was made with");
      }
      if (auto table = at->first->token_texts()) {
        with.rules.table = std::make_shared<const formats::token_texts>(*std::move(table));
      } else {
        with.rules.decode = [tokenizer = at->first](std::span<const std::int64_t> ids) {
          return tokenizer->decode(ids);
        };
      }
      if (queries_->kind == query_kind::text) {
        with.search = std::make_unique<dataset::text_search>(queries_->texts, with.rules);
      }
    }
    if (with.search) return with.search->in(data, options);
    return dataset::search_pattern(
        data, [&] { return pattern_->make_finder(); }, with.rules, options);
  }

 private:
  struct prepared {
    dataset::text_rules rules;
    std::unique_ptr<dataset::text_search> search;
  };

  const query_list* queries_;
  dataset_tokenizers* tokenizers_;
  std::optional<tokenizer::text_pattern> pattern_;
  std::map<std::shared_ptr<const tokenizer::tokenizer>, prepared> by_tokenizer_;
};

found_places search_all(std::vector<std::string> prefixes, const query_list& queries,
                        dataset_tokenizers& tokenizers, dataset::search_options options) {
  found_places all{.prefixes = std::move(prefixes),
                   .queries = std::vector<dataset::query_count>(queries.size()),
                   .places = {}};
  std::int64_t total = 0;
  for (const std::string& prefix : all.prefixes) {
    total += dataset::indexed_dataset(prefix).token_count();
  }
  searcher search(queries, tokenizers);
  progress_line progress("searched", "token", total);
  const std::int64_t most_hits = options.most_hits;
  for (const std::string& prefix : all.prefixes) {
    const dataset::indexed_dataset data(prefix);
    options.most_hits = most_hits - std::ssize(all.places);
    options.progress = [&](std::int64_t tokens) { progress.show(all.tokens + tokens); };
    dataset::search_result found = search.in(data, options);
    for (std::size_t q = 0; q < queries.size(); ++q) {
      all.queries[q].hits += found.queries[q].hits;
      all.queries[q].documents += found.queries[q].documents;
    }
    all.hits += found.hit_count;
    all.hit_documents += found.hit_documents;
    all.documents += found.documents;
    all.tokens += found.tokens;
    for (dataset::search_hit& hit : found.hits) all.places.push_back({prefix, std::move(hit)});
  }
  return all;
}

void add_sources(std::vector<place>& places) {
  std::unique_ptr<dataset::source_documents> open;
  for (place& each : places) {
    if (!open || open->prefix() != each.prefix) {
      open = std::make_unique<dataset::source_documents>(each.prefix);
    }
    each.source = open->read_from(each.hit.document);
  }
}

void add_served(std::vector<place>& places, const run_configuration& run) {
  const served_run served = served_run_of(run, search_help);
  const dataset::run_places slots(*run.order, served.ranks);
  std::set<std::string> of_run;
  for (std::int64_t s = 0; s < run.order->source_count(); ++s) {
    of_run.insert(run.order->prefix(s).native());
  }
  for (place& each : places) {
    if (!of_run.contains(each.prefix)) continue;
    each.served = slots.of_tokens(each.prefix, each.hit.document, each.hit.token,
                                  std::max<std::int64_t>(each.hit.tokens, 1), served.end);
  }
}

std::string as_text(const found_places& found, const query_list& queries) {
  const bool colors = command::stdout_has_colors();
  std::string text;
  const auto out = std::back_inserter(text);
  for (std::size_t q = 0; q < queries.size(); ++q) {
    const auto& [hits, documents] = found.queries[q];
    fmt::format_to(out, "{}: {} in {}\n", queries.name(q), grouped(hits, "hit"),
                   grouped(documents, "document"));
  }
  for (const place& each : found.places) {
    const dataset::search_hit& hit = each.hit;
    fmt::format_to(out, "{}, document {}, token {}", command::one_line(each.prefix), hit.document,
                   hit.token);
    if (queries.kind != query_kind::ids) {
      fmt::format_to(out, ", byte {}", hit.begin);
      if (hit.skip > 0) text += ", begins inside the token";
    }
    if (queries.size() > 1) text += ": " + queries.name(static_cast<std::size_t>(hit.query));
    text += '\n';
    if (!hit.before.empty() || !hit.text.empty() || !hit.after.empty()) {
      fmt::format_to(out, "  {} {} {}\n", command::escaped_text(hit.before),
                     command::inked(command::ink::strong, command::escaped_text(hit.text), colors),
                     command::escaped_text(hit.after));
    }
    if (each.source) text += "  " + origin_text(each.source).substr(2) + '\n';
    if (found.has_run && each.served.empty()) text += "  not served by this run\n";
    constexpr std::size_t most_slots = 8;
    for (std::size_t i = 0; i < std::min(each.served.size(), most_slots); ++i) {
      const dataset::appearance& served = each.served[i];
      fmt::format_to(out, "  {}: sample {}, {} from token {} on{}\n", at_text(served.slot),
                     served.served, grouped(served.tokens, "token"), served.at,
                     served.label_only ? ", a label only" : "");
    }
    if (each.served.size() > most_slots) {
      const auto more = static_cast<std::int64_t>(each.served.size() - most_slots);
      fmt::format_to(out, "  and {} more; --json prints all\n", grouped(more, "slot"));
    }
  }
  fmt::format_to(out, "searched {}: {}, {}\n", grouped(std::ssize(found.prefixes), "dataset"),
                 grouped(found.documents, "document"), grouped(found.tokens, "token"));
  return text;
}

void write_json(formats::json_writer& json, const place& each, const found_places& found,
                query_kind kind) {
  const dataset::search_hit& hit = each.hit;
  json.open('{').key("query").value(hit.query).key("prefix").value(each.prefix);
  json.key("document").value(hit.document).key("token").value(hit.token);
  json.key("tokens").value(hit.tokens);
  if (kind != query_kind::ids) {
    json.key("begin").value(hit.begin).key("end").value(hit.end);
    json.key("begins_inside").value(hit.skip > 0).key("ends_inside").value(hit.ends_inside);
    json.key("before").value(hit.before).key("text").value(hit.text).key("after").value(hit.after);
  }
  write_source(json, each.source);
  json.key("served");
  if (!found.has_run) {
    json.null().close('}');
    return;
  }
  json.open('[');
  for (const dataset::appearance& served : each.served) {
    json.open('{').key("step").value(served.slot.step).key("rank").value(served.slot.rank);
    json.key("slot").value(served.slot.slot).key("sample").value(served.served);
    json.key("at").value(served.at).key("tokens").value(served.tokens);
    json.key("label_only").value(served.label_only).close('}');
  }
  json.close(']').close('}');
}

std::string as_json(const found_places& found, const query_list& queries) {
  formats::json_writer json;
  json.open('{').key("prefixes").open('[');
  for (const std::string& prefix : found.prefixes) json.value(prefix);
  json.close(']').key("documents").value(found.documents).key("tokens").value(found.tokens);
  json.key("hits").value(found.hits).key("hit_documents").value(found.hit_documents);
  json.key("queries").open('[');
  for (std::size_t q = 0; q < queries.size(); ++q) {
    json.open('{');
    if (queries.kind == query_kind::ids) {
      json.key("ids").open('[');
      for (const std::int64_t id : queries.ids[q]) json.value(id);
      json.close(']');
    } else {
      json.key(queries.kind == query_kind::regex ? "regex" : "text").value(queries.texts[q]);
    }
    json.key("hits").value(found.queries[q].hits);
    json.key("documents").value(found.queries[q].documents).close('}');
  }
  json.close(']').key("places").open('[');
  for (const place& each : found.places) write_json(json, each, found, queries.kind);
  return json.close(']').close('}').text() + '\n';
}

int answer(const command_line& line) {
  const query_list queries = queries_of(line);
  dataset::search_options options;
  options.most_hits = count_of(line, "hits", 0, search_help).value_or(usual_hits);
  options.context_bytes =
      static_cast<std::size_t>(count_of(line, "context", 0, search_help).value_or(usual_context));
  options.workers = static_cast<int>(
      std::min<std::int64_t>(count_of(line, "workers", 1, search_help)
                                 .value_or(std::max(1U, std::thread::hardware_concurrency())),
                             1024));
  std::vector<std::string> prefixes = prefixes_of(line);
  std::optional<run_configuration> run;
  if (line.find<std::string>("order")) {
    run = run_configuration_of(line, search_help);
    if (const std::string assumed = assumptions_of(line, *run, false); !assumed.empty()) {
      command::tell(fmt::format("{}: assumed {}\n", program_name, assumed));
    }
  }
  dataset_tokenizers tokenizers(line, search_help);
  found_places found = search_all(std::move(prefixes), queries, tokenizers, options);
  add_sources(found.places);
  found.has_run = run.has_value();
  if (run) add_served(found.places, *run);
  command::answer(line.json ? as_json(found, queries) : as_text(found, queries));
  if (std::ssize(found.places) < found.hits && options.most_hits > 0) {
    command::tell(fmt::format("{}: showed the first {} of {}; --hits N shows more\n", program_name,
                              grouped(std::ssize(found.places)), grouped(found.hits, "hit")));
  }
  return found.hits > 0 ? command::exit_done : command::exit_failed;
}

}  // namespace

int search(const arguments& args) {
  po::options_description own;
  add_run_flags(own);
  add_state_flag(own);
  add_tokenizer_flags(own);
  auto add = own.add_options();
  for (const char* flag : {"text", "ids", "regex"}) {
    add(flag, po::value<std::vector<std::string>>()->composing());
  }
  for (const char* flag : {"texts-from", "ids-from"}) add(flag, po::value<std::string>());
  for (const char* flag : {"hits", "context", "workers"}) add(flag, po::value<std::int64_t>());
  const auto line = parse_run_options(args, own, search_help);
  if (!line) return command::exit_done;
  try {
    return answer(*line);
  } catch (const command::usage_error&) {
    throw;
  } catch (const std::exception& e) {
    command::tell_error(program_name, e, line->json);
    return command::exit_unfinished;
  }
}

}  // namespace millrace::inspect
