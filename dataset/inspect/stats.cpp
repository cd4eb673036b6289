// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include <millrace/command/terminal.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/dataset/statistics.hpp>
#include <millrace/formats/detail/json_writer.hpp>
#include <millrace/io/atomic_file.hpp>

#include "command_line.hpp"
#include "dataset_figures.hpp"
#include "dataset_list.hpp"
#include "dataset_tokenizer.hpp"
#include "given_texts.hpp"
#include "inspect.hpp"
#include "progress_line.hpp"
#include "run_flags.hpp"
#include "text_table.hpp"

namespace millrace::inspect {

namespace po = boost::program_options;

namespace {

constexpr const char* stats_help =
    R"(usage: inspect_dataset stats PREFIX... [--top N] [--duplicates]
           [--near-duplicates] [--top-ngrams N [--ngram n]]
           [--contamination TEXTS...] [--json] [TOKENIZER FLAGS]

Counts documents, tokens and ids, in one pass over all tokens: lengths, the most
frequent ids, ids that never occur, entropy, special tokens, bytes of text per
token, and the share of each input file (with a PREFIX.src).

  PREFIX...         datasets of one tokenizer: prefixes, folders, quoted
                    patterns, or the words of --data-path
  --top N           print the N most frequent ids (default: 10)
  --frequencies FILE   write the count of each id to FILE, separated by tabs
  --vocab-size V    look for ids that never occur in 0 to V - 1 (default: the
                    vocabulary of the tokenizer or of PREFIX.meta)
  --duplicates      find documents with exactly the same ids; empty ones do not
                    count
  --near-duplicates   find documents that share most of their 5-grams of ids:
                    MinHash, 128 functions in 32 bands. Takes 512 bytes of
                    memory per document
  --similarity J    least Jaccard index of the 5-grams (default: 0.8)
  --contamination TEXTS...   find documents that share at least one 13-gram of
                    ids with texts: lines of files, "text" of .jsonl files,
                    documents of datasets. All must be given after this flag
  --contamination-ngram n   ids that a document must share (default: 13)
  --groups N        print at most N sets, pairs or documents (default: 10)
  --top-ngrams N    find the N sequences of ids that occur most often inside
                    documents. Takes at most 1 GiB
  --ngram n         ids per sequence (default: 13)
  --workers N       threads (default: one per core); affects speed only
  --force           decode even if another tokenizer made a dataset
  --json            print one JSON object: datasets, documents, sequences,
                    tokens, document_tokens and sequence_tokens (empty, min,
                    mean, max, quantiles in percent, histogram), with a .mask
                    trained_tokens and document_trained_tokens, distinct_ids,
                    vocab_size, never_seen, outside_vocab, entropy_bits,
                    special_tokens, text (bytes, tokens, exact), frequent_ids,
                    inputs; if asked for: duplicates, near_duplicates, ngrams
                    and contamination. Unknown: null

A quantile of 95 % is the least length that 95 % of all lengths do not exceed.
The tokenizer flags are those of preprocess_data; see inspect_dataset show.

