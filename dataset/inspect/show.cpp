// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <millrace/command/terminal.hpp>
#include <millrace/dataset/detail/run/source_documents.hpp>
#include <millrace/dataset/detail/token_mask.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/detail/json_writer.hpp>
#include <millrace/tokenizer/tokenizer.hpp>

#include "command_line.hpp"
#include "dataset_tokenizer.hpp"
#include "inspect.hpp"
#include "run_flags.hpp"
#include "served_run.hpp"
#include "show_tokens.hpp"
#include "state_flag.hpp"

namespace millrace::inspect {

namespace po = boost::program_options;

const char* const show_help =
    R"(usage: inspect_dataset show PREFIX (--doc N | --sequence N) [FLAGS]
       inspect_dataset show PREFIX --order ORDER --seq-length L [RUN FLAGS]
           (--step N | --iteration N | --sample N) [FLAGS]

Prints a document or a sequence; or samples of a run as the loader serves them,
with labels, loss mask and positions. Prints text if the tokenizer is known.

  --doc N, --sequence N     document or sequence, from 0
  --step N, --iteration N   step, from 0, or from 1 as in Megatron's logs
  --rank N, --slot N        one rank or slot of the step (default: all)
  --sample N                one sample, counted over all ranks of the run
  --eod-mask-loss, --reset-position-ids   as in Megatron
  --eod-id N, --pad-id N    ids for these (default: eod of PREFIX.meta; none)
  --mask-alignment label|input|ignored   of the loss mask, see PREFIX.mask
  (run flags: inspect_dataset --help run; --state FILE: see where)
  --from T, --count M       show M tokens (default: 256) from T on (default: 0)
  --all                     show all tokens
  --context C               also show C tokens on both sides of --from T
  --as ids|text|aligned     aligned: a line per token, with its text in quotes:
                            \xe6 is a byte, \u{a0} an invisible character
  --json                    print one JSON object (inspect_dataset --help json)
  --force                   decode even if another tokenizer made the dataset

The tokenizer flags are those of preprocess_data. They must select the one in
PREFIX.meta. Without flags, show uses that one if it can find its files.

  inspect_dataset show data/web_text_document --doc 7 --from 1000 --context 20
  inspect_dataset show data/web_text_document --order megatron --split 1 \
      --seq-length 4096 --ranks 8 --iteration 1001 --rank 3 --as aligned
)";

const char* const show_json_help =
    R"(usage: inspect_dataset show ... --json

show prints one JSON object. --from, --count, --all and --context apply: there
are tokens_shown tokens from first_token on. Texts may have lone surrogates,
\udc80 to \udcff, for bytes that are not UTF-8.

A document or a sequence:
  prefix, dtype, document
  source       input, line, begin, end; null without PREFIX.src
  sequences, tokens   how many there are
  contents     one object per sequence: sequence, tokens (its length), mode
               (multimodal only), first (offset of the first id), ids,
               trained (with PREFIX.mask: 1 for each id that is to be
               predicted, else 0), text, and with --as aligned texts: the
               text of each id

Samples of a run:
  seq_length
  batches      one object per micro-batch: step, rank, micro_batch,
               micro_batches, first_sample, cu_seqlens, max_seqlen, rows
  rows         what where prints of a slot: step, rank, slot, sample, prefix,
               sample_of_prefix, padding, documents, sample_without_edits; and
               tokens, labels, loss_mask, position_ids, boundaries (document
               boundaries of the row), text, and with --as aligned texts (null
               for padding)

Without a tokenizer, text and texts are missing.
)";

namespace {

/// A sequence, and which of its tokens are shown.
struct shown_sequence {
  std::int64_t sequence;
  std::int64_t at;  // offset of its first token in the document
  dataset::token_view tokens;
  std::int64_t first;  // tokens [first, last) are shown
  std::int64_t last;
  std::vector<bool> trained = {};  // of the shown tokens; empty without a .mask