  inspect_dataset stats data/web_text_document --duplicates
  inspect_dataset stats 'data/*' --top-ngrams 10 --ngram 50 --json
)";

/// What to count, besides the figures of every dataset.
struct stats_question {
  std::size_t most_ids = 10;
  std::optional<std::string> frequencies;
  std::optional<std::int64_t> vocab_size;
  bool duplicates = false;
  dataset::duplicate_limits limits;
  std::optional<dataset::near_duplicate_options> near;
  std::vector<std::string> texts;  ///< of --contamination
  std::int64_t shared = 13;        ///< ids that a contaminated document shares with a text
  std::optional<dataset::ngram_options> ngrams;
  int workers = 1;
};

struct stats_answer {
  dataset_figures figures;
  std::optional<dataset::duplicate_documents> duplicates;
  std::optional<dataset::near_duplicates> near;
  std::optional<dataset::repeated_ngrams> ngrams;
  std::vector<std::string> texts;  ///< names of the texts of --contamination
  std::optional<dataset::contamination> contamination;
};

/// The value of --similarity.
std::optional<double> similarity_of(const command_line& line) {
  const auto text = line.find<std::string>("similarity");
  if (!text) return std::nullopt;
  double value = 0;
  const auto read = std::from_chars(text->data(), text->data() + text->size(), value);
  if (read.ec != std::errc() || read.ptr != text->data() + text->size() || !(value > 0) ||
      value > 1) {
    throw misuse(fmt::format("--similarity {}: expected a number above 0 and at most 1",
                             command::one_line(*text)),
                 stats_help);
  }
  return value;
}

/// Reads the flags. Removes --vocab-size if it does not belong to a tokenizer.
stats_question question_of(command_line& line) {
  stats_question asked;
  const auto size_of = [&](const char* flag, std::int64_t least, std::size_t usual) {
    const auto given = count_of(line, flag, least, stats_help);
    return given ? static_cast<std::size_t>(*given) : usual;
  };
  asked.most_ids = size_of("top", 0, asked.most_ids);
  asked.frequencies = line.find<std::string>("frequencies");
  asked.vocab_size = count_of(line, "vocab-size", 1, stats_help);
  if (!line.find<std::string>("tokenizer-type")) line.values.erase("vocab-size");
  asked.duplicates = line.values["duplicates"].as<bool>();
  asked.limits.groups = size_of("groups", 0, asked.limits.groups);
  const auto similarity = similarity_of(line);
  if (line.values["near-duplicates"].as<bool>()) {
    asked.near.emplace();
    asked.near->threshold = similarity.value_or(asked.near->threshold);
    asked.near->most_pairs = asked.limits.groups;
  } else if (similarity) {
    throw misuse("--similarity requires --near-duplicates", stats_help);
  }
  asked.texts = line.find<std::vector<std::string>>("contamination").value_or(asked.texts);
  const auto shared = count_of(line, "contamination-ngram", 1, stats_help);
  if (shared && asked.texts.empty()) {
    throw misuse("--contamination-ngram requires --contamination: texts to look for", stats_help);
  }
  asked.shared = shared.value_or(asked.shared);
  if (line.find<std::int64_t>("groups") && !asked.duplicates && !asked.near &&
      asked.texts.empty()) {
    throw misuse("--groups requires --duplicates, --near-duplicates or --contamination",
                 stats_help);
  }
  const auto n = count_of(line, "ngram", 1, stats_help);
  if (line.find<std::int64_t>("top-ngrams")) {
    asked.ngrams.emplace();
    asked.ngrams->most = size_of("top-ngrams", 1, 0);
    if (n) asked.ngrams->n = *n;
  } else if (n) {
    throw misuse("--ngram requires --top-ngrams: how many to print", stats_help);
  }
  asked.workers = static_cast<int>(
      std::min<std::int64_t>(count_of(line, "workers", 1, stats_help)
                                 .value_or(std::max(1U, std::thread::hardware_concurrency())),
                             1024));
  return asked;
}

void write_frequencies(const std::string& path, const dataset_figures& figures) {
  io::atomic_file file(path);
  std::string text = figures.tokenizer ? "id\tcount\ttext\n" : "id\tcount\n";
  const auto flush = [&](std::size_t least) {
    if (text.size() < least) return;
    file.append(std::as_bytes(std::span(text)));
    text.clear();
  };
  const auto add = [&](std::int64_t id, std::int64_t times) {
    fmt::format_to(std::back_inserter(text), "{}\t{}", id, times);
    if (const auto of_id = figures.text_of(id)) text += '\t' + command::escaped_text(*of_id);
    text += '\n';
    flush(std::size_t{1} << 20);
  };
  const dataset::token_counts& ids = figures.counts.ids;
  const auto first = ids.others.lower_bound(0);
  for (auto each = ids.others.begin(); each != first; ++each) add(each->first, each->second);
  const auto end = std::max<std::int64_t>(
      std::ssize(ids.by_id),
      std::min(figures.vocab_size.value_or(0), dataset::token_counts::most_by_id));
  for (std::int64_t id = 0; id < end; ++id) add(id, ids.count(id));
  for (auto each = first; each != ids.others.end(); ++each) add(each->first, each->second);
  flush(1);
  file.commit();
}

stats_answer answer_of(const std::vector<dataset::indexed_dataset>& data,
                       dataset_tokenizers& tokenizers, const stats_question& asked) {
  stats_answer answer;
  given_texts texts;
  if (!asked.texts.empty()) {  // first, because the files may be missing
    const auto tokenizer = data.empty() ? nullptr : tokenizers.find(data.front());
    texts = read_texts(asked.texts, tokenizer.get());
    answer.texts = texts.names;
  }
  answer.figures = figures_of(data, tokenizers, asked.vocab_size, asked.workers);
  dataset::statistics_options options{.workers = asked.workers};
  progress_line progress("read", "token", 0);
  options.progress = [&](std::int64_t done, std::int64_t total) { progress.show(done, total); };
  if (asked.duplicates) {
    answer.duplicates = dataset::find_duplicates(data, asked.limits, options);
  }
  if (asked.ngrams) {
    answer.ngrams = dataset::find_repeated_ngrams(data, *asked.ngrams, options);
  }
  if (asked.near) answer.near = dataset::find_near_duplicates(data, *asked.near, options);
  if (!asked.texts.empty()) {
    answer.contamination =
        dataset::find_contamination(data, texts.ids, asked.shared, asked.limits.groups, options);
  }
  return answer;
}

void write_place(formats::json_writer& json, const dataset_figures& figures,
                 const dataset::document_place& place) {
  json.key("prefix").value(figures.datasets[static_cast<std::size_t>(place.dataset)].input);
  json.key("document").value(place.document);
}

std::string as_json(const stats_answer& answer, const stats_question& asked) {
  const dataset_figures& figures = answer.figures;
  formats::json_writer json;
  json.open('{');
  write_figures(json, figures, asked.most_ids);
  if (answer.duplicates) {
    const dataset::duplicate_documents& found = *answer.duplicates;
    json.key("duplicates").open('{').key("documents").value(found.documents);
    json.key("tokens").value(found.tokens).key("group_count").value(found.group_count);
    json.key("groups").open('[');
    for (const dataset::duplicate_group& group : found.groups) {
      json.open('{').key("copies").value(group.copies).key("tokens").value(group.tokens);
      json.key("places").open('[');
      for (const dataset::document_place& place : group.places) {
        json.open('{');
        write_place(json, figures, place);
        json.close('}');
      }
      json.close(']').close('}');
    }
    json.close(']').close('}');
  }
  if (answer.near) {
    const dataset::near_duplicates& found = *answer.near;
    json.key("near_duplicates").open('{').key("n").value(asked.near->n);
    json.key("hashes").value(asked.near->hashes).key("bands").value(asked.near->bands);
    json.key("similarity").value(asked.near->threshold).key("seed").value(asked.near->seed);
    json.key("chance").value(asked.near->chance(asked.near->threshold));
    json.key("compared").value(found.compared).key("documents").value(found.documents);
    json.key("tokens").value(found.tokens).key("pairs").open('[');
    for (const dataset::similar_documents& pair : found.pairs) {
      json.open('{').key("jaccard").value(pair.jaccard).key("error").value(pair.error);
      json.key("earlier").open('{');
      write_place(json, figures, pair.earlier);
      json.close('}').key("later").open('{');
      write_place(json, figures, pair.later);
      json.close('}').close('}');
    }
    json.close(']').close('}');
  }
  if (answer.contamination) {
    const dataset::contamination& found = *answer.contamination;
    json.key("contamination").open('{').key("n").value(asked.shared);
    json.key("documents").value(found.documents).key("tokens").value(found.tokens);
    json.key("worst").open('[');
    for (const dataset::contaminated_document& each : found.worst) {
      json.open('{');
      write_place(json, figures, each.place);
      json.key("ngrams").value(each.ngrams).key("token").value(each.token);
      json.key("text").value(answer.texts[static_cast<std::size_t>(each.text)]).close('}');
    }
    json.close(']').key("texts").open('[');
    for (std::size_t i = 0; i < found.texts.size(); ++i) {
      json.open('{').key("text").value(answer.texts[i]).key("ngrams").value(found.texts[i].ngrams);
      json.key("found").value(found.texts[i].found).close('}');
    }
    json.close(']').close('}');
  }
  if (answer.ngrams) {
    const dataset::repeated_ngrams& found = *answer.ngrams;
    json.key("ngrams").open('{').key("n").value(asked.ngrams->n);
    json.key("positions").value(found.positions).key("distinct").value(found.distinct);
    json.key("frequent").open('[');
    for (const dataset::repeated_ngram& each : found.ngrams) {
      json.open('{').key("count").value(each.count).key("ids").open('[');
      for (const std::int64_t id : each.ids) json.value(id);
      json.close(']');
      if (figures.tokenizer) json.key("text").value(figures.tokenizer->decode(each.ids));
      write_place(json, figures, each.first);
      json.key("token").value(each.first_token).close('}');
    }
    json.close(']').close('}');
  }
  return json.close('}').text() + '\n';
}

// --- text ---------------------------------------------------------------------------------------

std::string percent(std::int64_t part, std::int64_t whole) {
  return fmt::format(
      "{:.2f} %",
      whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

/// `text` in quotes, cut to about `most` characters.
std::string shortened(std::string_view text, std::size_t most) {
  std::string quoted = command::escaped_text(text.substr(0, 4 * most));
  if (text.size() <= 4 * most && quoted.size() <= most) return quoted;
  std::size_t end = std::min(most, quoted.size() - 1);
  while (end > 0 && (static_cast<unsigned char>(quoted[end]) & 0xC0) == 0x80) --end;
  quoted.resize(end);
  return quoted + "...";
}

void add_heading(std::string& text, const std::string& heading) {
  text += '\n' + command::inked(command::ink::strong, heading, command::stdout_has_colors()) + '\n';
}

void add_lengths(std::string& text, const dataset_figures& figures) {
  const dataset::length_counts& documents = figures.counts.document_lengths;
  const dataset::length_counts& sequences = figures.counts.sequence_lengths;
  if (documents.count() == 0) return;
  const bool both = figures.counts.documents != figures.counts.sequences;
  add_heading(text, "lengths in tokens");
  std::vector<std::string> names = {"min"};
  for (const auto& [q, name] : length_quantiles) names.push_back(std::string(name) + " %");
  names.insert(names.end(), {"max", "mean", "of"});
  text_table table(names);
  const auto add = [&](const dataset::length_counts& lengths, const char* what) {
    std::vector<std::string> row = {grouped(lengths.min())};
    for (const auto& [q, name] : length_quantiles) row.push_back(grouped(lengths.quantile(q)));
    row.insert(row.end(), {grouped(lengths.max()), fmt::format("{:.1f}", lengths.mean()), what});
    table.add(std::move(row));
  };
  add(documents, "documents");
  if (both) add(sequences, "sequences");
  text += table.text() + '\n';

  text_table histogram({"tokens", "documents", "share", ""});
  const auto counts = documents.by_power_of_two();
  const std::int64_t most = *std::ranges::max_element(counts);
  std::size_t i = 0;
  while (counts[i] == 0) ++i;
  for (; i < counts.size(); ++i) {
    const std::int64_t first = i == 0 ? 0 : std::int64_t{1} << (i - 1);
    const auto bar = static_cast<std::size_t>((counts[i] * 30 + most - 1) / most);
    histogram.add({first < 2 ? grouped(first)
                             : fmt::format("{} to {}", grouped(first), grouped(2 * first - 1)),
                   grouped(counts[i]), percent(counts[i], documents.count()),
                   std::string(bar, '#')});
  }
  text += histogram.text();
}

void add_shares(std::string& text, const std::string& heading,
                const std::vector<dataset::input_share>& shares, std::int64_t tokens) {
  constexpr std::size_t most = 20;
  add_heading(text, heading);
  text_table table({"documents", "tokens", "share", ""});
  for (std::size_t i = 0; i < std::min(shares.size(), most); ++i) {
    table.add({grouped(shares[i].documents), grouped(shares[i].tokens),
               percent(shares[i].tokens, tokens), command::one_line(shares[i].input)});
  }
  text += table.text();
  if (shares.size() > most) {
    text += fmt::format("and {} more; --json prints all\n",
                        grouped(std::ssize(shares) - static_cast<std::int64_t>(most)));
  }
}

void add_ids(std::string& text, const dataset_figures& figures, std::size_t most) {
  const auto frequent = figures.counts.ids.most_frequent(most);
  if (frequent.empty()) return;
  add_heading(text, "most frequent ids");
  text_table table({"id", "count", "share", figures.tokenizer ? "text" : ""});
  for (const auto& [id, times] : frequent) {
    table.add({std::to_string(id), grouped(times), percent(times, figures.counts.tokens),
               figures.tokenizer ? shortened(*figures.text_of(id), 40) : ""});
  }
  text += table.text();
}

std::string place_text(const dataset_figures& figures, const dataset::document_place& place) {
  std::string document = fmt::format("document {}", place.document);
  if (figures.datasets.size() == 1) return document;
  return command::one_line(figures.datasets[static_cast<std::size_t>(place.dataset)].input) + ", " +
         document;
}

void add_duplicates(std::string& text, const dataset_figures& figures,
                    const dataset::duplicate_documents& found) {
  add_heading(text, "duplicate documents");
  if (found.documents == 0) {
    text += "none\n";
    return;
  }
  fmt::format_to(std::back_inserter(text), "{} ({}) with {} ({}) repeat an earlier one, in {}\n",
                 grouped(found.documents, "document"),
                 percent(found.documents, figures.counts.documents), grouped(found.tokens, "token"),
                 percent(found.tokens, figures.counts.tokens), grouped(found.group_count, "set"));
  if (found.groups.empty()) return;  // --groups 0
  text_table table({"copies", "tokens", "documents"});
  for (const dataset::duplicate_group& group : found.groups) {
    std::string places;
    std::int64_t dataset = -1;
    for (const dataset::document_place& place : group.places) {
      const bool is_same = figures.datasets.size() == 1 || place.dataset == dataset;
      if (!places.empty()) places += is_same ? ", " : "; ";
      places += is_same ? std::to_string(place.document) : place_text(figures, place);
      dataset = place.dataset;
    }
    if (group.copies > std::ssize(group.places)) places += ", ...";
    table.add({grouped(group.copies), grouped(group.tokens), places});
  }
  text += table.text();
}

void add_near(std::string& text, const dataset_figures& figures,
              const dataset::near_duplicates& found, const dataset::near_duplicate_options& near) {
  add_heading(text, "near duplicates");
  fmt::format_to(
      std::back_inserter(text),
      "{} of {} with {} ({}) are similar to an earlier one\n"
      "similar: at least {} of their {}-grams are the same; estimated with {} hash\n"
      "functions in {} bands, seed {}, which find such a pair with a chance of {:.1f} %\n",
      grouped(found.documents, "document"), grouped(found.compared), grouped(found.tokens, "token"),
      percent(found.tokens, figures.counts.tokens), near.threshold, near.n, near.hashes, near.bands,
      near.seed, 100 * near.chance(near.threshold));
  if (found.pairs.empty()) return;
  text_table table({"Jaccard", "error", "documents"});
  for (const dataset::similar_documents& pair : found.pairs) {
    table.add({fmt::format("{:.3f}", pair.jaccard), fmt::format("{:.3f}", pair.error),
               place_text(figures, pair.earlier) + " and " + place_text(figures, pair.later)});
  }
  text += table.text();
}

void add_contamination(std::string& text, const stats_answer& answer, const stats_question& asked) {
  const dataset::contamination& found = *answer.contamination;
  const dataset_figures& figures = answer.figures;
  const auto hit =
      std::ranges::count_if(found.texts, [](const auto& each) { return each.found > 0; });
  const auto large =
      std::ranges::count_if(found.texts, [](const auto& each) { return each.ngrams > 0; });
  add_heading(text, "contamination");
  fmt::format_to(std::back_inserter(text),
                 "{} ({}) with {} share at least {} ids in a row with a text\n"
                 "{} of {} with at least {} ids are in part in the data",
                 grouped(found.documents, "document"),
                 percent(found.documents, figures.counts.documents), grouped(found.tokens, "token"),
                 asked.shared, grouped(hit), grouped(large, "text"), asked.shared);
  const auto tiny = std::ssize(found.texts) - large;
  text += tiny == 0
              ? "\n"
              : fmt::format("; {} shorter\n", counted(tiny, "text") + (tiny == 1 ? " is" : " are"));
  if (!found.worst.empty()) {
    text_table table({"shared", "token", "document and first text"});
    for (const dataset::contaminated_document& each : found.worst) {
      table.add({grouped(each.ngrams), grouped(each.token),
                 place_text(figures, each.place) + ": " +
                     answer.texts[static_cast<std::size_t>(each.text)]});
    }
    text += table.text();
  }
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < found.texts.size(); ++i) {
    if (found.texts[i].found > 0) order.push_back(i);
  }
  std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) {
    return static_cast<double>(found.texts[i].found) / static_cast<double>(found.texts[i].ngrams);
  });
  if (order.size() > asked.limits.groups) order.resize(asked.limits.groups);
  if (order.empty()) return;
  text_table table({"found", "of", "share", "text"});
  for (const std::size_t i : order) {
    table.add({grouped(found.texts[i].found), grouped(found.texts[i].ngrams),
               percent(found.texts[i].found, found.texts[i].ngrams), answer.texts[i]});
  }
  text += table.text();
}

void add_ngrams(std::string& text, const dataset_figures& figures,
                const dataset::repeated_ngrams& found, std::int64_t n) {
  add_heading(text, fmt::format("most repeated {}-grams", n));
  fmt::format_to(std::back_inserter(text), "{} different of {}\n", grouped(found.distinct),
                 grouped(found.positions));
  if (found.ngrams.empty()) text += "none occurs twice\n";
  for (const dataset::repeated_ngram& each : found.ngrams) {
    const std::string what = figures.tokenizer
                                 ? shortened(figures.tokenizer->decode(each.ids), 70)
                                 : shortened(fmt::format("{}", fmt::join(each.ids, " ")), 70);
    fmt::format_to(std::back_inserter(text), "{}, first in {}, token {}\n  {}\n",
                   grouped(each.count, "time"), place_text(figures, each.first), each.first_token,
                   what);
  }
}

std::string as_text(const stats_answer& answer, const stats_question& asked) {
  const dataset_figures& figures = answer.figures;
  const dataset::dataset_statistics& counts = figures.counts;
  std::string text;
  const auto row = [&](const char* what, const std::string& value) {
    fmt::format_to(std::back_inserter(text), "{:<17}{}\n", what, value);
  };
  if (figures.datasets.size() == 1) {
    row("prefix", command::one_line(figures.datasets.front().input));
  } else {
    row("datasets", grouped(std::ssize(figures.datasets)));
  }
  const std::int64_t empty =
      counts.documents == 0 ? 0 : counts.document_lengths.by_power_of_two().front();
  row("documents",
      grouped(counts.documents) + (empty == 0 ? "" : fmt::format(" ({} empty)", grouped(empty))));
  row("sequences", grouped(counts.sequences));
  row("tokens", grouped(counts.tokens));
  if (figures.special_tokens) {
    row("special_tokens", fmt::format("{} ({})", grouped(*figures.special_tokens),
                                      percent(*figures.special_tokens, counts.tokens)));
  }
  if (figures.trained) {
    const std::int64_t none =
        figures.trained->count() == 0 ? 0 : figures.trained->by_power_of_two().front();
    row("trained_tokens", fmt::format("{} ({}); {} without any", grouped(figures.trained->sum()),
                                      percent(figures.trained->sum(), figures.masked_tokens),
                                      grouped(none, "document")));
  }
  row("distinct_ids",
      grouped(counts.ids.distinct()) +
          (figures.vocab_size ? fmt::format("; {} of {} never occur", grouped(figures.never_seen()),
                                            grouped(*figures.vocab_size))
                              : ""));
  if (figures.vocab_size) {
    const std::int64_t outside = counts.ids.tokens_outside(*figures.vocab_size);
    if (outside > 0) row("outside_vocab", grouped(outside, "token"));
  }
  row("entropy", fmt::format("{:.3f} bits per token", counts.ids.entropy()));
  if (figures.text) {
    row("text_bytes",
        fmt::format("{}{}; {:.3f} per token that is not special",
                    figures.text->exact ? "" : "about ", grouped(figures.text->bytes),
                    figures.text->tokens == 0 ? 0.0
                                              : static_cast<double>(figures.text->bytes) /
                                                    static_cast<double>(figures.text->tokens)));
  }
  add_lengths(text, figures);
  add_ids(text, figures, asked.most_ids);
  if (figures.datasets.size() > 1) add_shares(text, "datasets", figures.datasets, counts.tokens);
  if (figures.inputs) add_shares(text, "inputs", *figures.inputs, counts.tokens);
  if (answer.duplicates) add_duplicates(text, figures, *answer.duplicates);
  if (answer.near) add_near(text, figures, *answer.near, *asked.near);
  if (answer.contamination) add_contamination(text, answer, asked);
  if (answer.ngrams) add_ngrams(text, figures, *answer.ngrams, asked.ngrams->n);
  return text;
}

}  // namespace