  dataset::token_view shown() const { return tokens.subview(first, last - first); }
};

struct excerpt {
  std::string what;  // "document 3", for messages
  std::int64_t document;
  std::optional<dataset::record_place> from;
  std::int64_t sequences;
  std::int64_t tokens;
  token_window window;
  bool has_mask;
  std::vector<shown_sequence> contents;
};

/// Sequences [range.first, range.last) of a document.
excerpt excerpt_of(const dataset::indexed_dataset& data, const std::string& what,
                   std::int64_t document, const dataset::document_range& range,
                   const show_options& options) {
  const auto mask = dataset::token_mask::find(data);
  excerpt result{.what = what,
                 .document = document,
                 .from = dataset::source_documents(data.prefix()).read_from(document),
                 .sequences = range.size(),
                 .tokens = 0,
                 .window = {},
                 .has_mask = mask.has_value(),
                 .contents = {}};
  for (std::int64_t i = range.first; i < range.last; ++i) result.tokens += data.sequence_length(i);
  const token_window& window = result.window = options.window_of(result.tokens, what);
  std::int64_t at = 0;
  for (std::int64_t i = range.first; i < range.last; ++i) {
    const dataset::token_view tokens = data.sequence(i);
    const std::int64_t first = std::clamp<std::int64_t>(window.first - at, 0, tokens.size());
    const std::int64_t last = std::clamp<std::int64_t>(window.last - at, 0, tokens.size());
    if (first < last || (tokens.empty() && at >= window.first)) {
      result.contents.push_back({i, at, tokens, first, last});
      const std::int64_t begin = data.index().pointers[static_cast<std::size_t>(i)] /
                                 static_cast<std::int64_t>(formats::size_bytes(data.type()));
      for (std::int64_t t = first; mask && t < last; ++t) {
        const auto token = static_cast<std::uint64_t>(begin + t);
        if (token >= mask->bits().size()) break;  // the pointers are damaged
        result.contents.back().trained.push_back(mask->bits()[token]);
      }
    }
    at += tokens.size();
  }
  return result;
}

std::vector<std::int64_t> ids_of(const dataset::token_view& tokens) {
  std::vector<std::int64_t> ids(static_cast<std::size_t>(tokens.size()));
  tokens.copy_to(std::span(ids));
  return ids;
}

/// The text of each shown token.
std::vector<std::string> shown_texts(const shown_sequence& of, const tokenizer::tokenizer& with) {
  constexpr std::int64_t around = 64;  // more than texts_of looks at
  const std::int64_t begin = std::max<std::int64_t>(0, of.first - around);
  const std::int64_t end = std::min(of.tokens.size(), of.last + around);
  return texts_of(with, ids_of(of.tokens.subview(begin, end - begin)), of.first - begin,
                  of.last - begin);
}

bool is_float(formats::dtype type) {
  return type == formats::dtype::float32 || type == formats::dtype::float64;
}

std::string id_text(const dataset::token_view& tokens, std::int64_t i) {
  return is_float(tokens.type()) ? fmt::format("{}", tokens.as_double(i))
                                 : std::to_string(tokens[i]);
}

std::string as_json(const dataset::indexed_dataset& data, const excerpt& found,
                    const show_options& options, const tokenizer::tokenizer* tokenizer) {
  formats::json_writer json;
  json.open('{').key("prefix").value(data.prefix().native());
  json.key("dtype").value(formats::name(data.type())).key("document").value(found.document);
  write_source(json, found.from);
  json.key("sequences").value(found.sequences).key("tokens").value(found.tokens);
  json.key("first_token").value(found.window.first);
  json.key("tokens_shown").value(found.window.size()).key("contents").open('[');
  for (const shown_sequence& each : found.contents) {
    json.open('{').key("sequence").value(each.sequence).key("tokens").value(each.tokens.size());
    if (data.is_multimodal()) json.key("mode").value(data.mode(each.sequence));
    json.key("first").value(each.first).key("ids").open('[');
    for (std::int64_t i = each.first; i < each.last; ++i) {
      if (!is_float(data.type())) {
        json.value(each.tokens[i]);
      } else {
        json.value(each.tokens.as_double(i));  // null if the token is not finite
      }
    }
    json.close(']');
    if (found.has_mask) {
      json.key("trained").open('[');
      for (const bool is_trained : each.trained) json.value(is_trained ? 1 : 0);
      json.close(']');
    }
    if (tokenizer != nullptr) {
      json.key("text").value(tokenizer->decode(ids_of(each.shown())));
      if (options.is_aligned()) {
        json.key("texts").open('[');
        for (const std::string& text : shown_texts(each, *tokenizer)) json.value(text);
        json.close(']');
      }
    }
    json.close('}');
  }
  return json.close(']').close('}').text() + '\n';
}

void add_table(token_table& table, const shown_sequence& each,
               const tokenizer::tokenizer* tokenizer) {
  std::vector<std::string> texts;
  if (tokenizer != nullptr) texts = shown_texts(each, *tokenizer);
  const auto eod = tokenizer == nullptr ? std::nullopt : tokenizer->eod();
  for (std::int64_t i = each.first; i < each.last; ++i) {
    const auto text = static_cast<std::size_t>(i - each.first);
    table.token(
        each.at + i, id_text(each.tokens, i),
        texts.empty() ? std::nullopt : std::optional(texts[text]), std::nullopt,
        eod && each.tokens[i] == *eod ? "(eod)" : "",
        text < each.trained.size() ? std::optional<bool>(each.trained[text]) : std::nullopt);
  }
}

/// The trained tokens of a sequence, by their places in the document.
std::string trained_text(const shown_sequence& each) {
  std::vector<std::int64_t> places;
  for (std::size_t i = 0; i < each.trained.size(); ++i) {
    if (each.trained[i]) places.push_back(each.at + each.first + static_cast<std::int64_t>(i));
  }
  return places.empty() ? "none" : ranges_text(places);
}

std::string as_text(const dataset::indexed_dataset& data, const excerpt& found,
                    const show_options& options, const tokenizer::tokenizer* tokenizer) {
  std::string text =
      fmt::format("{}, {}: {}, {}", data.prefix().native(), found.what,
                  grouped(found.sequences, "sequence"), grouped(found.tokens, "token"));
  const std::string part = window_text(found.window, found.tokens);
  text += (options.is_start() || part.empty() ? "" : ", " + part) + '\n';
  if (found.from) text += origin_text(found.from).substr(2) + '\n';
  token_table table(found.window);
  for (const shown_sequence& each : found.contents) {
    std::string line =
        fmt::format("sequence {}: {}", each.sequence, grouped(each.tokens.size(), "token"));
    if (data.is_multimodal()) line += fmt::format(", mode {}", data.mode(each.sequence));
    if (options.is_aligned()) {
      table.border(line);
      add_table(table, each, tokenizer);
      continue;
    }
    text += line + '\n';
    if (options.has_ids()) {
      text += each.first > 0 ? "ids: ..." : "ids:";
      for (std::int64_t i = each.first; i < each.last; ++i) {
        text += ' ';
        text += id_text(each.tokens, i);
      }
      text += each.last < each.tokens.size() ? " ...\n" : "\n";
    }
    if (found.has_mask) text += "trained: " + trained_text(each) + '\n';
    if (options.has_text() && tokenizer != nullptr) {
      text += fmt::format("text:\n{}\n", shown_text(*tokenizer, ids_of(each.shown())));
    }
  }
  return options.is_aligned() ? text + table.text(command::stdout_has_colors()) : text;
}

/// Checks that the dataset has a document or sequence of this number.
void expect_one_of(const dataset::indexed_dataset& data, const char* flag, const char* kind,
                   std::int64_t number, std::int64_t count) {
  if (number < count) return;
  throw config_error(fmt::format(
      "--{} {}: expected a {} of {}, which has {}", flag, number, kind, data.prefix().native(),
      count == 0 ? fmt::format("no {}s", kind) : fmt::format("{}s 0 to {}", kind, count - 1)));
}

excerpt find(const dataset::indexed_dataset& data, const std::optional<std::int64_t>& document,
             const std::optional<std::int64_t>& sequence, const show_options& options) {
  if (document) {
    expect_one_of(data, "doc", "document", *document, data.document_count());
    return excerpt_of(data, fmt::format("document {}", *document), *document,
                      data.document(*document), options);
  }
  expect_one_of(data, "sequence", "sequence", *sequence, data.sequence_count());
  const std::int64_t of = dataset::source_documents(data.prefix()).document_of(*sequence);
  return excerpt_of(data, fmt::format("sequence {} of document {}", *sequence, of), of,
                    {*sequence, *sequence + 1}, options);
}

/// Refuses the flags of samples with `--doc` or `--sequence`, where they would have no effect.
void expect_no_run_flags(const command_line& line) {
  for (const char* flag : {"order", "seq-length", "step", "iteration", "rank", "slot", "sample",
                           "eod-id", "pad-id", "mask-alignment", "state", "data-path"}) {
    if (line.values.count(flag) == 0) continue;
    throw misuse(fmt::format("--{} is about samples of a run; leave out --doc or --sequence", flag),
                 show_help);
  }
}

int show_document(command_line line) {
  const auto document = count_of(line, "doc", 0, show_help);
  const auto sequence = count_of(line, "sequence", 0, show_help);
  if (document && sequence) {
    throw misuse("--doc and --sequence exclude each other; pass one of them", show_help);
  }
  expect_no_run_flags(line);
  take_prefix(line, show_help);
  const show_options options(line);
  dataset_tokenizers tokenizers(line, show_help);

  const dataset::indexed_dataset data(line.prefix);
  const auto tokenizer = tokenizers.find(data);
  const excerpt found = find(data, document, sequence, options);
  command::answer(line.json ? as_json(data, found, options, tokenizer.get())
                            : as_text(data, found, options, tokenizer.get()));
  if (options.is_start() && found.window.last < found.tokens) {
    command::tell(fmt::format("{}: showed {} of {} tokens; --all shows the rest\n", program_name,
                              grouped(found.window.size()), grouped(found.tokens)));
  }
  return command::exit_done;
}

}  // namespace

int show(const arguments& args) {
  po::options_description own;
  auto add = own.add_options();
  add("doc", po::value<std::int64_t>());
  add("sequence", po::value<std::int64_t>());
  show_options::add_flags(own);
  add_tokenizer_flags(own);
  add_batch_flags(own);
  const auto line = parse_run_options(args, own, show_help);
  if (!line) return command::exit_done;
  const auto given = [&](const char* flag) { return line->values.count(flag) != 0; };
  if (given("doc") || given("sequence")) return show_document(*line);
  if (given("step") || given("iteration") || given("sample")) return show_batches(*line);
  throw misuse(
      "what to show is required: --doc or --sequence and a number counted from 0; or --step, "
      "--iteration or --sample of a run",
      show_help);
}

}  // namespace millrace::inspect