int stats(const arguments& args) {
  po::options_description own;
  add_tokenizer_flags(own);
  auto add = own.add_options();
  for (const char* flag :
       {"top", "groups", "top-ngrams", "ngram", "contamination-ngram", "workers"}) {
    add(flag, po::value<std::int64_t>());
  }
  add("frequencies", po::value<std::string>());
  add("similarity", po::value<std::string>());
  add("contamination", po::value<std::vector<std::string>>()->multitoken());
  for (const char* flag : {"duplicates", "near-duplicates"}) add(flag, po::bool_switch());
  auto line = parse_run_options(args, own, stats_help);
  if (!line) return command::exit_done;
  const stats_question asked = question_of(*line);
  const auto words = line->find<std::vector<std::string>>("prefix");
  if (!words) {
    throw misuse("PREFIX is required: the path of a dataset, without .bin and .idx", stats_help);
  }
  dataset_tokenizers tokenizers(*line, stats_help);
  std::vector<dataset::indexed_dataset> data;
  for (const std::string& prefix : dataset_prefixes(*words)) data.emplace_back(prefix);
  const stats_answer answer = answer_of(data, tokenizers, asked);
  if (asked.frequencies) write_frequencies(*asked.frequencies, answer.figures);
  command::answer(line->json ? as_json(answer, asked) : as_text(answer, asked));
  return command::exit_done;
}

}  // namespace millrace::inspect
